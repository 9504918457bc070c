"""The child runs of one execution that are inside of their blocks right now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_durable.call import Adopt, Call, Place, Recorded, Verdict

if TYPE_CHECKING:
    from jupyter_durable.engine.child import Child
    from jupyter_durable.engine.execution import Execution
    from jupyter_durable.event_data import Signal


class Children:
    """The child runs of an execution that have begun and not ended."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._by_place: dict[int, Child] = {}

    def __bool__(self) -> bool:
        return bool(self._by_place)

    def entered(self, child: Child) -> None:
        """A child run has begun."""
        self._by_place[id(child.place)] = child
        self._execution.cancel_watch.child_entered()

    def left(self, child: Child) -> None:
        """It has ended."""
        self._by_place.pop(id(child.place), None)

    def of_request(self, request: str) -> Child | None:
        """The one with this id."""
        return next((child for child in list(self._by_place.values()) if child.request == request), None)

    def around(self, place: Place | None) -> Child | None:
        """The innermost one that a place lies in."""
        if not self._by_place:
            return None
        while place is not None:
            child = self._by_place.get(id(place))
            if child is not None:
                return child
            place = place.parent
        return None

    def is_meant(self, signal: Signal, place: Place) -> bool:
        """Whether a signal for a child run is for the innermost one that a place lies in."""
        child = self.around(place)
        return child is not None and child.is_meant(signal)

    def check(self, call: Call, verdict: Verdict) -> None:
        """Refuse what a cancelled child run has not done before it was cancelled.

        Raises:
            ChildCancelled: that is so.
        """
        place: Place | None = call.place
        while (child := self.around(place)) is not None:
            done = isinstance(verdict, Recorded | Adopt) and verdict.entry.state in ("completed", "failed")
            if child.error is not None and not done:
                raise child.error
            place = child.place.parent
