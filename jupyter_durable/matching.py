"""Which recorded entry a live call is: by its own place first, then by an unclaimed sibling. Pure.

Tasks made from a set, or by a library on conditions, are numbered differently from run to run. So a live place
binds to a recorded one at its first match, and everything below it follows; places of different parents are
never exchanged. Every entry is handed out at most once in an execution.
"""

from __future__ import annotations

from jupyter_durable.call import Call, Place
from jupyter_durable.entries import Entry
from jupyter_durable.history import History
from jupyter_durable.keys import Key, stem


class Matcher:
    """What was handed out of the histories of one execution, and which live place is which recorded one."""

    def __init__(self, *histories: History) -> None:
        self._histories = histories
        self._served: set[int] = set()
        self._left: dict[tuple[int, str], int] = {}
        self._claimed: dict[str, Place] = {}
        self._pure: dict[int, dict[tuple[str, str], list[Entry]]] = {}
        self._elsewhere: dict[int, dict[tuple[str, str, str], list[Entry]]] = {}
        for history in histories:
            for scope, entries in history.scopes.items():
                self._left[id(history), scope] = len(entries)

    def is_served(self, entry: Entry) -> bool:
        """Whether an entry was handed out or continued."""
        return id(entry) in self._served

    def find(self, history: History, call: Call) -> Entry | None:
        """The unserved entry of a call: in its own place first, then in a sibling that nobody has claimed."""
        for scope in self.candidates(history, call.place):
            entry = history.entries.get(Key(scope, call.name, call.digest, call.n))
            if entry is not None and id(entry) not in self._served:
                self._bind(call.place, scope)
                call.key = entry.key
                return entry
        return None

    def knows(self, history: History, call: Call) -> bool:
        """Whether `find`, or `find_elsewhere` for a thread, would find something."""
        for scope in self.candidates(history, call.place):
            entry = history.entries.get(Key(scope, call.name, call.digest, call.n))
            if entry is not None and id(entry) not in self._served:
                return True
        return call.place.loose and self.find_elsewhere(history, call) is not None

    def find_elsewhere(self, history: History, call: Call) -> Entry | None:
        """The oldest unserved entry of an equal call in any thread beside this one.

        Threads that take work from one queue take it differently each time. Equal calls get an answer each.
        """
        index = self._elsewhere.get(id(history))
        if index is None:
            index = self._elsewhere[id(history)] = {}
            for entry in sorted(history.entries.values(), key=lambda e: e.begun):
                index.setdefault((stem(entry.key.scope), entry.key.name, entry.key.digest), []).append(entry)
        for around in self._around(history, call.place):
            for entry in index.get((around, call.name, call.digest), ()):
                if id(entry) not in self._served:
                    call.key = entry.key
                    return entry
        return None

    def find_pure(self, history: History, call: Call) -> Entry | None:
        """The oldest unserved result of an equal call that depends on nothing but its arguments, wherever it was made.

        Only for what comes after a difference: before it, a call is what it is by its place.
        """
        index = self._pure.get(id(history))
        if index is None:
            index = self._pure[id(history)] = {}
            for entry in sorted(history.entries.values(), key=lambda e: e.begun):
                if entry.pure and entry.state == "completed":
                    index.setdefault((entry.key.name, entry.key.digest), []).append(entry)
        for entry in index.get((call.name, call.digest), ()):
            if id(entry) not in self._served and entry.evidence == call.evidence and entry.kind == call.kind:
                return entry
        return None

    def _around(self, history: History, place: Place) -> list[str]:
        if place.parent is None:
            return []
        element = place.path.rpartition("/")[2]
        parents = self.candidates(history, place.parent)
        return [stem(f"{parent}/{element}" if parent else element) for parent in parents]

    def candidates(self, history: History, place: Place) -> list[str]:
        """The recorded scopes that a live place may be, likeliest first."""
        if place.bound is not None:
            return [place.bound]
        assert place.parent is not None
        element = place.path.rpartition("/")[2]
        found: list[str] = []
        for around in self.candidates(history, place.parent):
            exact = f"{around}/{element}" if around else element
            known = history.siblings.get(stem(exact), {})
            scopes = [exact, *(s for s in known if s != exact)] if exact in known else list(known)
            if place.is_step:
                scopes = [s for s in scopes if s == exact]
            found += [s for s in scopes if s not in self._claimed]
        return found

    def _bind(self, place: Place, scope: str) -> None:
        """From its first match on, a live place and all that is below it is the recorded one."""
        while place.bound is None and place.parent is not None:
            place.bound = scope
            self._claimed[scope] = place
            place, scope = place.parent, scope.rpartition("/")[0]

    def serve(self, history: History, entry: Entry) -> None:
        """Note that an entry was handed out or continued; each is at most once in an execution."""
        if id(entry) not in self._served:
            self._served.add(id(entry))
            where = (id(history), entry.key.scope)
            self._left[where] = self._left.get(where, 0) - 1

    def reopen(self, scope: str) -> None:
        """A new attempt of an outer step begins: what lies inside it may be handed out again."""
        for history in self._histories:
            for inner, entries in history.scopes.items():
                if inner == scope or inner.startswith(scope + "/"):
                    self._served.difference_update(id(e) for e in entries)
                    self._left[id(history), inner] = len(entries)
                    self._claimed.pop(inner, None)

    def has_unserved(self, history: History, scope: str) -> bool:
        """Whether there are such."""
        return self._left.get((id(history), scope), 0) > 0

    def unserved(self, history: History, scope: str) -> list[Entry]:
        """Entries of a scope that were not asked for yet, oldest first."""
        if not self.has_unserved(history, scope):
            return []
        return [e for e in history.scopes.get(scope, ()) if id(e) not in self._served]

    def has_more(self, history: History, place: Place) -> bool:
        """Whether a history goes on, in a place, behind all that was asked for there."""
        for scope in self.candidates(history, place):
            if self.has_unserved(history, scope):
                entries = history.scopes.get(scope, ())
                asked = max((e.begun for e in entries if id(e) in self._served), default=-1)
                if any(e.begun > asked and id(e) not in self._served for e in entries):
                    return True
        return False

    def begun(self, history: History, entry: Entry) -> None:
        """Note an entry that this execution has added to a history: it counts as handed out."""
        self._left[id(history), entry.key.scope] = self._left.get((id(history), entry.key.scope), 0) + 1
        self.serve(history, entry)
