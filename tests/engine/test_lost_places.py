"""Threads in which code has put the context of their starter back, as pools of frameworks do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from jupyter_durable import step
from tests.engine.harness import MortalLog, World, play


def in_context_of_starter(fn, items):
    """Map as LangChain's pool does: each job runs in a copy of the context of the whole call."""
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda item: contexts.pop().run(fn, item), items))


def program_of(world):
    @step(name="look")
    def look(word):
        world.hit(f"first {word}")
        return word

    return using(world, look)


def edited(world):
    @step(name="look")
    def look(word):
        world.hit(f"edited {word}")
        return word

    return using(world, look)


def using(world, look):
    @step(name="book")
    def book(words):
        world.hit("book")
        return words

    async def program():
        return book(in_context_of_starter(look, ["a", "b"]))

    return program


def test_steps_in_them_are_recorded_and_replayed():
    world, log = World(), MortalLog()
    first = play(program_of(world), log)
    again = play(program_of(world), log)

    assert first.value == again.value == ["a", "b"]
    assert again.live == 0
    assert sorted(world.effects) == ["book", "first a", "first b"]


def test_a_difference_that_one_of_them_meets_is_one_for_what_its_starter_does_next():
    world, log = World(), MortalLog()
    play(program_of(world), log)
    play(edited(world), log, reuse="none")

    assert sorted(world.effects) == ["book", "book", "edited a", "edited b", "first a", "first b"]
