"""G01, G30: classes of the notebook and of modules, between a crash and the next kernel."""

from __future__ import annotations

import pytest

from tests.cases.conftest import refused

TRIAGE = """
import enum, dataclasses
class Tone(enum.Enum): CALM = 1; URGENT = 2
@dataclasses.dataclass
class Ticket: id: int; tone: Tone
@step
def classify(i): hit("classify"); return Ticket(i, Tone.URGENT)
@step
def page(i): hit("page"); stand("page"); return i
@step
def file_away(i): hit("file_away"); return i
"""
TRIAGE_CELL = """%%durable triage
t = classify(7)
out = page(t.id) if (isinstance(t, Ticket) and t.tone is Tone.URGENT) else file_away(t.id)
"""


def test_g01_dataclass_and_enum_of_the_notebook(case):
    ran = case.killed_and_rerun(TRIAGE, "page", TRIAGE_CELL)

    assert ran.status == "ok", ran.errors
    assert case.effects.tags() == ["classify", "page", "page"]
    assert case.kernel.value("t == Ticket(7, Tone.URGENT), t.tone is Tone.URGENT, out") == (True, True, 7)


KINDS = """
import enum, collections, dataclasses, typing, pydantic
class Tone(enum.Enum): CALM = 1; URGENT = 2
class Mood(enum.StrEnum): GOOD = "good"; BAD = "bad"
class Level(enum.IntEnum): LOW = 1; HIGH = 9
class Access(enum.Flag): READ = 1; WRITE = 2; RUN = 4
class Answer(pydantic.BaseModel):
    text: str
    tone: Tone
class Wrapped(pydantic.BaseModel):
    answers: list[Answer]
class Point(typing.NamedTuple): x: int; tone: Tone
Pair = collections.namedtuple("Pair", "a b")
class Outer:
    class Inner:
        def __init__(self, n): self.n = n
        def __eq__(self, other): return isinstance(other, Outer.Inner) and other.n == self.n
        __hash__ = None
    @dataclasses.dataclass(frozen=True, slots=True)
    class Frozen: n: int; mood: Mood
class Words(list): pass
class Settings(dict): pass
class Slotted:
    __slots__ = ("n",)
    def __init__(self, n): self.n = n
class Refused(Exception):
    def __init__(self, *, code): super().__init__(f"code {code}"); self.code = code
@dataclasses.dataclass
class Shape: sides: int
@dataclasses.dataclass
class Square(Shape): colour: str = "red"
Item = typing.TypeVar("Item")
class Box(pydantic.BaseModel, typing.Generic[Item]): item: Item
MAKERS = {
    "enum": lambda: Tone.URGENT, "strenum": lambda: Mood.BAD, "intenum": lambda: Level.HIGH,
    "flag": lambda: Access.READ | Access.WRITE, "pydantic": lambda: Answer(text="t", tone=Tone.CALM),
    "nested_pydantic": lambda: Wrapped(answers=[Answer(text="t", tone=Tone.URGENT)]),
    "namedtuple": lambda: Point(3, Tone.CALM),
    "old_namedtuple": lambda: Pair(1, Tone.URGENT),
    "nested": lambda: Outer.Inner(4),
    "frozen": lambda: Outer.Frozen(5, Mood.GOOD),
    "list_class": lambda: Words(["a", Tone.CALM]),
    "dict_class": lambda: Settings(tone=Tone.CALM),
    "slots": lambda: Slotted(6),
    "error": lambda: Refused(code=7),
    "subclass": lambda: Square(4, "blue"),
    "class": lambda: Ticket if False else Outer.Inner,
    "generic": lambda: Box[Answer](item=Answer(text="g", tone=Tone.CALM)),
    "in_dict_key": lambda: {Tone.URGENT: [Mood.GOOD]},
    "in_set": lambda: {Outer.Frozen(1, Mood.BAD)}, "both": lambda: [Point(1, Tone.URGENT), {"deep": (Outer.Inner(2),)}],
}
@step
def make(kind): hit(kind); return MAKERS[kind]()
def facts(v):
    return {
        "enum": lambda: v is Tone.URGENT,
        "strenum": lambda: v is Mood.BAD and v == "bad",
        "intenum": lambda: v is Level.HIGH and v > 8,
        "flag": lambda: v is (Access.READ | Access.WRITE) and Access.RUN not in v,
        "pydantic": lambda: type(v) is Answer and v == Answer(text="t", tone=Tone.CALM),
        "nested_pydantic": lambda: type(v.answers[0]) is Answer and v.answers[0].tone is Tone.URGENT,
        "namedtuple": lambda: type(v) is Point and v.x == 3 and v.tone is Tone.CALM,
        "old_namedtuple": lambda: v == Pair(1, Tone.URGENT) and type(v) is Pair,
        "nested": lambda: type(v) is Outer.Inner and v == Outer.Inner(4),
        "frozen": lambda: v == Outer.Frozen(5, Mood.GOOD) and v.mood is Mood.GOOD,
        "list_class": lambda: type(v) is Words and v[1] is Tone.CALM,
        "dict_class": lambda: type(v) is Settings and v["tone"] is Tone.CALM,
        "slots": lambda: type(v) is Slotted and v.n == 6,
        "error": lambda: type(v) is Refused and v.code == 7 and str(v) == "code 7",
        "subclass": lambda: isinstance(v, Shape) and v == Square(4, "blue"), "class": lambda: v is Outer.Inner,
        "generic": lambda: type(v) is Box[Answer] and type(v.item) is Answer,
        "in_dict_key": lambda: v[Tone.URGENT][0] is Mood.GOOD,
        "in_set": lambda: Outer.Frozen(1, Mood.BAD) in v,
        "both": lambda: type(v[0]) is Point and type(v[1]["deep"][0]) is Outer.Inner,
    }
"""
KINDS_CELL = """%%durable kinds
values = {kind: make(kind) for kind in MAKERS}
wrong = [kind for kind, value in values.items() if not facts(value)[kind]()]
match values["namedtuple"], values["both"][0], values["pydantic"]:
    case Point(x=3), Point(tone=Tone.URGENT), Answer(tone=Tone.CALM): matched = True
    case _: matched = False
hold()
wrong, matched
"""


def test_g01_every_kind_of_class_comes_back_as_the_class_that_the_notebook_has(case):
    """Pydantic models, named tuples, nested classes, flags, subclasses, generics, errors; by ``match`` too."""
    ran = case.killed_and_rerun(KINDS, "hold", KINDS_CELL)

    assert ran.results == ["([], True)"], ran.errors
    assert [tag for tag in case.effects.tags() if case.effects.count(tag) > 1] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class Ticket: id: int; tone: Tone", "class Ticket: id: int; tone: Tone; note: str = ''"),
        ("CALM = 1; URGENT = 2", "CALM = 1; PRESSING = 2"),
    ],
    ids=["field added", "member renamed"],
)
def test_g01_a_class_that_was_edited_is_said_and_never_takes_the_other_branch(case, old, new):
    """If the value cannot be bound to the live class, the replay of step 1 must say so."""
    assert old in TRIAGE
    case.open(TRIAGE)
    case.kill_at("page", TRIAGE_CELL)
    edited = TRIAGE.replace(old, new).replace("Tone.URGENT", "Tone.PRESSING" if "PRESSING" in new else "Tone.URGENT")

    ran = case.rerun(TRIAGE_CELL, setup=edited)

    assert ran.status == "error"
    assert ran.reply["ename"] in ("DecisionNeeded", "UnloadableValue")
    assert "triage" in ran.reply["evalue"]
    assert "classify" in ran.reply["evalue"]
    assert case.effects.tags() == ["classify", "page"]


# G30 ----------------------------------------------------------------------------------------------------------------

SHOP = """
import dataclasses, enum
class Size(enum.Enum): SMALL = 1; LARGE = 2
@dataclasses.dataclass
class Item: label: str; size: Size
class Cart:
    def __init__(self): self.items = [Item("book", Size.SMALL)]
"""
SHOP_SETUP = """
import sys
sys.path.insert(0, LIBRARY)
import shopmod
@step
def fill(secret): hit("fill"); return shopmod.Cart()
@step
def order(cart): hit("order"); stand("order"); return type(cart).__name__
"""
INNER_SETUP = SHOP_SETUP.replace("import shopmod\n", "").replace('hit("fill"); ', 'hit("fill"); import shopmod; ')
SHOP_CELL = "%%durable shop\ncart = fill('sk-live-77-secret')\norder(cart)"
EDITS = {
    "class renamed": (lambda text: text.replace("Cart", "Basket"), "shopmod.Cart"),
    "attribute renamed": (lambda text: text.replace("label", "title"), "shopmod.Item"),
    "enum member renamed": (lambda text: text.replace("SMALL", "TINY"), "shopmod.Size"),
    "enum moved": (
        lambda text: text.replace("class Size(", "class All:\n  class Size(").replace("Size.S", "All.Size.S").replace(
            "size: Size", "size: All.Size"), "size was Size and is now All.Size",
    ),
    "module deleted": (lambda text: None, "shopmod"),
}  # fmt: skip


@pytest.fixture
def shop(case, tmp_path):
    """The shop's module, in a library elsewhere or beside the notebook; and the kernel is killed in step 2."""

    def shop(beside):
        library = case.folder if beside else tmp_path / "library"
        library.mkdir(exist_ok=True)  # imported inside of the step, so that the setup cells run without it too
        module = library / "shopmod.py"
        module.write_text(SHOP)
        setup = (SHOP_SETUP if beside else INNER_SETUP).replace("LIBRARY", repr(str(library)))
        case.open(setup, PYTHONDONTWRITEBYTECODE="1")
        case.kill_at("order", SHOP_CELL)
        return module, setup

    return shop


@pytest.mark.parametrize("edit", EDITS)
def test_g30_a_class_moved_or_renamed_between_crash_and_rerun(case, shop, edit):
    change, missing = EDITS[edit]
    module, setup = shop(beside=False)
    before = case.journals()
    if (text := change(SHOP)) is None:
        module.unlink()
    else:
        module.write_text(text)

    ran = case.rerun(SHOP_CELL, setup=setup)

    refused(ran, "UnloadableValue", "`shop`", "`fill`", missing, "back", "fork", hidden=("sk-live-77-secret",))
    assert case.effects.tags() == ["fill", "order"]
    assert {name: text for name, text in case.journals().items() if name in before} == before
    assert case.json("runs")["runs"][0]["name"] == "shop"
    assert [each["name"] for each in case.json("show", "shop")["steps"]] == ["fill", "order"]
    # The first way out: put the name back.
    module.write_text(SHOP)
    assert case.rerun(SHOP_CELL, setup=setup).results == ["'Cart'"]
    assert case.effects.tags() == ["fill", "order", "order"]


def test_g30_a_class_renamed_in_a_module_beside_the_notebook(case, shop):
    """There it is evidence too: the edit is met before the value is looked at; with the old name it resumes."""
    module, _ = shop(beside=True)
    module.write_text(SHOP.replace("Cart", "Basket"))

    ran = case.rerun(SHOP_CELL)
    refused(
        ran, "DecisionNeeded", "`shop`", "`fill`", "put the old code back", "--fresh", hidden=("sk-live-77-secret",)
    )
    assert "recorded results of finished steps are taken" in case.kernel.ok("%durable decide shop reuse").displays[0]
    refused(
        case.kernel.run(SHOP_CELL), "UnloadableValue", "`shop`", "`fill`", "shopmod.Cart", hidden=("sk-live-77-secret",)
    )

    assert case.effects.tags() == ["fill", "order"]
    assert [each["name"] for each in case.json("show", "shop", "--branch", "main")["steps"]] == ["fill", "order"]
    module.write_text(SHOP)
    assert case.rerun(SHOP_CELL).results == ["'Cart'"]
    assert case.effects.tags() == ["fill", "order", "order"]


def test_g30_the_first_message_names_what_is_missing(case, shop):
    """The letter of the case, for the module beside the notebook: run, step, class and ways out in one message."""
    module, _ = shop(beside=True)
    module.write_text(SHOP.replace("Cart", "Basket"))

    ran = case.rerun(SHOP_CELL)

    refused(ran, ran.reply["ename"], "`shop`", "`fill`", "shopmod.Cart", "back", "--fresh")


def test_g30_an_instance_from_before_a_reload_is_no_twin(case):
    """Autoreload: stored by value, an old instance of a class that was made anew would come back as a twin."""
    (case.folder / "shopmod.py").write_text(SHOP)
    case.open(
        SHOP_SETUP.replace("LIBRARY", "os.getcwd()")
        + """
import importlib
old = shopmod.Cart()
importlib.reload(shopmod)
@step
def stale(): hit("stale"); return old
"""
    )

    ran = case.kernel.run("%%durable reload\nc = stale()\nisinstance(c, shopmod.Cart)")

    if ran.status == "ok":
        assert ran.results == ["True"]
    else:
        refused(ran, "UnstorableValue", "`reload`", "`stale`", "in shopmod is another class by now", "DID happen")
    assert case.effects.tags() == ["stale"]
