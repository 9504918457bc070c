"""What is stored comes back equal, of the same type."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import math
import pathlib
import re
import types
import typing
import uuid
import zoneinfo

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pydantic
import pytest
from hypothesis import given

from jupyter_durable.errors import UnstorableValue
from jupyter_durable.values import decode, digest, encode, encode_verified


class Tone(enum.Enum):
    CALM = 1
    URGENT = 2


class Weight(enum.IntEnum):
    LIGHT = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Loud(enum.StrEnum):
    YES = "yes"


@dataclasses.dataclass
class Ticket:
    id: int
    tone: Tone = Tone.CALM
    tags: list[str] = dataclasses.field(default_factory=list)
    seed: dataclasses.InitVar[int] = 0
    later: int = dataclasses.field(init=False)

    def __post_init__(self, seed: int) -> None:
        self.later = self.id + seed


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float = 0.0


@dataclasses.dataclass(frozen=True)
class Point3(Point):
    z: float = 0.0


@dataclasses.dataclass
class Hooked:
    n: int

    def __getstate__(self) -> dict[str, int]:
        return {"n": self.n}

    def __setstate__(self, state: dict[str, int]) -> None:
        self.n = state["n"]
        self.restored = True


class Pair(typing.NamedTuple):
    left: int
    right: str


Old = collections.namedtuple("Old", "a b")  # noqa: PYI024


class Item(pydantic.BaseModel):
    name: str
    price: decimal.Decimal = decimal.Decimal(1)
    _note: str = pydantic.PrivateAttr("n")


class Open(pydantic.BaseModel, extra="allow"):
    items: list[Item] = []


T = typing.TypeVar("T")


class Box(pydantic.BaseModel, typing.Generic[T]):
    content: T


class Slotted:
    __slots__ = ("__hidden", "a")

    def __init__(self, a: int) -> None:
        self.a = a
        self.__hidden = a + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted) and (other.a, other.__hidden) == (self.a, self.__hidden)

    __hash__ = None


class Plain:
    def __init__(self, a: object) -> None:
        self.a = a

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain) and other.a == self.a

    __hash__ = None

    def method(self) -> object:
        return self.a


class MyList(list):
    pass


class MyDict(dict):
    pass


class MyStr(str):
    __slots__ = ("extra",)


class MyInt(int):
    pass


class MyFloat(float):
    pass


class MyBytes(bytes):
    pass


def helper(x: int) -> int:
    return x + 1


def with_attributes() -> MyStr:
    text = MyStr("a")
    text.extra = [1]
    return text


SIMPLE = {
    "none": None,
    "true": True,
    "int": 7,
    "largest int": 2**64 - 1,
    "big int": 2**64,
    "huge int": -(10**5000),
    "float": 1.5,
    "infinity": -math.inf,
    "text": "héllo",
    "half a surrogate": "a\ud800b",
    "key with half a surrogate": {"a\ud800": 1},
    "list": [1, [2, {}]],
    "dict": {"a": {"b": None}},
    "dollar key": {"$": "tuple", "v": [1]},
    "dollar key inside": [{"$": 1}],
    "int keys": {1: "a", None: 2, (1, 2): 3},
    "bool keys": {True: 4},
    "tuple": (1, (2,), ()),
    "set": {1, "a", (2,)},
    "frozenset": frozenset({1, frozenset({2})}),
    "bytes": b"\x00\xff",
    "bytearray": bytearray(b"ab"),
    "complex": 1 - 2j,
    "ellipsis": ...,
    "not implemented": NotImplemented,
    "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
    "counter": collections.Counter("aab"),
    "defaultdict": collections.defaultdict(list, {"a": [1]}),
    "defaultdict without factory": collections.defaultdict(None, {"a": 1}),
    "deque": collections.deque([1, 2], maxlen=3),
    "date": dt.date(2026, 11, 30),
    "datetime": dt.datetime(2026, 11, 30, 1, 2, 3, 4),
    "datetime fold": dt.datetime(2026, 10, 25, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"), fold=1),
    "datetime utc": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    "time": dt.time(1, 2, tzinfo=dt.timezone(dt.timedelta(hours=-3), "X")),
    "timedelta": dt.timedelta(days=-1, microseconds=3),
    "zone": zoneinfo.ZoneInfo("Asia/Tokyo"),
    "decimal": decimal.Decimal("1.10"),
    "decimal infinity": decimal.Decimal("-Infinity"),
    "fraction": fractions.Fraction(1, 3**60),
    "uuid": uuid.UUID(int=5),
    "path": pathlib.Path("a/b"),
    "pure windows path": pathlib.PureWindowsPath("c:/x"),
    "range": range(0, 2**70, 3),
    "slice": slice(1, None, (2,)),
    "pattern": re.compile("a+", re.IGNORECASE),
    "bytes pattern": re.compile(rb"\d"),
    "namespace": types.SimpleNamespace(a=1, b=[2]),
    "enum": Tone.URGENT,
    "int enum": Weight.LIGHT,
    "str enum": Loud.YES,
    "flag": Right.READ,
    "flags": Right.READ | Right.WRITE,
    "no flag": Right(0),
    "enum key": {Tone.CALM: {Tone.URGENT}},
    "dataclass": Ticket(1, Tone.URGENT, ["a"], seed=5),
    "frozen slots": Point(1.0, -0.0),
    "frozen dataclass that inherits": Point3(1.0, 2.0, 3.0),
    "dataclass with hooks": Hooked(3),
    "named tuple": Pair(1, "b"),
    "old named tuple": Old(1, [2]),
    "pydantic": Item(name="a"),
    "pydantic with extra": Open(items=[Item(name="b", price=2)], more={1: 2}),
    "generic pydantic": Box[Item](content=Item(name="c")),
    "slots": Slotted(1),
    "plain": Plain([1, Tone.CALM]),
    "list subclass": MyList([1, 2]),
    "dict subclass": MyDict({1: 2}),
    "str subclass": MyStr("a"),
    "int subclass": MyInt(2**70),
    "float subclass": MyFloat(1.5),
    "bytes subclass": MyBytes(b"a"),
    "class": Ticket,
    "builtin class": int,
    "hidden builtin class": types.NoneType,
    "function": helper,
    "builtin function": len,
    "module": math,
    "generic alias": list[int],
    "arrow table": pa.table({"a": [1, None], "b": ["x", "y"]}),
    "record batch": pa.record_batch({"a": [1, 2]}),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_comes_back_equal_and_of_the_same_type(name):
    value = SIMPLE[name]

    encoded, restored = encode_verified(value)

    again = decode(encoded.codec, encoded.text, encoded.blobs.__getitem__)
    assert type(restored) is type(again) is type(value)
    assert restored == again == value
    assert digest(again) == digest(value) or name == "dataclass with hooks"  # its hook adds an attribute


def test_plain_json_means_itself():
    value = {"a": [1, -0.0, "x", None, True], "b": {"c": 2.5}}

    encoded = encode(value)

    assert (encoded.codec, encoded.blobs) == ("json", {})
    assert encoded.text == b'{"a":[1,-0.0,"x",null,true],"b":{"c":2.5}}'


def test_zeros_keep_their_sign_and_numbers_their_kind():
    restored = encode_verified([-0.0, 0.0, 1, 1.0, True])[1]

    assert [math.copysign(1, one) for one in restored[:2]] == [-1, 1]
    assert [type(one) for one in restored[2:]] == [int, float, bool]


def test_nan_comes_back():
    restored = encode_verified([math.nan, (math.inf, complex(math.nan, -0.0))])[1]

    assert math.isnan(restored[0])
    assert math.isinf(restored[1][0])
    assert math.copysign(1, restored[1][1].imag) == -1


def test_the_first_run_gets_a_copy_never_the_value_itself():
    value = {"a": [1]}

    _, restored = encode_verified(value)

    assert restored == value
    assert restored["a"] is not value["a"]


@pytest.mark.parametrize("codec_of", ["json-like", "tagged"])
def test_one_object_at_two_places_stays_one_object(codec_of):
    shared = [1]
    value = [shared, shared] if codec_of == "json-like" else (shared, {"k": shared})

    restored = encode_verified(value)[1]
    other = restored[1] if codec_of == "json-like" else restored[1]["k"]

    assert restored[0] is other


def test_a_cycle_stays_a_cycle():
    value: list[object] = [1]
    value.append(value)

    restored = encode_verified(value)[1]

    assert restored[1] is restored


def test_an_object_shared_between_a_pickled_and_a_structural_part_stays_one():
    shared = [1]

    restored = encode_verified({"list": shared, "object": Plain(shared)})[1]

    assert restored["object"].a is restored["list"]


def test_two_pickled_parts_share_what_they_shared():
    shared = [1]

    restored = encode_verified((Plain(shared), Plain(shared)))[1]

    assert restored[0].a is restored[1].a


def test_attributes_of_builtin_subclasses_come_back():
    restored = encode_verified(with_attributes())[1]

    assert (restored, restored.extra) == ("a", [1])


def test_a_dataclass_is_rebuilt_without_its_constructor_and_with_additional_attributes():
    ticket = Ticket(1, seed=4)
    ticket.later, ticket.added = 99, "x"  # type: ignore[attr-defined]

    restored = encode_verified(ticket)[1]

    assert (restored.later, restored.added) == (99, "x")


def test_a_dataclass_with_an_unset_field_comes_back_with_it_unset():
    ticket = Ticket(1)
    del ticket.later

    assert not hasattr(encode_verified(ticket)[1], "later")


def test_own_pickling_hooks_are_honoured():
    assert encode_verified(Hooked(1))[1].restored is True


def test_pydantic_keeps_which_fields_were_set_and_its_private_attributes():
    item = Item(name="a")
    item._note = "changed"

    restored = encode_verified(item)[1]

    assert restored.model_fields_set == {"name"}
    assert restored._note == "changed"


def test_bound_methods_and_partials_come_back():
    method = encode_verified(Plain(3).method)[1]
    partial = encode_verified(functools.partial(helper, 4))[1]

    assert (method(), partial()) == (3, 5)


ARRAYS = {
    "floats": np.arange(6.0).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "strided": np.arange(10)[::3],
    "zero dimensions": np.array(3),
    "empty": np.zeros((0, 4), dtype="int8"),
    "text": np.array(["a", "bcd"]),
    "times": np.array(["2026-11-30"], dtype="datetime64[ns]"),
    "structured": np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
    "nan": np.array([np.nan, -0.0]),
    "objects": np.array([1, "a", None], dtype=object),
    "large": np.arange(10_000),
    "masked": np.ma.array([1, 2], mask=[False, True]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_come_back_with_type_and_content(name):
    array = ARRAYS[name]

    encoded, restored = encode_verified(array)

    assert (type(restored), restored.dtype, restored.shape) == (type(array), array.dtype, array.shape)
    assert restored.tolist() == array.tolist() or name == "nan"
    assert digest(restored) == digest(array)
    assert (len(encoded.blobs) == 1) == (name == "large")


@pytest.mark.parametrize("kind", ["float64", "float32", "int8", "bool", "datetime64[us]", "complex64", "U3", "S2"])
def test_array_scalars_keep_their_type(kind):
    scalar = np.ones(1, dtype=kind)[0]

    restored = encode_verified({"x": scalar})[1]["x"]

    assert type(restored) is type(scalar)
    assert (restored, restored.dtype) == (scalar, scalar.dtype)


FRAMES = {
    "plain": pd.DataFrame({"a": [1, 2], "b": [0.5, None], "c": ["x", "y"]}),
    "dates": pd.DataFrame({"a": [1, 2]}, index=pd.date_range("2026-01-01", periods=2, tz="Europe/Berlin")),
    "category": pd.DataFrame({"a": pd.Categorical(["x", "y"], ordered=True)}),
    "mixed": pd.DataFrame({"a": [1, "x"]}),
    "int columns": pd.DataFrame([[1, 2]]),
    "multi": pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([(1, "b")], names=["i", None])),
    "nullable": pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
    "empty": pd.DataFrame(),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_come_back_with_types_and_index(name):
    frame = FRAMES[name]
    frame.attrs = {"source": "test"}

    restored = encode_verified(frame)[1]

    pd.testing.assert_frame_equal(frame, restored, check_freq=True)
    assert (restored.attrs, list(restored.dtypes)) == (frame.attrs, list(frame.dtypes))
    assert digest(restored) == digest(frame)


def test_an_ordinary_frame_is_stored_as_arrow_without_a_pickle():
    assert b'"$":"dataframe"' in encode(pd.DataFrame({"a": [1, 2]})).text


def test_series_come_back():
    series = pd.Series([1, 2], name=("a", 1))

    pd.testing.assert_series_equal(encode_verified(series)[1], series)


def test_large_bytes_go_to_blobs_named_by_their_content():
    data = b"x" * 40_000

    encoded, restored = encode_verified({"a": data, "b": data})

    assert len(encoded.blobs) == 1
    assert len(encoded.text) < 300
    assert restored == {"a": data, "b": data}


def test_a_value_nested_too_deep_is_refused_not_crashed_on():
    value: list[object] = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(UnstorableValue, match="nested too deep"):
        encode_verified(value)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(codec=None, categories=None)),
    st.binary(max_size=20),
    st.datetimes(timezones=st.none() | st.timezones()),
    st.dates(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.uuids(),
    st.sampled_from([Tone.CALM, Right.READ | Right.WRITE, Point(1.0), Pair(1, "a")]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=3) | st.just("$"), inner, max_size=4),
        st.dictionaries(scalars, inner, max_size=3),
        st.sets(scalars, max_size=4),
        st.frozensets(scalars, max_size=3),
        st.builds(Plain, inner),
        st.builds(lambda one: Ticket(1, tags=one), st.lists(inner, max_size=2)),
    ),
    max_leaves=12,
)


def same(a: object, b: object) -> bool:
    """Equal, with equal types all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(x, y) and same(a[x], b[y]) for x, y in zip(a, b, strict=True))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    if isinstance(a, Plain):
        return same(a.a, b.a)
    return a == b


@given(values)
def test_every_value_comes_back_the_same(value):
    encoded, restored = encode_verified(value)

    assert same(restored, value)
    assert same(decode(encoded.codec, encoded.text, encoded.blobs.__getitem__), value)


@given(values)
def test_a_restored_value_has_the_digest_of_the_first(value):
    assert digest(encode_verified(value)[1]) == digest(value)
