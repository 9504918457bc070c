"""Values of an older version of a class become values of today's, and stay the arguments that they were."""

from __future__ import annotations

import copy
import gc
import keyword
import sys
import types
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from jupyter_durable import durable
from jupyter_durable.errors import UnloadableValue, UnstorableValue, UsageError
from jupyter_durable.values import decode, digest, encode, encode_verified, lineage, migrations

KINDS = {
    "dataclass": "@dataclass\nclass Report:",
    "frozen": "@dataclass(frozen=True)\nclass Report:",
    "slots": "@dataclass(slots=True)\nclass Report:",
    "frozen slots": "@dataclass(frozen=True, slots=True)\nclass Report:",
    "pydantic": "class Report(BaseModel):",
    "attrs": "@attrs.define\nclass Report:",
    "attrs without slots": "@attrs.define(slots=False)\nclass Report:",
    "named tuple": "class Report(NamedTuple):",
    "plain": "class Report:\n    def __init__(self, **fields): self.__dict__.update(fields)",
    "plain slots": "class Report:\n    def __init__(self, **f):\n        for name in f: setattr(self, name, f[name])",
}
"""How a class of each kind begins; its fields follow as annotations."""

IMPORTS = """
from dataclasses import dataclass, field, KW_ONLY
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar
import attrs
from pydantic import BaseModel, ConfigDict, PrivateAttr
from jupyter_durable import durable
"""


class Notebook:
    """A module whose cells are run again, in another month, as those of a notebook."""

    def __init__(self, name: str) -> None:
        self.module = types.ModuleType(name)
        self.run(IMPORTS)

    def run(self, source: str) -> Any:
        """Run a cell; give the namespace."""
        exec(compile(source, "<cell>", "exec", dont_inherit=True), self.module.__dict__)
        return self.module

    def forget(self, *names: str) -> None:
        """What another kernel would not have."""
        for name in names:
            delattr(self.module, name)


@pytest.fixture
def notebook(monkeypatch):
    """An empty one, and no migration that another test has registered."""
    monkeypatch.setattr(migrations, "_registered", {})
    found = Notebook("reporting")
    monkeypatch.setitem(sys.modules, "reporting", found.module)
    return found


def stored(value: Any) -> tuple[str, bytes, Any]:
    """What history has of a value, and its digest."""
    encoded, restored = encode_verified(value)
    assert not encoded.blobs
    return encoded.codec, encoded.text, digest(restored)


def kind_of(start: str, fields: dict[str, Any], version: int) -> str:
    lines = [start, f"    __durable_version__ = {version}"]
    if "setattr" in start:
        lines.append(f"    __slots__ = {tuple(fields)!r}")
    else:
        lines += [f"    {name}: Any" for name in fields]
    return "\n".join(lines)


def fields_of(value: Any) -> dict[str, Any]:
    if isinstance(value, tuple):
        return value._asdict()
    if hasattr(type(value), "__slots__") and not hasattr(value, "__dict__"):
        names = type(value).__slots__
        return {name: getattr(value, name) for name in names if not name.startswith("__")}
    return dict(value.__dict__)


_names = st.text("abcdefgh", min_size=1, max_size=3).filter(lambda name: not keyword.iskeyword(name))
_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    fields=st.dictionaries(_names, _values, min_size=1, max_size=4),
    dropped=st.sets(_names, max_size=2),
    renamed=st.dictionaries(_names, _names.map(str.upper), max_size=3),
    added=st.dictionaries(_names.map(lambda name: name + "_new"), _values, max_size=2),
    then=st.sampled_from(sorted(KINDS)),
    now=st.sampled_from(sorted(KINDS)),
    depth=st.integers(0, 2),
)
def test_a_value_is_what_the_migration_makes_of_the_recorded_fields(
    notebook, fields, dropped, renamed, added, then, now, depth
):
    """Of every kind of class, the kind may change too, alone and inside of others; and its digest stays."""
    if "plain" in then or "attrs" in then:  # these are stored as pickles, which make the object before its fields
        now = then if now == "named tuple" else now

    def change(recorded: dict[str, Any]) -> dict[str, Any]:
        kept = {renamed.get(name, name): one for name, one in recorded.items() if name not in dropped}
        return {**kept, **added}

    migrations._registered.clear()
    month = notebook.run(kind_of(KINDS[then], fields, 1))
    value = month.Report(**copy.deepcopy(fields))
    whole = value
    for _ in range(depth):
        whole = {"reports": [whole], "n": 1}
    codec, text, was = stored(whole)

    month = notebook.run(kind_of(KINDS[now], change(fields), 2))
    durable.migrate(month.Report, from_version=1)(change)
    again = decode(codec, text)
    known = digest(again)
    for _ in range(depth):
        again = again["reports"][0]

    assert type(again) is month.Report
    assert fields_of(again) == change(fields)
    assert known == was


V1 = "@dataclass\nclass Report:\n    title: str\n    body: str"
V2 = "@dataclass\nclass Report:\n    __durable_version__ = 2\n    title: str\n    sections: list"
V3 = "@dataclass\nclass Report:\n    __durable_version__ = 3\n    title: str\n    parts: tuple\n    note: str = 'n'"
TO_2 = """
@durable.migrate(Report, from_version=1)
def to_2(fields): return {"title": fields["title"], "sections": [fields["body"]]}
"""
TO_3 = """
@durable.migrate(Report, from_version=2)
def to_3(fields): return {"title": fields["title"], "parts": tuple(fields["sections"])}
"""


def test_migrations_are_applied_one_after_another(notebook):
    first = stored(notebook.run(V1).Report("t", "b"))
    second = stored(notebook.run(V2).Report("u", ["c"]))

    month = notebook.run(V3 + TO_2 + TO_3)

    assert decode(*first[:2]) == month.Report("t", ("b",), "n")
    assert decode(*second[:2]) == month.Report("u", ("c",), "n")
    assert stored(month.Report("t", ()))[1].count(b'"ver":3') == 1


def test_values_inside_are_migrated_before_what_holds_them(notebook):
    inner = "@dataclass\nclass Line:\n    text: str\n"
    old = notebook.run(inner + "@dataclass\nclass Report:\n    lines: list\n    by: dict")
    value = old.Report([old.Line("a"), old.Line("b")], {"x": old.Line("c")})
    codec, text, was = stored([value, {"k": (value.lines[0].text, old.Line("d"))}])

    month = notebook.run("""
@dataclass
class Line:
    __durable_version__ = 2
    words: list
@dataclass
class Report:
    __durable_version__ = 2
    lines: list
@durable.migrate(Line, from_version=1)
def line(fields): return {"words": list(fields["text"])}
@durable.migrate(Report, from_version=1)
def report(fields): return {"lines": fields["lines"] + list(fields["by"].values())}
""")
    again = decode(codec, text)

    line = month.Line
    assert again == [month.Report([line(["a"]), line(["b"]), line(["c"])]), {"k": ("a", line(["d"]))}]
    assert digest(again) == was


def test_a_value_of_version_1_is_stored_as_before(notebook):
    month = notebook.run(V1)
    text = encode(month.Report("t", "b")).text
    month = notebook.run(V1.replace("title", "__durable_version__ = 1\n    title", 1))

    assert encode(month.Report("t", "b")).text == text
    assert b"ver" not in text


@pytest.mark.parametrize(
    ("today", "words", "facts"),
    [
        pytest.param(
            V2.replace("__durable_version__ = 2", "pass"),
            ["Report", "body was removed", "__durable_version__ = 2", "@durable.migrate(Report, from_version=1)"],
            {}, id="changed without a version",
        ),
        pytest.param(
            V2, ["reporting.Report, version 1", "at version 2 now", "@durable.migrate(Report, from_version=1)"],
            {"from_version": 1}, id="no migration",
        ),
        pytest.param(
            V3 + TO_2, ["no migration leads on from version 2", "@durable.migrate(Report, from_version=2)"],
            {"from_version": 2}, id="a gap in the chain",
        ),
        pytest.param(
            V2 + TO_2.replace('fields["body"]', 'fields["text"]'),
            ["Report, version 1", "`reporting.to_2` raised KeyError in its line 2"],
            {"from_version": 1, "reason": "`reporting.to_2` raised KeyError in its line 2"}, id="it raises",
        ),
        pytest.param(V2 + TO_2.replace("sections", "chapters"), ["`chapters`", "no such field"], {}, id="unknown"),
        pytest.param(V2 + TO_2.replace(', "sections": [fields["body"]]', ""), ["no `sections`"], {}, id="missing"),
        pytest.param(V2 + TO_2.replace("return {", "return 7, {"), ["returned tuple", "not a dict"], {}, id="no dict"),
    ],
)  # fmt: skip
def test_what_cannot_become_todays_value_is_said(notebook, today, words, facts):
    codec, text, _ = stored(notebook.run(V1).Report("t-secret", "b-secret"))
    notebook.run(today)

    with pytest.raises(UnloadableValue) as caught:
        decode(codec, text)

    message = str(caught.value)
    assert [word for word in words if word not in message] == [], message
    assert "secret" not in message
    assert facts.items() <= caught.value.facts.items()
    assert caught.value.missing == "reporting.Report"


def test_a_value_of_newer_code_is_said(notebook):
    codec, text, _ = stored(notebook.run(V3).Report("t", ()))
    notebook.run(V2 + TO_2)

    with pytest.raises(UnloadableValue, match=r"version 3, and was written by newer code: .* at version 2 here"):
        decode(codec, text)


def test_a_class_that_goes_back_to_its_old_version_takes_its_old_values(notebook):
    codec, text, _ = stored(notebook.run(V1).Report("t", "b"))
    notebook.run(V2 + TO_2)
    month = notebook.run(V1)

    assert decode(codec, text) == month.Report("t", "b")


@pytest.mark.parametrize("shared", [False, True], ids=["structural", "pickled"])
def test_a_class_that_was_renamed_or_moved(notebook, shared, monkeypatch):
    module = types.ModuleType("old_module")
    monkeypatch.setitem(sys.modules, "old_module", module)
    exec(IMPORTS + V1.replace("Report", "OldReport"), module.__dict__)
    value = module.OldReport("t", "b")
    codec, text, was = stored([value, value] if shared else [value])
    monkeypatch.delitem(sys.modules, "old_module")

    notebook.run(V2)
    with pytest.raises(UnloadableValue, match=r'from_version=1, from_name="old_module.OldReport"'):
        decode(codec, text)
    month = notebook.run(TO_2.replace("from_version=1", "from_version=1, from_name='old_module.OldReport'"))
    again = decode(codec, text)

    assert again[0] == month.Report("t", ["b"])
    assert again[0] is again[-1]
    assert digest(again) == was


def test_a_renamed_class_goes_on_along_the_migrations_of_the_new_one(notebook):
    codec, text, _ = stored(notebook.run(V1.replace("Report", "Essay")).Essay("t", "b"))
    notebook.forget("Essay")

    renaming = TO_2.replace("from_version=1", "from_version=1, from_name='reporting.Essay'")
    month = notebook.run(V3 + renaming + TO_3)

    assert decode(codec, text) == month.Report("t", ("b",))


def test_one_object_at_two_places_stays_one(notebook):
    month = notebook.run(V1)
    value = month.Report("t", "b")
    codec, text, was = stored({"a": value, "b": [value]})

    month = notebook.run(V2 + TO_2)
    again = decode(codec, text)

    assert again["a"] is again["b"][0]
    assert again["a"] == month.Report("t", ["b"])
    assert digest(again) == was


MODEL_1 = "class Report(BaseModel):\n    title: str\n    body: str = 'b'\n    _seen: int = PrivateAttr(0)"
MODEL_2 = "class Report(BaseModel):\n    __durable_version__ = 2\n    title: str\n    sections: list[str] = ['x']\n"
MODEL_2 += "    lines: int = 0\n    _seen: int = PrivateAttr(0)\n    _new: int = PrivateAttr(5)"


def test_a_model_keeps_its_private_attributes_and_what_was_set(notebook):
    value = notebook.run(MODEL_1).Report(title="t")
    value._seen = 3
    codec, text, was = stored(value)

    month = notebook.run(MODEL_2 + "\ndurable.migrate(Report, from_version=1)(lambda f: {'title': f['title']})")
    again = decode(codec, text)

    assert again.model_dump() == {"title": "t", "sections": ["x"], "lines": 0}
    assert again.model_fields_set == {"title"}
    assert (again._seen, again._new) == (3, 5)
    assert digest(again) == was
    again._seen = 4
    assert digest(again) == digest(month.Report.model_copy(again)) != was


def test_a_model_gets_only_values_of_its_types(notebook):
    codec, text, _ = stored(notebook.run(MODEL_1).Report(title="t", body="secret"))
    notebook.run(MODEL_2 + "\ndurable.migrate(Report, from_version=1)(lambda f: {'title': 't', 'sections': f['body']})")

    with pytest.raises(UnloadableValue, match=r"its `sections` is not of the field's type \(list_type\)") as caught:
        decode(codec, text)
    assert "secret" not in str(caught.value)


def test_models_with_extras_and_parameters(notebook):
    source = """
Item = TypeVar("Item")
class Box(BaseModel, Generic[Item]):
    model_config = ConfigDict(extra="allow")
    item: Item
"""
    codec, text, was = stored(notebook.run(source).Box[int](item=1, colour="red"))
    month = notebook.run(source.replace("item: Item", "__durable_version__ = 2\n    items: list[Item]"))
    durable.migrate(month.Box, from_version=1)(lambda old: {"items": [old["item"]], "shade": old["colour"]})
    again = decode(codec, text)

    assert type(again) is month.Box[int]
    assert (again.items, again.model_extra) == ([1], {"shade": "red"})
    assert digest(again) == was


def test_constructors_do_not_run_and_caches_are_not_taken_along(notebook):
    old = "@dataclass\nclass Order:\n    cents: int\n    kept: int = field(init=False)\n"
    old += "    def __post_init__(self): self.kept = self.cents * 2; self.beside = 'b'\n"
    old += "    @cached_property\n    def total(self): return self.cents\n"
    value = notebook.run(old).Order(700)
    assert value.total == 700
    codec, text, was = stored(value)

    month = notebook.run(
        old.replace("cents", "euros").replace("    euros:", "    __durable_version__ = 2\n    euros:", 1)
    )
    seen = []

    def change(fields):
        seen.append(set(fields))
        return {"euros": fields["cents"] // 100, "kept": fields["kept"], "beside": fields["beside"]}

    durable.migrate(month.Order, from_version=1)(change)
    again = decode(codec, text)

    assert seen == [{"cents", "kept", "beside"}]
    assert (again.euros, again.kept, again.beside, again.total) == (7, 1400, "b", 7)
    assert was == digest(again)


def test_a_class_with_its_own_way_of_pickling_gets_its_state_back_in_that_way(notebook):
    source = """
class Counter:
    def __init__(self, n): self.n = n; self.made = 0
    def __getstate__(self): return {"n": self.n}
    def __setstate__(self, state): self.n = state["n"]; self.made = 1
"""
    codec, text, _ = stored(notebook.run(source).Counter(3))
    month = notebook.run(source.replace("def __init__", "__durable_version__ = 2\n    def __init__"))
    durable.migrate(month.Counter, from_version=1)(lambda fields: {"n": fields["n"] * 10})
    again = decode(codec, text)

    assert (again.n, again.made) == (30, 1)


def test_a_class_that_was_stored_by_reduce_is_refused(notebook):
    source = "class Odd:\n    def __init__(self, n): self.n = n\n    def __reduce__(self): return Odd, (self.n,)"
    codec, text, _ = stored(notebook.run(source).Odd(3))
    month = notebook.run(source.replace("def __init__", "__durable_version__ = 2\n    def __init__"))
    durable.migrate(month.Odd, from_version=1)(lambda fields: fields)

    with pytest.raises(UnloadableValue, match="says itself how it is pickled"):
        decode(codec, text)


def test_a_subclass_of_list_keeps_its_items(notebook):
    value = notebook.run("class Rows(list): pass").Rows([1, 2])
    value.name = "n"
    codec, text, was = stored(value)
    month = notebook.run("class Rows(list): __durable_version__ = 2")
    durable.migrate(month.Rows, from_version=1)(lambda fields: {"title": fields["name"]})
    again = decode(codec, text)

    assert (type(again), list(again), again.title) == (month.Rows, [1, 2], "n")
    assert digest(again) == was
    again.append(3)
    assert digest(again) != was
    notebook.run("class Rows: __durable_version__ = 2")
    with pytest.raises(UnloadableValue, match="has no place"):
        decode(codec, text)


def test_an_exception_has_its_attributes_migrated(notebook):
    source = "class Refused(Exception):\n    def __init__(self, code): super().__init__(code); self.code = code"
    codec, text, _ = stored(notebook.run(source).Refused(7))
    month = notebook.run(source.replace("def __init__", "__durable_version__ = 2\n    def __init__"))
    durable.migrate(month.Refused, from_version=1)(lambda fields: {"codes": [fields["code"]]})
    again = decode(codec, text)

    assert (type(again), again.args, again.codes) == (month.Refused, (7,), [7])


# What digests know of it.


def test_a_migrated_value_stands_for_the_recorded_one_until_it_is_changed(notebook):
    codec, text, was = stored(notebook.run(V1).Report("t", "b"))
    month = notebook.run(V2 + TO_2)
    first, second = decode(codec, text), decode(codec, text)

    assert first == second == month.Report("t", ["b"])
    assert digest([first]) == digest([second])
    assert digest(first) == was != digest(month.Report("t", ["b"]))
    assert digest(copy.copy(first)) == digest(month.Report("t", ["b"]))
    first.sections.append("c")
    assert digest(first) == digest(month.Report("t", ["b", "c"]))
    assert digest(second) == was
    first.sections.pop()
    assert digest(first) == was


def test_two_recorded_values_that_become_equal_stay_two_arguments(notebook):
    month = notebook.run(V1)
    a, b = stored(month.Report("t", "a")), stored(month.Report("t", "b"))
    month = notebook.run(V2)
    durable.migrate(month.Report, from_version=1)(lambda fields: {"title": fields["title"], "sections": []})
    again = decode(*a[:2]), decode(*b[:2])

    assert again[0] == again[1]
    assert [digest(one) for one in again] == [a[2], b[2]]


def test_a_version_is_a_difference_of_its_own(notebook):
    """The same fields mean something else: cents before, euros now."""
    month = notebook.run("@dataclass\nclass Price:\n    n: int")
    codec, text, was = stored(month.Price(100))
    month = notebook.run("@dataclass\nclass Price:\n    __durable_version__ = 2\n    n: int")
    with pytest.raises(UnloadableValue, match="no migration"):
        decode(codec, text)
    durable.migrate(month.Price, from_version=1)(lambda fields: {"n": fields["n"] // 100})
    again = decode(codec, text)

    assert digest(again) == was != digest(month.Price(100))
    assert digest(again) != digest(month.Price(1))


def test_what_is_remembered_goes_with_the_value(notebook, monkeypatch):
    codec, text, was = stored(notebook.run(V1).Report("t", "b"))
    notebook.run(V2 + TO_2)
    monkeypatch.setattr(lineage, "_weak", {})
    again = decode(codec, text)
    assert digest(again) == was

    del again
    gc.collect()

    assert lineage._weak == {}


def test_values_without_weak_references_are_kept_up_to_a_number(notebook, monkeypatch):
    codec, text, was = stored(notebook.run(V1.replace("dataclass", "dataclass(slots=True)")).Report("t", "b"))
    notebook.run(V2.replace("dataclass", "dataclass(slots=True)") + TO_2)
    monkeypatch.setattr(lineage, "_kept", {})
    monkeypatch.setattr(lineage, "MOST", 2)
    again = [decode(codec, text) for _ in range(3)]

    assert [digest(one) == was for one in again] == [False, True, True]


# What is refused when it is written.


def test_another_function_for_the_same_way_is_refused_and_an_edited_one_replaces(notebook):
    codec, text, _ = stored(notebook.run(V1).Report("t", "b"))
    notebook.run(V2 + TO_2)
    month = notebook.run(TO_2.replace('[fields["body"]]', '["edited"]'))

    assert decode(codec, text) == month.Report("t", ["edited"])
    with pytest.raises(UsageError, match=r"from version 1 of reporting.Report: `reporting.to_2` and `reporting.other`"):
        notebook.run(TO_2.replace("to_2", "other"))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("durable.migrate(Report, from_version=2)", "is at version 2"),
        ("durable.migrate(Report, from_version=0)", "whole number from 1"),
        ("durable.migrate(Report, from_version=True)", "whole number from 1"),
        ("durable.migrate('Report', from_version=1)", "takes today's class"),
        ("durable.migrate(Report, from_version=1, from_name=Report)", "from_name"),
        ("durable.migrate(Report, from_version=1)(3)", "plain function"),
        ("import enum\nclass E(enum.Enum): A = 1\ndurable.migrate(E, from_version=1)", "enum"),
        (
            "def f():\n  class L: __durable_version__ = 2\n  durable.migrate(L, from_version=1)\nf()",
            "inside a function",
        ),
        ("class W: __durable_version__ = '2'\ndurable.migrate(W, from_version=1)", "whole number"),
    ],
)
def test_a_migration_that_cannot_be_meant_is_refused(notebook, source, words):
    with pytest.raises(UsageError, match=words):
        notebook.run(V2 + "\n" + source)


def test_a_version_that_is_none_is_refused_when_the_value_is_stored(notebook):
    month = notebook.run(V2.replace("= 2", "= 'two'"))

    with pytest.raises(UnstorableValue, match="no whole number from 1"):
        encode(month.Report("t", []))


def test_a_subclass_has_the_version_of_its_base(notebook):
    """What the base means differently, the subclass does too: it needs a migration of its own."""
    source = "@dataclass\nclass Long(Report):\n    pages: int = 1\n"
    codec, text, _ = stored(notebook.run(V1 + "\n" + source).Long("t", "b"))
    month = notebook.run(V2 + TO_2 + source)

    with pytest.raises(UnloadableValue, match=r"@durable.migrate\(Long, from_version=1\)"):
        decode(codec, text)
    durable.migrate(month.Long, from_version=1)(lambda fields: {**month.to_2(fields), "pages": fields["pages"]})
    assert decode(codec, text) == month.Long("t", ["b"], 1)
