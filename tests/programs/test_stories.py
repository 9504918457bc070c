"""Random programs live, die, wait, are answered and forked: nothing twice, nothing lost, nothing wrong.

Programs are chosen by hypothesis, run by the real engine over real logs, and die after any event they write. What must
hold of them is in `laws` and `model`. To look for more: ``--hypothesis-profile=search --timeout 0``.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, example, given

from jupyter_durable.engine import waits
from tests.programs.choosing import stories
from tests.programs.language import Approve, Call, Fn, Many, Program, WaitFor
from tests.programs.lives import MortalLocal, MortalMemory
from tests.programs.story import Answer, Fork, Live, Send, Story, Telling

MANY = hypothesis.settings.default.max_examples if hypothesis.settings.default is not None else 100
in_memory = hypothesis.settings(suppress_health_check=list(HealthCheck), max_examples=MANY * 2 // 3)
on_a_disk = hypothesis.settings(in_memory, max_examples=MANY // 8)  # each takes several times as long there


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """A wait looks at its inbox every millisecond, since nobody real is waiting."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waits, "EVERY", 0.001)
        yield


@pytest.fixture(scope="module")
def ground() -> Iterator[Path]:
    """Where logs are made: in memory if there is such a place, since the disk takes no part in these deaths."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="durable-programs-", dir=memory if memory.is_dir() else None) as path:
        yield Path(path)


numbers = itertools.count()
# A thread in which a process died has nobody to tell.
pytestmark = pytest.mark.filterwarnings(
    "ignore:(?s)Exception in thread durable-map.*Died:pytest.PytestUnhandledThreadExceptionWarning"
)


TWO_QUESTIONS = Program(
    (Fn(),), (Many("gather", ((Approve("Go?"), Call(0, 0)), (Approve("Go?"), Call(0, 1)))),), awaits=True
)
SECOND_FIRST = Story(TWO_QUESTIONS, (Live(), Answer(1, 1, twice=True), Live(die=4), Live()))
CAUGHT = Story(Program((Fn(fails=1), Fn()), (Call(0, 0, caught=True), Call(1, 0))), (Live(die=5), Live(), Fork(1)))
PAID = Story(Program((Fn(),), (WaitFor("paid"), WaitFor("paid"))), (Live(), Send("paid", twice=True), Live(die=2)))


@in_memory
@example(story=SECOND_FIRST)
@example(story=CAUGHT)
@example(story=PAID)
@given(story=stories())
def test_a_story_in_memory_comes_to_its_right_end(story: Story) -> None:
    """The quick half."""
    hypothesis.note(str(story))
    Telling(story, MortalMemory()).tell()


@on_a_disk
@example(story=SECOND_FIRST)
@example(story=PAID)
@given(story=stories())
def test_a_story_on_a_disk_comes_to_its_right_end(story: Story, ground: Path) -> None:
    """The same over journals, locks, the inbox and the database."""
    hypothesis.note(str(story))
    folder = ground / str(next(numbers))
    try:
        Telling(story, MortalLocal(folder)).tell()
    finally:
        shutil.rmtree(folder)
