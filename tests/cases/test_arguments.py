"""G08, G11: arguments that look different in every kernel, and arguments that a step changes."""

from __future__ import annotations

import pytest

from tests.cases.conftest import refused

TAGS = "@step\ndef tag(words): hit('tag'); return sorted(words)\n"
TAGS_CELL = '%%durable tags\nr = tag({"alpha", "beta", "gamma", "delta"})\nhold()\nr'


def test_g08_a_set_as_argument_under_five_hash_seeds(case):
    case.open(TAGS, PYTHONHASHSEED="1")
    for seed in (2, 3, 4, 5):
        case.kill_at("hold", TAGS_CELL)
        case.new_kernel(PYTHONHASHSEED=str(seed))
    case.kill_at("hold", TAGS_CELL)

    ran = case.rerun(TAGS_CELL, PYTHONHASHSEED="6")

    assert ran.results == ["['alpha', 'beta', 'delta', 'gamma']"], ran.errors
    assert case.effects.tags() == ["tag"]


EQUAL = """
import dataclasses, enum, collections, datetime, decimal, uuid, pathlib, numpy, pandas, pydantic
class Tone(enum.Enum): CALM = 1; URGENT = 2
@dataclasses.dataclass(frozen=True)
class Tagged: words: frozenset
class Model(pydantic.BaseModel): words: set[str]; by: dict[str, int]
WORDS = ["alpha", "beta", "gamma", "delta"]
@step
def see(kind, value): hit(kind); return kind
"""
# In one kernel and in the other the values are equal, and built differently (or walked in another order).
VALUES = """
some = set(WORDS)
VALUES = {
    "set": some,
    "frozenset_as_key": {frozenset(some): 1, frozenset(WORDS[:2]): 2},
    "dict_order": {w: len(w) for w in some},
    "set_of_tuples": {(w, len(w)) for w in some},
    "nested": [{"a": {"b": [some]}}, (frozenset(some),)],
    "dataclass": Tagged(frozenset(some)),
    "dataclasses_in_set": {Tagged(frozenset([w])) for w in some},
    "pydantic": Model(words=some, by={w: 1 for w in some}),
    "enums_in_set": {Tone.URGENT, Tone.CALM},
    "same_object": [SAME],
    "interned": ["ab" * 40, CUT],
    "ordered": collections.Counter(some),
    "defaultdict": collections.defaultdict(list, {w: [w] for w in some}),
    "times": {datetime.date(2026, 11, 30), datetime.date(2026, 12, 1)},
    "numbers": {1.5, 2, decimal.Decimal("3.1")},
    "paths": {pathlib.Path(w) for w in some},
    "array": numpy.arange(6).reshape(2, 3)[:, ORDER],
    "frame": pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
    "mixed_set": {None, 1, "a", (1, frozenset(some))},
    "uuid": {uuid.UUID(int=n) for n in range(5)},
}
"""
EQUAL_CELL = "%%durable equal\nseen = [see(kind, value) for kind, value in VALUES.items()]\nhold()\nlen(seen)"


def test_g08_equal_values_are_equal_arguments_in_every_kernel(case):
    """Frozensets as keys, dicts in another order, sets of tuples and dataclasses, one object or two equal ones."""
    one = VALUES.replace("[SAME]", "[WORDS, WORDS]").replace("CUT", "('ab' * 50)[:80]").replace("ORDER", ":")
    other = (
        VALUES.replace("set(WORDS)", "set(reversed(WORDS))")
        .replace("[SAME]", "[list(WORDS), [str(w) for w in WORDS]]")
        .replace("CUT", "''.join(['ab'] * 40)")
        .replace("ORDER", "[0, 1, 2]")
    )
    case.open(EQUAL + one, PYTHONHASHSEED="11")
    case.kill_at("hold", EQUAL_CELL)

    ran = case.rerun(EQUAL_CELL, setup=EQUAL + other, PYTHONHASHSEED="222")

    assert ran.results == ["20"], ran.errors
    assert [tag for tag in case.effects.tags() if case.effects.count(tag) > 1] == []


def test_g08_different_values_are_different_arguments(case):
    case.open(TAGS)

    case.kernel.ok("%%durable apart\n[tag({'a', 'b'}), tag({'a', 'c'}), tag({'ab'}), tag(('a', 'b')), tag(['a', 'b'])]")

    assert case.effects.tags() == ["tag"] * 5


# G11 ----------------------------------------------------------------------------------------------------------------

CHAT = """
@step
def add_turn(msgs, text): hit("add"); msgs.append(text); return len(msgs)
@step
def summarize(msgs): hit("summarize"); hit(repr(msgs)); stand("summarize"); return list(msgs)
"""
STOPS = ("HiddenEffectError", "NondeterminismError")
"""Which of the two depends on whether the change shows in the digest of what the next step is called with."""
CHAT_CELL = '%%durable chat\nmsgs = []\nadd_turn(msgs, "sk-live-hi"); add_turn(msgs, "there")\nfinal = summarize(msgs)'


def test_g11_a_step_that_changes_its_argument(case):
    case.open(CHAT)
    case.kill_at("summarize", CHAT_CELL)

    ran = case.rerun(CHAT_CELL)

    warned = [notice for each in case.json("show", "chat")["steps"] for notice in each["notices"]]
    assert any("`add_turn` changed its argument `msgs`" in notice for notice in warned), warned
    if ran.status == "ok":
        assert case.kernel.value("final") == ["sk-live-hi", "there"]
    else:
        assert ran.reply["ename"] in STOPS
        words = ("`chat`", "step `add_turn` changed its argument `msgs`", "Nothing was executed")
        message = refused(ran, ran.reply["ename"], *words, hidden=("sk-live-hi",))
        assert message.count("changed its argument") == 1
        assert "reads the change. Put" in message
    assert case.effects.count("[]") == 0
    assert case.effects.count("add") == 2


def test_g11_the_first_run_warns(case):
    (case.folder / "go").touch()
    case.open(CHAT)

    ran = case.kernel.ok(CHAT_CELL)

    assert "step `add_turn` changed its argument `msgs` in place" in ran.summary
    assert "sk-live-hi" not in ran.summary


CHANGES = {
    "dict": ("{}", "v['k'] = 1"),
    "nested_list": ("{'a': [[]]}", "v['a'][0].append(1)"),
    "nested_dict": ("[{'x': {}}]", "v[0]['x']['k'] = 1"),
    "set": ("set()", "v.add(1)"),
    "bytearray": ("bytearray()", "v.extend(b'ab')"),
    "deque": ("collections.deque()", "v.append(1)"),
    "dataclass": ("Box(1)", "v.n = 2"),
    "dataclass_inside": ("[Box([1])]", "v[0].n.append(2)"),
    "object": ("Plain()", "v.items.append(1)"),
    "pydantic": ("Model()", "v.items.append(1)"),
    "frame": ("pandas.DataFrame({'a': [1, 2]})", "v['b'] = [3, 4]"),
    "frame_value": ("pandas.DataFrame({'a': [1, 2]})", "v.loc[0, 'a'] = 9"),
    "array": ("numpy.zeros(3)", "v[1] = 5"),
    "keyword_only": ("[]", "v.append(1)"),
    "helper": ("[]", "helper(v)"),
}
CHANGE_SETUP = """
import dataclasses, collections, pandas, numpy, pydantic
@dataclasses.dataclass
class Box: n: object
class Plain:
    def __init__(self): self.items = []
class Model(pydantic.BaseModel): items: list[int] = []
def helper(v): v.append(1)
@step
def reads(v): hit("reads"); fail(); return repr(v)
def fail():
    if not os.path.exists("go"): raise RuntimeError("killed here in the main case")
"""


@pytest.mark.parametrize("kind", CHANGES)
def test_g11_every_kind_of_change_is_noticed_and_never_lost_without_a_word(kernel, effects, kind):
    """One kernel for all: ``reads`` fails instead of being killed; the log and its rules are the same."""
    made, change = CHANGES[kind]
    kernel.ok(
        f"{effects.code}\n{CHANGE_SETUP}\n"
        f"@step\ndef change_{kind}({'*, ' if kind == 'keyword_only' else ''}v):\n    {change}"
    )
    argument = "v=value" if kind == "keyword_only" else "value"
    cell = f"%%durable changing_{kind}\nvalue = {made}\nchange_{kind}({argument})\nreads(value)"

    first = kernel.run(cell)
    again = kernel.run(cell)

    assert first.reply["ename"] == "RuntimeError", first.errors
    assert f"step `change_{kind}` changed its argument `v` in place" in first.summary
    assert again.reply["ename"] in STOPS
    words = (f"`changing_{kind}`", f"step `change_{kind}` changed its argument `v`", "`reads`", "Nothing was executed")
    refused(again, again.reply["ename"], *words)
    assert effects.tags() == ["reads"]


def test_g11_the_way_out_that_the_message_names_works(case):
    case.open(
        "@step\ndef add_turn(msgs, text): hit('add'); return [*msgs, text]\n"
        "@step\ndef summarize(msgs): hit('summarize'); stand('summarize'); return list(msgs)"
    )
    cell = '%%durable chat\nmsgs = add_turn(add_turn([], "hi"), "there")\nsummarize(msgs)'
    case.kill_at("summarize", cell)

    ran = case.rerun(cell)

    assert ran.results == ["['hi', 'there']"]
    assert case.effects.tags() == ["add", "add", "summarize", "summarize"]
