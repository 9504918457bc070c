"""Hints for panels in output cells: a thread looks at the logs that they ask about, and says that something changed.

It is the watcher of the server without a loop: a kernel's loop stands still while a cell is running.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from jupyter_durable import clock
from jupyter_durable.widget.answering import Desk

logger = logging.getLogger("jupyter_durable")

INTERVAL = 0.4
"""Seconds between two looks."""
_SHARE = 20
"""A look that takes long is followed by a pause of this many times its length."""


class Listener:
    """Who wants hints: a panel."""

    def __init__(self, tell: Callable[[Any], None]) -> None:
        self.tell = tell
        """Takes a `shapes.Hint`. It is called on the thread of the watch."""


class Watch:
    """The thread, while there is somebody to tell and somebody has asked within the last minutes."""

    def __init__(self, desk: Desk, interval: float = INTERVAL) -> None:
        from jupyter_durable.server.watching import Watcher

        self._desk = desk
        self._interval = interval
        self._watcher = Watcher(desk.logs, lambda _: None)
        self._lock = threading.Lock()
        self._listeners: WeakSet[Listener] = WeakSet()
        self._gone: deque[Listener] = deque()
        """Who wants no more hints, and is still among the listeners."""
        self._thread: threading.Thread | None = None
        self._again = threading.Event()
        """Somebody has gone: look whether anybody is left."""

    def add(self, listener: Listener) -> None:
        """Tell this one, until it is gone or removed."""
        with self._lock:
            self._listeners.add(listener)

    def remove(self, listener: Listener) -> None:
        """Do not tell this one any more; after the last one the thread ends.

        Without the lock: the garbage collector closes panels, in whatever thread it runs, also in one that holds it.
        """
        self._gone.append(listener)
        self._again.set()

    def _left(self) -> list[Listener]:
        """Who is left; under the lock."""
        while self._gone:
            self._listeners.discard(self._gone.popleft())
        return list(self._listeners)

    @property
    def thread(self) -> threading.Thread | None:
        """The thread; ``None`` while nothing is watched."""
        with self._lock:
            return self._thread

    def wake(self) -> None:
        """Somebody asks: watch from now on."""
        with self._lock:
            if self._left() and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name="jupyter_durable panel", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        from jupyter_durable.server.watching import WATCHED

        while True:
            with self._lock:
                self._again.clear()
                listeners = self._left()
                lately = clock.monotonic() - WATCHED
                # What is told of itself looks at a log too; only a page that asks counts.
                wanted = self._desk.asked >= lately
                views = self._desk.logs.asked_since(lately) if wanted else []
                if not listeners or not (views or (wanted and self._desk.logs.expected_since(lately))):
                    self._thread = None  # under the lock: a question that comes now starts another
                    return
            began = clock.monotonic()
            self._desk.logs.arrived()
            for view in views:
                for hint in self._watcher.look(view):
                    for listener in listeners:
                        self._tell(listener, hint)
            del listeners  # a panel that nobody holds any more can go
            self._again.wait(max(self._interval, _SHARE * (clock.monotonic() - began)))

    def _tell(self, listener: Listener, hint: Any) -> None:
        try:
            listener.tell(hint)
        except Exception:
            # A front end that has gone is no reason to leave all others without hints.
            logger.exception("jupyter_durable cannot tell a panel that something changed")
