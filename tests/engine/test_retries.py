"""Retries and deaths: what is used up, and what a person is asked about."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_durable import step
from jupyter_durable.errors import InDoubtError
from tests.engine.harness import MortalLog, World, play

world = World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory, and a world in which nothing has happened."""
    world.clear()
    return MortalLog()


@step(retries=3, backoff=0)
def hopeless() -> None:
    """Fails whenever it is tried."""
    raise ConnectionError(world.hit("try"))


async def once() -> Any:
    """The step ends the cell."""
    hopeless()


@pytest.mark.parametrize(("died_after", "hits"), [(1, 5), (5, 5), (7, 5), (2, 4), (6, 4)])
def test_attempts_that_failed_before_a_death_are_used_up_and_the_one_that_was_cut_is_not(log, died_after, hits):
    """An attempt is two events: its intent and its failure. Between two attempts nothing is cut."""
    assert play(once, log, die_after=died_after).died
    assert isinstance(play(once, log).error, ConnectionError)
    assert len(world.effects) == hits


def test_deaths_use_up_no_retries(log):
    for _ in range(4):
        assert play(once, log, die_after=1).died
    assert isinstance(play(once, log).error, ConnectionError)
    assert len(world.effects) == 4 + 4


def test_after_a_failure_for_good_the_next_execution_has_all_its_retries(log):
    assert isinstance(play(once, log).error, ConnectionError)
    assert isinstance(play(once, log).error, ConnectionError)
    assert len(world.effects) == 8


@step(at_most_once=True, retries=1, backoff=0)
def pay() -> str:
    """Refused at first."""
    if world.hit("pay") == 1:
        raise ConnectionError("refused")
    return "paid"


async def shop() -> str:
    """One payment."""
    return pay()


def test_a_death_between_two_attempts_leaves_nothing_in_doubt(log):
    assert play(shop, log, die_after=2).died
    assert play(shop, log).value == "paid"
    assert world.effects == ["pay", "pay"]


def test_a_death_in_the_second_attempt_is_in_doubt(log):
    assert play(shop, log, die_after=3).died
    assert isinstance(play(shop, log).error, InDoubtError)
    assert world.effects == ["pay", "pay"]
