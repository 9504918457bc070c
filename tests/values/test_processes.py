"""Values of notebook classes cross from one process to another; in one process a twin would look right."""

from __future__ import annotations

import base64
import json
import re

import pytest

SETUP = """
import collections, dataclasses, enum, functools, sys, typing
import pydantic

class Tone(enum.Enum):
    CALM = 1
    URGENT = 2

class Right(enum.Flag):
    READ = 1
    WRITE = 2

@dataclasses.dataclass
class Ticket:
    id: int
    tone: Tone

@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int

class Item(pydantic.BaseModel):
    name: str
    tone: Tone = Tone.CALM

class Refused(Exception):
    def __init__(self, *, code):
        super().__init__(f"refused: {code}")
        self.code = code

class Outer:
    class Inner:
        def __init__(self, a): self.a = a

class Pair(typing.NamedTuple):
    left: int
    right: Tone

class Slotted:
    __slots__ = ("a",)
    def __init__(self, a): self.a = a

class Plain:
    def __init__(self, a): self.a = a
    def method(self): return self.a

class MyDict(dict): pass

def helper(x): return x + 1

def make_adder(n):
    return lambda x: helper(x) + n
"""

DUMP = """
from jupyter_durable.values import encode_verified
encoded, restored = encode_verified(VALUE)
assert not encoded.blobs
print(encoded.codec); print(encoded.text.decode())
"""

LOAD = """
from jupyter_durable.values import decode
from jupyter_durable.errors import UnloadableValue
x = decode(CODEC, TEXT)
assert CHECK, x
print("right")
"""

KINDS = {
    "dataclass": ("Ticket(7, Tone.URGENT)", "x == Ticket(7, Tone.URGENT) and x.tone is Tone.URGENT"),
    "frozen dataclass with slots": ("Point(3)", "x == Point(3) and type(x) is Point"),
    "enum member": ("Tone.URGENT", "x is Tone.URGENT"),
    "flags": ("Right.READ | Right.WRITE", "x is Right.READ | Right.WRITE and Right.READ in x"),
    "pydantic model": ("Item(name='a', tone=Tone.URGENT)", "x == Item(name='a', tone=Tone.URGENT)"),
    "nested class": ("Outer.Inner(1)", "type(x) is Outer.Inner and x.a == 1"),
    "named tuple": ("Pair(1, Tone.CALM)", "isinstance(x, Pair) and x.right is Tone.CALM"),
    "slots": ("Slotted(1)", "type(x) is Slotted and x.a == 1"),
    "plain object": ("Plain([Tone.CALM])", "type(x) is Plain and x.a[0] is Tone.CALM"),
    "dict keyed by enum": ("{Tone.CALM: 1}", "x[Tone.CALM] == 1"),
    "set of enum": ("{Tone.CALM, Tone.URGENT}", "x == set(Tone) and Tone.CALM in x"),
    "subclass of dict": ("MyDict(a=1)", "type(x) is MyDict and x == {'a': 1}"),
    "bound method": ("Plain(5).method", "x() == 5 and isinstance(x.__self__, Plain)"),
    "partial": ("functools.partial(helper, 2)", "x() == 3 and x.func is helper"),
    "function": ("helper", "x is helper"),
    "class": ("Ticket", "x is Ticket"),
    "closure over a function": ("make_adder(10)", "x(1) == 12"),
    "deep": ("{'a': [Plain(Ticket(1, Tone.CALM))]}", "x['a'][0].a.tone is Tone.CALM"),
    "defaultdict": ("collections.defaultdict(Ticket, a=1)", "x.default_factory is Ticket"),
}


def dumped(in_process, value, setup=SETUP, **how):
    codec, text = in_process(f"{setup}\nVALUE = {value}\n{DUMP}", **how).splitlines()
    return codec, text.encode()


def load(in_process, stored, check="True", setup=SETUP, script=LOAD, **how):
    codec, text = stored
    body = script.replace("CHECK", check)
    return in_process(f"{setup}\nCODEC = {codec!r}\nTEXT = {text!r}\n{body}", **how).strip()


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_the_notebook_come_back_as_todays_classes(in_process, kind):
    value, check = KINDS[kind]

    stored = dumped(in_process, value)

    assert load(in_process, stored, check) == "right"


def test_an_exception_of_the_notebook_is_caught_by_except(in_process):
    script = f"""{SETUP}
import msgspec
from jupyter_durable.values import describe_error
try:
    raise Refused(code=4) from KeyError("k")
except Refused as error:
    info, encoded = describe_error(error)
print(encoded.text.decode())
"""
    text = in_process(script).strip().encode()

    script = """
from jupyter_durable.values import decode
try:
    raise decode(CODEC, TEXT)
except Refused as error:
    print(error, error.code, repr(error.__cause__))
"""

    assert load(in_process, ("tagged", text), script=script) == "refused: 4 4 KeyError('k')"


SAY_ERROR = """
from jupyter_durable.values import decode
from jupyter_durable.errors import UnloadableValue
try:
    decode(CODEC, TEXT)
except UnloadableValue as error:
    print(error.missing, "|", error.reason, "|", error)
"""


@pytest.mark.parametrize("value", ["Ticket(1, Tone.CALM)", "Plain(1)", "[Tone.CALM]"])
def test_a_class_that_is_not_defined_yet_is_named_with_a_way_out(in_process, value):
    stored = dumped(in_process, value)

    said = load(in_process, stored, setup="", script=SAY_ERROR)

    name = value.strip("[").partition("(")[0].partition(".")[0]
    assert said.startswith(f"{name} | not defined")
    assert "Run the cell that defines it" in said
    assert "--fresh" in said


CHANGES = {
    "enum value changed": ("Ticket(1, Tone.CALM)", "URGENT = 2", "URGENT = 3", "Tone",
                           "member URGENT has another value"),
    "enum member gone": ("[Tone.URGENT]", "    URGENT = 2\n", "", "Tone", "member URGENT is gone"),
    "field added": ("Ticket(1, Tone.CALM)", "    tone: Tone\n", "    tone: Tone\n    more: int = 0\n", "Ticket",
                    "field more was added"),
    "field removed": ("Item(name='a')", "    name: str\n", "", "Item", "field name was removed"),
    "field of another type": ("Point(3)", "    x: int", "    x: str", "Point", "field x was int and is now str"),
    "slot renamed": ("Slotted(1)", '__slots__ = ("a",)', '__slots__ = ("b",)', "Slotted", "field a was removed"),
    "other base": ("MyDict(a=1)", "class MyDict(dict)", "class MyDict(collections.OrderedDict)", "MyDict",
                   "it inherited from builtins.dict"),
    "method gone": ("Plain(1)", "def method(self): return self.a", "pass", "Plain", "method method is gone"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_class_is_told_before_anything_is_built(in_process, change):
    value, old, new, name, reason = CHANGES[change]
    assert old in SETUP
    stored = dumped(in_process, value)

    said = load(in_process, stored, setup=SETUP.replace(old, new), script=SAY_ERROR)

    assert said.startswith(name + " | ")
    assert reason in said


def test_a_new_method_or_member_does_not_make_a_stored_value_unreadable(in_process):
    stored = dumped(in_process, "[Ticket(1, Tone.CALM), Plain(2)]")
    more = "    URGENT = 2\n    LATER = 3\n\n    def label(self): return self.name\n"
    setup = SETUP.replace("    URGENT = 2\n", more)
    setup = setup.replace("    def method(self)", "    def other(self): pass\n    def method(self)")

    assert load(in_process, stored, "x[0].tone is Tone.CALM and x[1].a == 2", setup=setup) == "right"


def test_a_class_renamed_in_a_module_is_named_and_an_alias_puts_it_right(in_process, tmp_path):
    module = tmp_path / "shopmod.py"
    module.write_text("class Cart:\n    def __init__(self): self.n = 1\n")
    stored = dumped(in_process, "shopmod.Cart()", setup="import shopmod")

    module.write_text("class Basket:\n    def __init__(self): self.n = 1\n")
    said = load(in_process, stored, setup="import shopmod", script=SAY_ERROR)
    module.write_text("class Basket:\n    def __init__(self): self.n = 1\nCart = Basket\n")

    assert said.startswith("shopmod.Cart | shopmod has no Cart")
    assert "Put the name back" in said
    assert load(in_process, stored, "type(x) is shopmod.Basket", setup="import shopmod") == "right"


def test_a_key_of_the_notebook_never_enters_a_payload(in_process):
    script = """
API_KEY = "sk-live-8842-zzz"
class Lookup:
    def call(self, q): return (API_KEY, q)
def plain(q): return API_KEY
from jupyter_durable.values import encode, salvage
import json
for value in [Lookup(), Lookup().call, plain, [Lookup], {"a": Lookup()}]:
    print(encode(value).text.decode())
from jupyter_durable.errors import UnstorableValue
import base64, re
for value in [lambda q: (API_KEY, q), [lambda: [API_KEY]], (lambda: (lambda: API_KEY))]:
    try:
        encode(value)
    except UnstorableValue as error:
        print("refused:", error)
    print(salvage(value).text.decode())
"""
    out = in_process(script)

    pickles = b"".join(base64.b64decode(one) for one in re.findall(r'"v":"([A-Za-z0-9+/=]+)"', out))
    assert "8842" not in out
    assert b"8842" not in pickles
    assert out.count("refused:") == 3
    assert "captures global `API_KEY`" in out


def test_an_instance_of_a_class_whose_cell_was_run_again_is_refused(in_process):
    script = (
        SETUP
        + """
from jupyter_durable.values import encode
from jupyter_durable.errors import UnstorableValue
old = [Plain(1), Ticket(1, Tone.CALM), Item(name="a")]
class Plain:
    def __init__(self, a): self.a = a
@dataclasses.dataclass
class Ticket:
    id: int
    tone: Tone
class Item(pydantic.BaseModel):
    name: str
def make():
    class Local: pass
    return Local()
for value in [*old, make()]:
    try:
        encode({"x": value}); print("stored")
    except UnstorableValue as error:
        print(error.path, error.type, "|", error.advice)
"""
    )

    lines = in_process(script).splitlines()

    assert [line.partition(" |")[0] for line in lines[:3]] == [
        "result['x'] Plain", "result['x'] Ticket", "result['x'] Item",
    ]  # fmt: skip
    assert all("make the object again" in line for line in lines[:3])
    assert lines[3] == "result['x'] make.<locals>.Local | define the class at the top level of a cell or module"


def test_an_instance_from_before_a_reload_of_its_module_is_refused(in_process, tmp_path):
    (tmp_path / "shopmod.py").write_text("class Cart: pass\n")
    script = """
import importlib, shopmod
old = shopmod.Cart()
importlib.reload(shopmod)
from jupyter_durable.values import encode
from jupyter_durable.errors import UnstorableValue
try:
    encode(old); print("stored")
except UnstorableValue as error:
    print(error)
"""

    said = in_process(script)

    assert "run again since" in said
    assert "make the object again" in said


def test_code_by_value_of_another_python_version_is_not_loaded(in_process):
    stored = dumped(in_process, "make_adder(1)")
    other = stored[1].replace(b'"python":"3.', b'"python":"2.')

    said = load(in_process, (stored[0], other), script=SAY_ERROR)

    assert "could kill the kernel" in said


DIGESTS = (
    SETUP
    + """
import datetime, decimal, json, pathlib, re, uuid, zoneinfo
import numpy as np
from jupyter_durable.values import digest

def captured(key): return lambda x: (key, x)
cycle = [1]; cycle.append(cycle)
values = {
    "set": {"alpha", "beta", "gamma", "delta"},
    "nested sets": {frozenset({"a", "b"}), frozenset({"c", "d"})},
    "dict": {"b": 1, "a": [1, 2.5, None, True]},
    "mixed keys": {1: "a", "b": 2, (1, "c"): {"x", "y"}},
    "dataclass": Ticket(1, Tone.URGENT),
    "frozen": Point(1),
    "pydantic": Item(name="a"),
    "enum": Tone.CALM,
    "flag": Right.READ | Right.WRITE,
    "plain": Plain({"a", "b"}),
    "slots": Slotted([1]),
    "subclass": MyDict(a={"x", "y"}),
    "pair": Pair(1, Tone.CALM),
    "class": Ticket,
    "function": helper,
    "lambda": captured("k"),
    "partial": functools.partial(helper, 1),
    "method": Plain(1).method,
    "builtin": len,
    "array": np.arange(5.0),
    "array of objects": np.array([1, "a"], dtype=object),
    "scalar": np.float32(1.5),
    "dates": [datetime.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")), datetime.timedelta(1)],
    "numbers": [2**70, decimal.Decimal("1.10"), float("nan"), -0.0, 1j, uuid.UUID(int=1)],
    "others": [pathlib.PurePosixPath("a"), re.compile("a"), range(3), slice(1), ..., b"x", bytearray(b"y")],
    "error": Refused(code=3),
    "cycle": cycle,
    "counter": collections.Counter("aab"),
    "views": [{"a": 1}.keys(), {"a": 1}.items()],
}
print(json.dumps({name: digest(value) for name, value in values.items()}))
"""
)


def test_digests_are_equal_in_every_process_and_python_version(in_process, other_python):
    first = json.loads(in_process(DIGESTS, hash_seed="1"))

    second = json.loads(in_process(DIGESTS, python=other_python, hash_seed="2"))

    assert second == first
    assert len(set(first.values())) == len(first)


def test_values_cross_from_one_python_version_to_another(in_process, other_python):
    kinds = [kind for kind in KINDS if kind != "closure over a function"]

    for kind in kinds:
        value, check = KINDS[kind]
        assert load(in_process, dumped(in_process, value), check, python=other_python) == "right"
