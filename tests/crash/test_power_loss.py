"""The machine loses power at any moment: what a later effect rests on, and what was shown, is on the disk.

The invariant, for every moment at which the power may go:

1. Every effect that has happened has its intent on the disk (intent before effect).
2. The end of a step is on the disk when another step has had an effect whose intent lies behind that end in the log:
   *before the next effect starts, everything before it is flushed*. So never is a completion gone while the effect of a
   later step exists.
3. The end of a step that took over 5 ms is on the disk when the program has its value: *shown means flushed*.
4. Whatever of the rest is there or not, in part or as zeros, the run resumes: not damage, but a torn tail. No step
   whose end was promised to be on the disk is executed again, and every other one at most once more.

An end that no later effect rests on, of a step of less than 5 ms, may be lost: that step is then executed once more.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.crash import programs
from tests.crash.harness import World, plain, refer
from tests.crash.layers import Spec
from tests.crash.power import Disk, Variant, moments_of

NewWorld = Callable[[], World]
VARIANTS: tuple[Variant, ...] = ("strict", "names", "half", "zeros", "holes")


@dataclass
class Life:
    """A life as it was recorded, at one of its moments."""

    steps: dict[str, str]
    """Tag -> idempotency key."""
    intents: dict[str, int]
    """Tag -> seq of its first intent."""
    ends: dict[str, int]
    """Tag -> seq of its end, as far as there is one yet."""
    disk: Disk = field(default_factory=Disk)
    written: int = 0
    """Lines of the journal, flushed or not."""

    def effects(self) -> list[str]:
        """Tags of the effects so far."""
        return [text.partition(" ")[2].rpartition("~")[0] for name, text in self.disk.marks if name == "effects"]

    def state(self) -> str:
        """Equal for moments between which nothing has happened to the disk or outside."""
        disk = self.disk
        return repr((disk.names, disk.flushed_names, disk.flushes, self.written, self.effects(), len(self.promised())))

    def promised(self) -> set[str]:
        """Tags of steps whose end must be on the disk now."""
        behind = max((self.intents[tag] for tag in self.effects()), default=-1)
        seen = {text.rpartition("~")[0] for name, text in self.disk.marks if name == "seen"}
        return {
            tag
            for tag, end in self.ends.items()
            if end < self.written and (end < behind or ("slow" in tag and tag in seen))
        }


def moments(world: World) -> Iterator[tuple[int, Life]]:
    """Every moment of a recorded life."""
    history = world.history()
    tags = {tag: key for key, tag in world.effects()}
    life = Life(
        tags,
        {tag: history.steps[key].intents[0] for tag, key in tags.items()},
        {tag: history.steps[key].end for tag, key in tags.items() if history.steps[key].state != "failed"},
    )
    for number, moment in enumerate(moments_of(world.path)):
        life.disk.apply(moment)
        if moment.kind == "bytes" and moment.what.endswith(".jsonl"):
            life.written = moment.content.count(b"\n")
        yield number, life


@pytest.mark.parametrize("program", programs.SWEPT)
def test_what_an_effect_rests_on_and_what_was_shown_is_on_the_disk(new_world: NewWorld, program: str) -> None:
    """Points 1 to 3, at every moment of a life, by looking at the bytes that were flushed."""
    world = new_world()
    world.finish(program, layer=Spec("record"))

    promises, broken = kept(world)

    assert broken == []
    assert promises >= 10


def test_without_flushes_the_promises_would_be_broken(new_world: NewWorld) -> None:
    """``durability="process"`` promises nothing of the kind, and the measure of these tests can tell."""
    world = new_world()
    world.finish("sync", layer=Spec("record"), durability="process")

    _, broken = kept(world)

    assert any("its intent may be lost" in sentence for sentence in broken)
    assert any("the end of sync slow may be lost" in sentence for sentence in broken)


def kept(world: World) -> tuple[int, list[str]]:
    """How many promises were looked at, at all moments of a life, and what was not kept."""
    promises, broken = 0, []
    for number, life in moments(world):
        lines = [json.loads(line) for line in life.disk.journal().split(b"\n")[:-1]]
        needed = [(life.intents[tag], f"{tag} has happened, its intent may be lost") for tag in life.effects()]
        needed += [(life.ends[tag], f"the end of {tag} may be lost") for tag in life.promised()]
        broken += [f"moment {number}: {sentence}" for seq, sentence in needed if seq >= len(lines)]
        promises += len(needed)
    return promises, broken


@pytest.mark.parametrize(
    ("program", "variant"),
    [
        *(("sync", variant) for variant in VARIANTS),
        *(("large", variant) for variant in ("strict", "names", "zeros")),
        *(("gathered", variant) for variant in ("strict", "half", "holes")),
        ("nested", "strict"),
    ],
)
def test_a_run_resumes_from_what_the_disk_holds(new_world: NewWorld, program: str, variant: Variant) -> None:
    """Point 4: after each moment a new process resumes from the disk as it may be found."""
    reference = refer(new_world(), program)
    world = new_world()
    world.finish(program, layer=Spec("record"))
    seen_before, lost = "", 0

    for _, life in moments(world):
        state = life.state()
        if state == seen_before or not life.disk.names:
            continue
        seen_before = state
        later = new_world()
        life.disk.build(later.log, variant)
        restore(life, later)
        before, promised = later.counts(), life.promised()

        report = later.finish(program)

        assert plain(report.result) == reference.result
        counts = later.counts()
        for tag in promised:
            assert counts[tag] == before[tag], f"{tag} was executed again"
        for tag, usual in reference.counts.items():
            assert usual <= counts[tag] <= usual + 1
        lost += sum((counts - Counter(reference.counts)).values())
        if variant == "strict":
            again = later.finish(program)
            assert (again.live, plain(again.result), later.counts()) == (0, reference.result, counts)
        later.remove()

    assert lost > 0, "a loss of power that loses nothing tests nothing"


@pytest.mark.parametrize("variant", ["strict", "names", "half"])
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "completed"])
def test_loss_of_power_during_a_fold_loses_no_line_and_no_payment(
    new_world: NewWorld, killed: bool, variant: Variant
) -> None:
    """The database is never ahead of the journals: what a killed run had not flushed, the folder flushes first. And a
    journal goes only when database and stub are there for sure.
    """
    reference = refer(new_world(), "sync")
    world = new_world()
    if killed:
        assert world.run("sync", Spec("kill", at=9, when="after", events=True)).signal
    else:
        world.finish("sync")
    before = world.counts()
    world.finish("", layer=Spec("record", at=-1 if killed else 0))
    disk, folds, begun = Disk(), 0, False

    for moment in moments_of(world.path):
        disk.apply(moment)
        begun = begun or moment.what == "begun"
        if not begun or moment.kind in {"name", "database"}:  # DuckDB changes its two files together
            continue
        later = new_world()
        disk.build(later.log, variant)
        for name in ("effects", "seen"):
            (later.path / name).write_bytes((world.path / name).read_bytes())
        report = later.finish("sync", fold=True)
        assert plain(report.result) == reference.result
        for tag, usual in reference.counts.items():
            assert later.counts()[tag] <= usual + (killed and before[tag])
        rows = later.rows()
        assert set(rows.values()) == {1}
        assert sorted(seq for _, seq in rows) == list(range(len(rows)))
        folds += 1
        later.remove()

    assert folds >= 8


def restore(life: Life, world: World) -> None:
    """The outside as it is at a moment of a life: it has power of its own."""
    for name in ("effects", "seen"):
        lines = [text for mark, text in life.disk.marks if mark == name]
        (world.path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
