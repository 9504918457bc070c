"""The first line of a durable cell."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable.engine.flags import Flags
from jupyter_durable.errors import UsageError
from jupyter_durable.kernel.header import FLAGS, find, flags_help, parse
from jupyter_durable.kernel.transform import blanked, first_error, marked, transform


@pytest.mark.parametrize(
    ("text", "name", "flags"),
    [
        ("", "", {}),
        ("report", "report", {}),
        ("report_2.v-1", "report_2.v-1", {}),
        ("обзор", "обзор", {}),
        ('"my report" --fresh', "my report", {"fresh": True}),
        ("'it is \"quoted\"'", 'it is "quoted"', {}),
        ("--fresh report", "report", {"fresh": True}),
        ("r --from search#2", "r", {"from_step": "search#2"}),
        ("r --from=3", "r", {"from_step": "3"}),
        ('r --from "my step"', "r", {"from_step": "my step"}),
        ("r --reuse pure --strict", "r", {"reuse": "pure", "strict": True}),
        ("r --replay-only --branch main-2", "r", {"replay_only": True, "branch": "main-2"}),
        ("r --shared --durability process", "r", {"shared": True, "durability": "process"}),
        ("r --off --fresh", "r", {"off": True, "fresh": True}),
        ("r --fresh  # try again", "r", {"fresh": True}),
    ],
)
def test_a_header_says_name_and_flags(text, name, flags):
    header = parse(text)

    assert header.name == name
    assert header.flags == Flags(**flags)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--frsh", "Did you mean `--fresh`? Its flags: --fresh, --from STEP"),
        ("-f", "has no flag `-f`"),
        ("a b", "A run has one name; here are 2: `a`, `b`"),
        ("a/b", "`a/b` cannot be the name of a run as it stands"),
        ("''", "The name of a run is 1 to 200"),
        ("x" * 201, "The name of a run is 1 to 200"),
        ('"tab\there"', "printable"),
        ('"open', "has no partner"),
        ("r --from", "`--from` needs a value: `--from STEP`"),
        ("r --from --fresh", "`--from` needs a value"),
        ("r --fresh --fresh", "given twice"),
        ("r --fresh=1", "takes no value"),
        ("r --reuse some", "`--reuse` is one of `all`, `pure`, `none`, not `some`"),
        ("r --durability proces", "Did you mean `process`?"),
        ("r --fresh --from x", "exclude each other"),
        ("r --fresh --replay-only", "exclude each other"),
        ("r --branch b --fresh", "exclude each other"),
        ("r --branch b --from x", "exclude each other"),
        ("r --from x --replay-only", "exclude each other"),
        ("r --reuse all --fresh", "exclude each other"),
        ("--shared", "so it needs one"),
    ],
)
def test_what_cannot_be_meant_is_said_in_a_sentence(text, said):
    with pytest.raises(UsageError) as caught:
        parse(text)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_a_header_or_a_usage_error(text):
    try:
        parse(text)
    except UsageError:
        return


def test_help_lists_every_flag_of_a_run():
    text = flags_help()

    assert all(flag in text for flag in FLAGS)
    assert {rule.field for rule in FLAGS.values()} == set(Flags.__slots__)


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("%%durable", (0, "")),
        ("%%durable x --fresh\ncode", (0, "x --fresh")),
        ("\n  \n%%durable x", (2, "x")),
        ("#| durable", (0, "")),
        ("#|durable: x", (0, "x")),
        ("#| label: a\n#| durable: x --strict\ncode", (1, "x --strict")),
        ("%%durablex", None),
        ("%%durable?", None),
        ("%durable on", None),
        ("# c\n%%durable x", None),
        ("#| label: a\ncode\n#| durable: x", None),
        ("", None),
    ],
)
def test_a_header_is_found_where_it_counts(cell, found):
    assert find(cell.splitlines()) == found


@given(
    st.lists(st.sampled_from(["", "x = 1", "%%durable a", "#| durable: b", "#| label: c", "%%time", "# d"]), max_size=5)
)
def test_transforming_keeps_the_lines_and_is_idempotent(lines):
    cell = [line + "\n" for line in lines]

    once = transform(list(cell))

    magic_below = any(line.startswith("%%time") for line in lines)
    assert magic_below or len(once) == len(cell)
    assert transform(list(once)) == once


def test_a_mark_is_found_again_and_can_be_taken_out():
    source = "".join(transform(["#| label: c\n", "#| durable: it's --from 'a b'\n", "x = 1\n"]))

    assert marked(ast.parse(source)) == "it's --from 'a b'"
    assert blanked(source) == "#| label: c\n\nx = 1\n"


def test_the_first_statement_that_does_not_compile_is_named():
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    assert first_error(ast.parse("x = 1\nawait f()"), "<cell>", flags) is None
    broken = first_error(ast.parse("x = 1\nreturn x\nbreak"), "<cell>", flags)
    assert broken is not None
    assert broken.body[0].lineno == 2


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("report --budget 2usd", "2usd"),
        ("report --budget 50k tokens --fresh", "50k tokens"),
        ("report --budget 2usd, 40 steps", "2usd, 40 steps"),
        ("--budget=$0.50 report", "$0.50"),
        ("--budget '1.5m tokens' report", "1.5m tokens"),
    ],
)
def test_a_budget_is_read_with_its_unit(text, budget):
    header = parse(text)

    assert header.flags.budget == budget
    assert header.name == "report"


def test_what_is_no_budget_is_refused():
    with pytest.raises(UsageError, match="is no budget"):
        parse("report --budget plenty")
