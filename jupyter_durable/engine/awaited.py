"""What the words give inside a coroutine: something to ``await``, which says so when it is used in another way.

``if durable.approve("Pay?"):`` without ``await`` would be true for every answer, and without one. So what must be
awaited has no truth, no order and no items, and the end of the cell tells of one that nobody has awaited.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Generator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from jupyter_durable.errors import UsageError

if TYPE_CHECKING:
    from jupyter_durable.engine.execution import Execution

_OF_COROUTINES = frozenset({"__name__", "__qualname__", "cr_await", "cr_code", "cr_frame", "cr_origin", "cr_running"})
"""What asyncio, anyio and debuggers look at."""


class Awaited(Coroutine[Any, Any, Any]):
    """A coroutine of ours, under the eyes of its execution."""

    __slots__ = ("__weakref__", "_coroutine", "_execution", "place", "word")

    def __init__(self, execution: Execution, word: str, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._execution = execution
        self._coroutine = coroutine
        self.word = word
        self.place = _place(execution)
        """Where it was made, for people."""
        execution.unawaited[id(self)] = self

    def taken(self) -> None:
        """Somebody awaits it, or a task runs it."""
        self._execution.unawaited.pop(id(self), None)

    def __await__(self) -> Generator[Any, Any, Any]:
        self.taken()
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        """As of a coroutine."""
        __tracebackhide__ = True
        self.taken()
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """As of a coroutine."""
        __tracebackhide__ = True
        self.taken()
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """As of a coroutine."""
        self.taken()
        self._coroutine.close()

    def _refuse(self, *_: Any) -> NoReturn:
        raise UsageError(self.said(), word=self.word)

    __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = __reduce__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = _refuse
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Awaited):
            self._refuse()
        return self is other

    def __getattr__(self, name: str) -> Any:
        if name in _OF_COROUTINES:
            return getattr(self._coroutine, name)
        raise AttributeError(self.said(f"it has no `{name}`"))

    def __repr__(self) -> str:
        return f"<{self.word}: to be awaited>"

    def said(self, then: str = "it is no answer yet") -> str:
        """That it must be awaited."""
        return f"`{self.word}` in {self.place} was used without `await`: {then}. Write `await {self.word}(...)`."


def never_awaited(execution: Execution) -> UsageError | None:
    """What the end of a cell must say about words that nobody has awaited; they are over then."""
    left = list(execution.unawaited.values())
    for each in left:
        each.close()
    if not left:
        return None
    where = ", ".join(f"`{each.word}` in {each.place}" for each in left[:5])
    more = f" and {len(left) - 5} more" if len(left) > 5 else ""
    return UsageError(
        f"{execution.place_of_run()}: {where}{more} {'was' if len(left) == 1 else 'were'} never awaited, so nothing "
        f"was asked or waited for there. Write `await {left[0].word}(...)`.",
        **execution.where, word=left[0].word,
    )  # fmt: skip


def _place(execution: Execution) -> str:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("jupyter_durable."):
        frame = frame.f_back
    if frame is None:
        return "the cell"
    code = frame.f_code
    line = f"line {frame.f_lineno}"
    if code.co_filename != execution.spec.file and Path(code.co_filename).is_file():
        line += f" of {Path(code.co_filename).name}"
    return line if code.co_name.startswith("<") else f"{line} (`{code.co_name}`)"
