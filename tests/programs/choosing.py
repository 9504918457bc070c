"""Programs and stories, chosen by hypothesis. What comes first in a choice is what a failure shrinks to."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.programs.language import Approve, Call, Chance, Child, Fn, Many, Map, Node, Program, Same, Sleep, WaitFor
from tests.programs.story import Act, Answer, Clock, Fold, Fork, Live, Post, Send, Story

Nodes = st.SearchStrategy[tuple[Node, ...]]
NAMES = st.sampled_from(["paid", "sent"])
QUESTIONS = st.sampled_from(["Go?", "Stop?"])
ARGS = st.integers(0, 1)


def some(node: st.SearchStrategy[Node], most: int, least: int = 0) -> Nodes:
    """A few nodes, one after the other."""
    return st.lists(node, min_size=least, max_size=most).map(tuple)


def calls(usable: list[int]) -> st.SearchStrategy[Node]:
    """Calls of these functions; most failures are caught, since an uncaught one costs a life."""
    return st.builds(Call, st.sampled_from(usable), ARGS, st.booleans())


def maps(usable: list[int]) -> st.SearchStrategy[Node]:
    """Maps of these functions."""
    items = st.lists(st.integers(0, 2), max_size=3).map(tuple)
    return st.builds(Map, st.sampled_from(usable), items, st.integers(1, 3))


CHANCES = st.builds(Chance, st.sampled_from(["now", "random", "uuid"]))
WAITS: st.SearchStrategy[Node] = st.one_of(
    st.builds(WaitFor, NAMES),
    st.builds(Approve, QUESTIONS, st.sampled_from([0, 0, 4])),
    st.builds(Sleep, st.integers(1, 5)),
)


def children(part: Nodes) -> st.SearchStrategy[Node]:
    """Child runs; some have equal names."""
    return st.builds(Child, st.sampled_from(["ada", "bob"]), part)


def beside(part: Nodes) -> st.SearchStrategy[Node]:
    """Coroutines beside each other."""
    parts = st.lists(part, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Many, st.sampled_from(["gather", "group"]), parts),
        st.builds(Same, st.integers(1, 3), part),
    )


def races(awaiting: list[int]) -> st.SearchStrategy[Node]:
    """Coroutines whose order of ends is shown to the program. Each ends with an asynchronous step: what plain code does
    after that, or instead, is in no history, and its order is its own.
    """
    parts = st.lists(some(calls(awaiting), 2, 1), min_size=1, max_size=3).map(tuple)
    return st.builds(Many, st.just("as_completed"), parts)


def inside(awaits: bool, usable: list[int]) -> Nodes:
    """What a body is made of: no waits."""
    if not usable:
        return some(CHANCES, 1)
    simple = st.one_of(calls(usable), CHANCES, maps(usable))
    if awaits:
        return some(st.one_of(simple, beside(some(st.one_of(calls(usable), CHANCES), 2))), 2)
    return some(simple, 2)


@st.composite
def programs(draw: st.DrawFn, waits: bool = True) -> Program:
    """Small programs."""
    awaits = draw(st.booleans())
    fns: list[Fn] = []
    for _ in range(draw(st.integers(1, 3))):
        own = awaits and draw(st.booleans())
        usable = [number for number, fn in enumerate(fns) if own or not fn.awaits]
        fails, retries = draw(st.sampled_from([0, 0, 0, 1, 2])), draw(st.sampled_from([0, 0, 1]))
        fns.append(Fn(own, fails, retries, draw(st.integers(0, 2)) if own else 0, draw(inside(own, usable))))
    usable = [number for number, fn in enumerate(fns) if awaits or not fn.awaits]
    usable_in_threads = [number for number, fn in enumerate(fns) if not fn.awaits]
    simple = [calls(usable), CHANCES, maps(usable), *([WAITS, WAITS] if waits else [])]
    node = st.one_of(simple)
    awaiting = [number for number, fn in enumerate(fns) if fn.awaits]
    if awaits:
        simple += [races(awaiting)] if awaiting else []
        simple += [children(some(st.one_of(simple), 2))]
        node = st.one_of(*simple, beside(some(st.one_of(*simple, beside(some(st.one_of(simple), 2))), 2)))
    elif usable_in_threads:
        parts = st.lists(some(st.one_of(calls(usable_in_threads), CHANCES), 2), min_size=1, max_size=3).map(tuple)
        kids = children(some(st.one_of(*simple, children(some(st.one_of(simple), 2))), 2))
        node = st.one_of(*simple, kids, st.builds(Many, st.just("threads"), parts))
    return Program(tuple(fns), draw(some(node, 4, 1)), awaits)


POSTS: st.SearchStrategy[Post] = st.one_of(
    st.builds(Send, NAMES, st.booleans()),
    st.builds(Answer, st.integers(0, 2), st.integers(0, 2), st.booleans()),
    st.builds(Clock, st.sampled_from([1, 3, 6, -2])),
)

LIVES: st.SearchStrategy[Act] = st.builds(
    Live,
    st.one_of(st.none(), st.integers(0, 25)),
    st.lists(st.tuples(st.integers(0, 12), POSTS), max_size=2).map(tuple),
    st.booleans(),
)


def stories(waits: bool = True) -> st.SearchStrategy[Story]:
    """Stories: lives and deaths, and what happens outside between them."""
    acts = st.one_of(LIVES, LIVES, POSTS, st.builds(Fork, st.integers(0, 9)), st.just(Fold())) if waits else LIVES
    return st.builds(Story, programs(waits), st.lists(acts, max_size=6).map(tuple), st.integers(0, 9))
