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
from hypothesis import HealthCheck, given

from jupyter_durable.engine import waits
from tests.programs.choosing import stories
from tests.programs.lives import MortalLocal, MortalMemory
from tests.programs.story import Story, Telling

MANY = hypothesis.settings.default.max_examples if hypothesis.settings.default is not None else 100
in_memory = hypothesis.settings(suppress_health_check=list(HealthCheck), max_examples=MANY * 6 // 10)
on_a_disk = hypothesis.settings(in_memory, max_examples=MANY // 12)  # each takes several times as long there


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


@in_memory
@given(story=stories())
def test_a_story_in_memory_comes_to_its_right_end(story: Story) -> None:
    """The quick half."""
    hypothesis.note(str(story))
    Telling(story, MortalMemory()).tell()


@on_a_disk
@given(story=stories())
def test_a_story_on_a_disk_comes_to_its_right_end(story: Story, ground: Path) -> None:
    """The same over journals, locks, the inbox and the database."""
    hypothesis.note(str(story))
    folder = ground / str(next(numbers))
    try:
        Telling(story, MortalLocal(folder)).tell()
    finally:
        shutil.rmtree(folder)
