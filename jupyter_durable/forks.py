"""Where a branch begins anew, by ``--from`` or because a person has forked it there. Pure.

What comes before the step is kept, the step and what follows is executed. A finished step that has it inside is entered
again, and what lies before it in there is kept, too.
"""

from __future__ import annotations

from jupyter_durable.call import Call, Policy
from jupyter_durable.entries import Entry
from jupyter_durable.history import History
from jupyter_durable.keys import Key, inner_scope


class Beginning:
    """The step of the branch of origin at which its new branch begins anew; there may be none."""

    def __init__(self, own: History, source: History | None, policy: Policy) -> None:
        self._named = policy.from_step if source is not None else ""
        self._entry = source.by_seq.get(policy.fork_at) if source is not None and policy.fork_at >= 0 else None
        self._source = source
        self.ahead = False
        """It is still to come: what is met until then is kept."""
        self._around: set[Key] = set()
        if source is None or not (self._named or self._entry is not None):
            return
        # An earlier execution of this branch may have come past it: then it was executed here, not taken over.
        executed = (entry for entry in own.entries.values() if entry.adopted is None)
        self.ahead = not any(self._is(entry.key, source.entries.get(entry.key)) for entry in executed)
        if self._entry is not None:
            inside = f"{self._entry.key.scope}/"
            entries = source.entries.values()
            self._around = {each.key for each in entries if inside.startswith(f"{inner_scope(each.key)}/")}

    @property
    def label(self) -> str:
        """The step as people say it."""
        return self._entry.label if self._entry is not None else f"`{self._named}`"

    def _is(self, key: Key, entry: Entry | None) -> bool:
        if entry is not None and entry is self._entry:
            return True
        number = "" if entry is None else str(entry.begun)
        label = key.name if key.n == 0 else f"{key.name}#{key.n}"
        return self._named != "" and self._named in (key.name, label, number)

    def comes_before(self, entry: Entry) -> bool:
        """Whether the branch begins anew before an entry of the origin was asked for there."""
        if self._source is None or not (self._named or self._entry is not None):
            return False
        begun = (each.begun for each in self._source.entries.values() if self._is(each.key, each))
        return entry.begun > min(begun, default=entry.begun)

    def met(self, call: Call, entry: Entry) -> bool:
        """Whether a call is the one; that is so once.

        Args:
            call: the call.
            entry: what the branch of origin has recorded of it.
        """
        if not self.ahead or not (entry is self._entry or self._is(call.key, entry)):
            return False
        self.ahead = False
        return True

    def lies_in(self, entry: Entry) -> bool:
        """Whether it is still to come, inside of this step of the origin."""
        return self.ahead and entry.key in self._around
