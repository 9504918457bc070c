"""Fifty SIGKILLs from outside, at moments that nobody has chosen: whatever the process is doing, it resumes.

The parent waits for a message of the child (a step has begun, a value was shown), then for a random number of further
ones, then kills. The seed decides the number; the rest is the machine's. These logs lie on a real disk.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash import programs
from tests.crash.harness import Server, Watch, World, refer
from tests.crash.server import Job

NewWorld = Callable[[], World]
KILLS = 50
PARTS = 5


def kill_after(world: World, program: str, messages: int) -> None:
    """Start a life, and kill it behind so many messages. It may have come to its end until then, but is not gone."""
    pipe = world.path / "messages"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(pipe, os.O_WRONLY)  # else there would be an end of file between two messages
    os.set_blocking(reading, True)
    try:
        pid = world.server.ask(world.job(program, do="start", stay=True)).pid
        with os.fdopen(os.dup(reading), "rb") as lines:
            for _ in range(messages):
                lines.readline()
        os.kill(pid, signal.SIGKILL)
        report = world.server.ask(Job(do="wait", pid=pid, world=str(world.path)))
    finally:
        os.close(reading)
        os.close(writing)
        pipe.unlink()
    assert report.signal == signal.SIGKILL


@pytest.mark.parametrize("part", range(PARTS))
def test_random_kills_are_survived(new_world: NewWorld, server: Server, tmp_path: Path, part: int) -> None:
    """Completed steps executed twice: 0. Wrong values: 0."""
    choose = random.Random(f"kills {part}")

    for number in range(KILLS // PARTS):
        program = choose.choice(programs.SWEPT)
        reference = refer(new_world(), program)
        world = World(server, tmp_path / f"world {number}")
        watch = Watch(reference, world)
        messages = 1 + choose.randrange(sum(reference.counts.values()))
        kill_after(world, program, messages)
        watch.died()
        watch.finished(world.finish(program))
        watch.replays()
