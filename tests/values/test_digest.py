"""Equal values have equal digests, different ones do not; what has no identity is refused."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import enum
import functools
import math
import threading
import types

import numpy as np
import openai
import pandas as pd
import pyarrow as pa
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable.errors import Undigestable
from jupyter_durable.values import comparable, digest


@dataclasses.dataclass
class Ticket:
    id: int
    tags: object = None


@dataclasses.dataclass
class Other:
    id: int
    tags: object = None


class Item(pydantic.BaseModel):
    name: str
    size: int = 1


class Plain:
    def __init__(self, a: object) -> None:
        self.a = a

    @functools.cached_property
    def dear(self) -> int:
        return 1

    def method(self) -> None: ...

    def second(self) -> None: ...


class Slots:
    __slots__ = ("a",)

    def __init__(self, a: object) -> None:
        self.a = a


class Tone(enum.Enum):
    CALM = 1
    URGENT = 2


DIFFERENT = [
    1, 1.0, True, 0, 0.0, -0.0, False, None, math.nan, math.inf, "1", b"1", bytearray(b"1"), 2**64, 2**64 + 1, 1j,
    [], (), {}, set(), frozenset(), [1], (1,), {1}, frozenset({1}), [[1]], [(1,)], ([1],), [1, 2], [2, 1], [12],
    ["a", "b"], ["ab"], ["a,b"], [["a"], "b"], [["a", "b"]], {"a": 1}, {"a": 1.0}, {"a": {"b": 1}}, {"a": 1, "b": 2},
    {1: 2}, {"1": 2}, {True: 2}, {"$": 1}, "a\ud800", "a\ud801", Ticket(1), Ticket(2), Other(1), Item(name="a"),
    Item(name="a", size=2), Plain(1), Plain(2), Slots(1), Slots([1]), Tone.CALM, Tone.URGENT, Ticket, Item, Plain, int,
    np.array([1]), np.array([1.0]), np.array([[1]]), np.int64(1), np.float64(1), np.array([1, 2]), len, sorted,
    collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1), collections.Counter("a"),
    collections.defaultdict(int), collections.defaultdict(list), collections.deque([1]), collections.deque([1], 5),
    pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1]}), pd.DataFrame({"a": [1]}, index=[5]),
    pd.Series([1]), pd.Series([1], name="x"), pa.table({"a": [1]}), pa.table({"a": [1.0]}), types.SimpleNamespace(a=1),
    functools.partial(int, base=2), functools.partial(int, base=3), Plain(1).method, Plain(2).method, Plain(1).second,
    lambda: 1, lambda: 2, lambda x: 1, lambda x=1: 1, range(3), slice(3), ..., NotImplemented, "a".upper, "b".upper,
    ValueError("a"), ValueError("b"), KeyError("a"), OSError(2, "a", "b"), OSError(2, "a", "c"),
]  # fmt: skip


def test_different_values_have_different_digests():
    digests = collections.Counter(digest(one) for one in DIFFERENT)

    twice = [one for one in DIFFERENT if digests[digest(one)] > 1]
    assert twice == []
    assert all(len(one) == 22 and one.replace("-", "").replace("_", "").isalnum() for one in digests)


def test_equal_values_have_equal_digests():
    pairs = [
        (["alpha", "beta"], ["ALPHA".lower(), "BETA".lower()]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1: {"x"}, "b": 2}, {"b": 2, 1: {"x"}}),
        (math.nan, -math.nan),
        ({3, "a", (1,)}, {(1,), 3, "a"}),
        (np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3))),
        (np.arange(10)[::2], np.arange(0, 10, 2)),
        (pd.DataFrame({"a": ["x", None]}), pd.DataFrame({"a": ["x", None]}).copy()),
        (pa.chunked_array([[1], [2]]), pa.chunked_array([[1, 2]])),
        (Ticket(1, [{"a"}]), Ticket(1, [{"a"}])),
        (Item(name="a"), Item(name="a", size=1)),
        (lambda x: x + 1, lambda x: (x   +  1)),
    ]  # fmt: skip
    for left, right in pairs:
        assert digest(left) == digest(right), left


def test_an_object_at_two_places_and_two_equal_objects_are_the_same_value():
    shared = [{1}]

    assert digest([shared, shared]) == digest([[{1}], [{1}]])


def test_cycles_have_a_digest():
    def make(n):
        cycle: list[object] = [n]
        cycle.append({"back": cycle})
        return cycle

    assert digest(make(1)) == digest(make(1)) != digest(make(2))


def test_reading_a_cached_property_is_no_change():
    one = Plain(1)
    before = digest(one)

    assert one.dear == 1
    assert digest(one) == before


def test_a_function_counts_with_its_closure_and_defaults():
    def make(n):
        def inner(x):
            return x + n

        return inner

    assert digest(make(1)) == digest(make(1)) != digest(make(2))


def test_two_lambdas_of_one_line_are_told_apart():
    one, two = (lambda x: x + 1), (lambda x: x + 2)

    assert digest(one) != digest(two)


def test_state_that_c_code_keeps_is_seen():
    assert digest(np.random.default_rng(1)) != digest(np.random.default_rng(2))


@pytest.mark.parametrize(
    ("value", "path", "type_"),
    [
        (threading.Lock(), "value", "_thread.lock"),
        ({"a": [1, threading.Lock()]}, "value['a'][1]", "_thread.lock"),
        (Ticket(1, (x for x in [])), "value.tags", "generator"),
        (Plain({1: object()}), "value.a[...]", "object"),
        ((openai.OpenAI(api_key="sk-fake"),), "value[0]", "openai.OpenAI"),
        (functools.partial(print, asyncio.Lock()), "value.args[0]", "asyncio.Lock"),
    ],
)
def test_what_has_no_identity_is_refused_with_its_place(value, path, type_):
    with pytest.raises(Undigestable) as caught:
        digest(value)

    assert (caught.value.path, caught.value.type) == (path, type_)
    assert "key=" in str(caught.value)


def test_an_open_file_has_no_digest(tmp_path):
    with (tmp_path / "a").open("w") as file, pytest.raises(Undigestable):
        digest(file)


def test_a_value_nested_too_deep_is_refused():
    value: list[object] = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(Undigestable, match="nested too deep"):
        digest(value)


def test_deep_but_sane_nesting_has_a_digest():
    value: list[object] = []
    for _ in range(150):
        value = [value]

    assert digest(value) != digest([value])


def test_comparable_is_decided_by_type_and_size():
    assert comparable([1, {"a"}]) == digest([1, {"a"}])
    assert comparable(list(range(60_000))) == "?list"
    assert comparable("x" * 20_000_000) == "?str"
    assert comparable(np.zeros(3_000_000)) == "?ndarray"
    assert comparable(pd.DataFrame({"a": range(3_000_000)})) == "?DataFrame"
    assert comparable(Plain("x" * 20_000_000)) == "?Plain"
    assert comparable(np.zeros(100_000)) == digest(np.zeros(100_000))
    assert comparable(openai.OpenAI(api_key="sk-fake")) == "?OpenAI"
    assert comparable([threading.Lock()]) == "?list"
    assert comparable({"a": [1] * 100}, max_nodes=50) == "?dict"


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


def rebuilt(value):
    """An equal value that shares no object with the first, with dicts in another order."""
    if isinstance(value, list):
        return [rebuilt(one) for one in value]
    if isinstance(value, tuple):
        return tuple(rebuilt(one) for one in value)
    if isinstance(value, dict):
        return {rebuilt(key): rebuilt(one) for key, one in reversed(value.items())}
    if isinstance(value, str):
        return "".join(list(value))
    return value


@given(plain)
def test_a_digest_depends_on_the_value_alone(value):
    assert digest(value) == digest(rebuilt(value)) == digest(value)


@given(plain, plain)
def test_digests_are_equal_only_for_values_that_read_the_same(left, right):
    def exact(value):
        if isinstance(value, dict):
            return "dict", sorted((exact(key), exact(one)) for key, one in value.items())
        if isinstance(value, list | tuple):
            return type(value).__name__, [exact(one) for one in value]
        return type(value).__name__, "nan" if isinstance(value, float) and math.isnan(value) else repr(value)

    assert (digest(left) == digest(right)) == (repr(exact(left)) == repr(exact(right)))
