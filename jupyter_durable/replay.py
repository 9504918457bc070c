"""What to do about a call: return what is recorded, take it over, execute it, or stop. Pure.

`Replay.ask` knows no clock, does no I/O, changes only its own bookkeeping; the runner acts on the verdict. Three meet:

* the branch's *own* history: what it holds is returned; what contradicts it is nondeterminism;
* the history of the *origin*, if the branch was made because code or inputs changed: what comes before the
  first difference is taken over, what comes after it only by the rules of `Replay._after_difference`;
* neither knows the call: it is new and is executed.

A difference is *causal*: it taints the place (task, thread or step body) that met it, what that place starts
later, and whoever consumes its result. Twenty gathered chains and an edit in one leave nineteen untouched.
"""

from __future__ import annotations

from jupyter_durable import stops
from jupyter_durable.attempts import (
    CANCELLED_BEFORE,
    LAPSED,
    OF_FAILED_ATTEMPT,
    is_cancelled_with_the_cell,
    is_of_failed_attempt,
    is_retried,
    not_stored,
)
from jupyter_durable.call import (
    HELPERS,
    LATER,
    NEW,
    RUN,
    WAITS,
    Adopt,
    Branch,
    Call,
    Execute,
    Place,
    Policy,
    Recorded,
    Reuse,
    Stop,
    Verdict,
)
from jupyter_durable.entries import Entry
from jupyter_durable.forks import Beginning
from jupyter_durable.history import History
from jupyter_durable.matching import Matcher
from jupyter_durable.reusing import REUSED, is_changed, is_let_pass, keeps, needs_nobody

UNDONE = "undone on the branch of origin"
"""Why a step is executed that has a result there: its effect is no more."""


class Replay:
    """The bookkeeping of one execution: what was served, what differs."""

    def __init__(self, own: History, source: History | None = None, policy: Policy | None = None) -> None:
        self.own = own
        self.source = source
        self.policy = policy or Policy()
        self.differences: list[str] = []
        """Sentences about the differences met, first one first."""
        self.relaxed = False
        """The order of parallel steps could not be kept on this replay."""
        self.match = Matcher(own) if source is None else Matcher(own, source)
        self.anew = Beginning(own, source, self.policy)

    def ask(self, call: Call, *, early: bool = False) -> Verdict:
        """Decide about a call. The runner must act on the verdict before this place asks again.

        Args:
            call: the call.
            early: it is an asynchronous one, made now and begun later. Intents lie in the order in which steps were
                begun, which may be another than that of the calls (``asyncio.as_completed`` starts its tasks in any
                order), so that it is too early to call a difference nondeterminism.
        """
        place = call.place
        if place.bound is not None:
            entry = self.own.entries.get(call.key)
            if entry is not None and self.match.is_served(entry):
                entry = None
        else:
            entry = self.match.find(self.own, call)
        if entry is None and place.loose:
            entry = self.match.find_elsewhere(self.own, call)
        if entry is not None:
            return self._own(entry, call)
        if place.loose:
            self._keep_apart(call)
        if (stop := self._contradiction(call)) is not None:
            return LATER if early and not self.own.completed_branch() else stop
        if self.source is not None:
            return self._from_source(self.source, call)
        if self.policy.replay_only:
            return self._replay_only(call)
        return NEW

    def _keep_apart(self, call: Call) -> None:
        """Give a new call of a thread a key of its own: another thread may have used up the recorded one."""
        while call.key in self.own.entries:
            call.n += 1
            call.key = call.key._replace(n=call.n)

    def begun(self, seq: int, event: object) -> None:
        """A step inside a step was begun: a second attempt of the outer one in this execution may meet it again."""
        self.own.apply(seq, event)
        entry = self.own.by_seq[seq]
        if not self.match.is_served(entry):
            self.match.begun(self.own, entry)

    def never_asked(self) -> list[Entry]:
        """Finished entries of the own history that the program has not asked for, outside of finished steps."""
        starts = (what for what, is_end in self.own.order() if not is_end)
        return [e for e in starts if isinstance(e, Entry) and e.finished and not self.match.is_served(e)]

    # The own history ---------------------------------------------------------------------------------------------

    def _own(self, entry: Entry, call: Call) -> Verdict:
        let_pass = False
        if is_changed(entry, call):
            let_pass = is_let_pass(entry, call)
            if (stop := self._forbidden(entry, call)) is not None:
                return stop
            if not let_pass:
                return Branch(f"the code that {entry.label} depends on has changed")
        self.match.serve(self.own, entry)
        if self.source is not None:
            self._retrace(self.source, entry, call.place)
        if call.kind == RUN:
            return Recorded(entry)
        if is_of_failed_attempt(self.own, entry, call.place):
            return self._replay_only(call) if self.policy.replay_only else Execute(OF_FAILED_ATTEMPT, entry)
        if is_cancelled_with_the_cell(self.own, entry):
            return self._again(entry, call)
        if entry.state in ("completed", "cancelled"):
            why = "taken over from another branch" if entry.adopted else "recorded"
            return Recorded(entry, REUSED if let_pass else why)
        if entry.state == "not_stored":
            return not_stored(entry)
        if entry.state == "failed" and not is_retried(self.own, entry, call):
            return Recorded(entry, "recorded failure that the program caught")
        return self._again(entry, call)

    def _forbidden(self, entry: Entry, call: Call) -> Stop | None:
        """The stop at a finished step with changed code, where its author wants one and no flag says otherwise."""
        if call.on_code_change != "error" or not entry.finished or self.policy.by_flag:
            return None
        return self._replay_only(call, asks=True) if self.policy.replay_only else stops.changed_code(entry)

    def _retrace(self, source: History, entry: Entry, place: Place) -> None:
        """What earlier executions of this branch did with the origin holds for this one too: used up, or different."""
        twin = source.entries.get(entry.key)
        if twin is not None:
            self.match.serve(source, twin)
        if twin is not None and self.anew.lies_in(twin):
            return
        if entry.adopted is None and (twin is None or twin.finished):
            place.taint()

    def _again(self, entry: Entry, call: Call) -> Verdict:
        """An entry without a value that must now be executed: in doubt, or a failure to be tried again."""
        settled = entry.settlement is not None and entry.settlement.choice == "rerun"
        if self.policy.replay_only:
            asks = call.at_most_once and not (settled or entry.state == "failed" or entry.between_attempts)
            return self._replay_only(call, asks=asks)
        if call.kind in WAITS:
            return Execute(LAPSED if entry.state == "failed" else "", entry)
        if entry.state == "failed":
            later = [e for e in self.own.after(entry) if not e.pure and not self.match.is_served(e)]
            if later and self._reuse(entry.key.name) == "ask" and not entry.key.scope:
                return stops.failed_before(entry, later)
            return Execute(f"tried again: attempt {entry.attempts} failed", entry)
        if entry.between_attempts and not settled:
            return Execute(f"attempt {entry.attempts} failed", entry)
        if call.at_most_once and not settled:
            return stops.in_doubt(entry)
        whys = {"open": "begun before, end not known", "cancelled": CANCELLED_BEFORE}
        why = whys.get(entry.state, "interrupted before its end")
        return Execute("a person said: run it again" if settled else why, entry)

    def _contradiction(self, call: Call) -> Verdict | None:
        """The own history has something else to come in this place: stop before any effect."""
        place = call.place
        if place.loose:
            return None  # what is to come here may be taken by another thread, and this call be new
        if place.bound is not None:
            scope = place.bound
            if not self.match.has_unserved(self.own, scope):
                return None
        else:
            scopes = self.match.candidates(self.own, place)
            if not scopes:
                return None
            scope = scopes[0]
        waiting = self.match.unserved(self.own, scope)
        if not waiting:
            return None
        first = waiting[0]
        same_name = next((e for e in waiting if e.key.name == call.name), None)
        asked = f"{call.label} with other arguments" if same_name is not None else call.label
        named = (first,) if same_name is None or same_name is first else (first, same_name)
        where = f" in {scope}" if scope else ""
        if self.own.completed_branch():
            if not self.policy.causes:
                reason = f"history has {first.label}{where}, the cell asks for {asked}: an outside input changed"
                return Branch(reason, same_name)
            return stops.changed_outside(first, named, where, asked, self._likely())
        return stops.nondeterminism(first, named, where, asked, self._likely(), in_script=self.policy.in_script)

    def _likely(self) -> str:
        said = []
        if self.relaxed:
            said.append("the order of parallel steps could not be kept on this replay")
        if self.policy.causes:
            said.append("the cell calls " + ", ".join(f"`{c}`" for c in self.policy.causes) + " outside of a step")
        for _, notice in self.own.notices:
            if notice.kind in ("mutated_argument", "mutated_global"):
                said.append(notice.message.rstrip("."))
        return f" Likely cause: {'; '.join(dict.fromkeys(said))}." if said else ""

    def _replay_only(self, call: Call, *, asks: bool = False) -> Stop:
        return stops.replay_only(call.label, asks=asks)

    # The history of origin ---------------------------------------------------------------------------------------

    def _from_source(self, source: History, call: Call) -> Verdict:
        place = call.place
        entry = self.match.find(source, call)
        if entry is None and place.loose:
            entry = self.match.find_elsewhere(source, call)
        if entry is None:
            return self._new_step(source, call)
        if self.anew.met(call, entry):
            self.differ(place, f"asked to start again from {entry.label}")
            self.match.serve(source, entry)
            return self._live(call, f"from {entry.label} on")
        if call.kind == RUN:
            self.match.serve(source, entry)
            return NEW if place.tainted else Execute(instead_of=entry)
        if self.anew.lies_in(entry):
            self.match.serve(source, entry)
            return self._live(call, f"the branch was forked inside of it, at {self.anew.label}")
        if source.is_undone(entry) and self.policy.reused_names.get(call.name, self.policy.reuse) != "all":
            if self.policy.strict:
                return self._strict(call, f"{entry.label} was undone")
            self.differ(place, f"{entry.label} was undone")
            self.match.serve(source, entry)
            return self._live(call, UNDONE)
        changed = is_changed(entry, call)
        let_pass = changed and is_let_pass(entry, call)
        if changed and not let_pass:
            if (stop := self._forbidden(entry, call)) is not None:
                return stop
            if self.policy.strict:
                return self._strict(call, f"the code that {entry.label} depends on has changed")
            self.differ(place, f"the code that {entry.label} depends on has changed")
        if place.tainted:
            return self._after_difference(source, entry, call, changed and not let_pass)
        if entry.waits:
            return self._wait(source, entry, call)
        cut = is_cancelled_with_the_cell(source, entry)
        if cut and not call.pure:  # its effect may have happened, and after an edit nobody guesses
            return self._ask_person(source, [entry], call)
        if cut or is_of_failed_attempt(source, entry, place):
            self.match.serve(source, entry)
            return self._live(call, CANCELLED_BEFORE if cut else OF_FAILED_ATTEMPT)
        if entry.state in ("completed", "cancelled"):
            self.match.serve(source, entry)
            return Adopt(entry, REUSED if let_pass else "the same before the first difference")
        if entry.state == "failed":
            self.match.serve(source, entry)
            if is_retried(source, entry, call):
                return self._live(call, f"tried again: attempt {entry.attempts} failed")
            return Adopt(entry, "recorded failure that the program caught")
        return self._ask_person(source, [entry], call)

    def _new_step(self, source: History, call: Call) -> Verdict:
        place = call.place
        scopes = self.match.candidates(source, place)
        waiting = self.match.unserved(source, scopes[0]) if scopes else []
        if (elsewhere := self._equal_elsewhere(source, call)) is not None:
            place.taint()
            self.match.serve(source, elsewhere)
            return Adopt(elsewhere, "depends on nothing but its arguments")
        if not waiting:
            return self._live(call, "")
        if self.policy.strict:
            return self._strict(call, f"recorded is {waiting[0].label}, asked is {call.label}")
        same_name = next((e for e in waiting if e.key.name == call.name), None)
        why = "other arguments than recorded" if same_name is not None else "not in the branch of origin"
        if not place.tainted:
            detail = call.differs(same_name).rstrip(".") if same_name is not None and call.differs is not None else ""
            said = f"recorded was {waiting[0].label}, the code now asks for {call.label}: {why}"
            self.differ(place, f"{said} ({detail})" if detail else said)
        # A step put in front of finished ones: the question about those will come, so it comes before any effect.
        asked_later = [
            e for e in waiting if e.key.name in self.policy.mentions and not needs_nobody(e, self._reuse(e.key.name))
        ]
        known_name = any(e.key.name == call.name for e in source.entries.values())
        if asked_later and not known_name:
            return self._ask_person(source, asked_later, call)
        return self._live(call, why, same_name)

    def _equal_elsewhere(self, source: History, call: Call) -> Entry | None:
        """The result of an equal pure call that the origin has made in another place, if it may be used."""
        if not call.pure or self.policy.strict or self._reuse(call.name) == "none" or call.rerun == "always":
            return None
        entry = self.match.find_pure(source, call)
        return None if entry is None or is_of_failed_attempt(source, entry, call.place) else entry

    def _after_difference(self, source: History, entry: Entry, call: Call, changed: bool) -> Verdict:
        if entry.kind in WAITS:
            return self._wait(source, entry, call)
        reuse = self._reuse(call.name)
        if entry.kind in HELPERS and entry.state == "completed":
            self.match.serve(source, entry)
            return Adopt(entry, "recorded by place, not by what came before")
        if entry.state == "failed":
            self.match.serve(source, entry)
            return self._live(call, "failed on the branch of origin")
        if entry.state == "cancelled":
            self.match.serve(source, entry)
            return self._live(call, "cancelled on the branch of origin")
        if is_of_failed_attempt(source, entry, call.place):
            self.match.serve(source, entry)
            return self._live(call, OF_FAILED_ATTEMPT)
        keep = keeps(entry, call, reuse, changed, said_now=self.policy.by_flag or self.anew.ahead)
        if keep is None:
            later = [e for e in self.match.unserved(source, entry.key.scope) if e.begun > entry.begun]
            at_stake = [entry, *(e for e in later if not needs_nobody(e, self._reuse(e.key.name)))]
            return self._ask_person(source, at_stake, call)
        self.match.serve(source, entry)
        if keep and entry.state == "completed":
            by_rule = call.pure and not changed
            why = "depends on nothing but its arguments" if by_rule else "a person said: reuse"
            return Adopt(entry, why, call.evidence if changed else "")
        if keep and entry.state == "not_stored":
            return not_stored(entry)
        return self._live(call, "its code changed" if changed else "comes after the first difference")

    def _wait(self, source: History, entry: Entry, call: Call) -> Verdict:
        """A wait that the origin had begun, or that comes after a difference.

        A timer that has fired has fired; whoever answered a question had seen what was there before the change.
        """
        self.match.serve(source, entry)
        if entry.kind == "timer" and entry.state == "completed":
            return Adopt(entry, "it has fired")
        if self.policy.replay_only:
            return self._replay_only(call)
        return Execute("asked again: it comes after a change" if entry.finished else "", entry)

    def _reuse(self, name: str) -> Reuse:
        if self.anew.ahead:
            return "all"
        return self.policy.reused_names.get(name, self.policy.reuse)

    def _ask_person(self, source: History, at_stake: list[Entry], call: Call) -> Verdict:
        if self.policy.replay_only:
            return self._replay_only(call, asks=True)
        alive = [e for e in at_stake if e.state == "open"] if self.policy.origin_runs else []
        if alive:
            return stops.running_elsewhere(alive)
        if at_stake and self._reuse(at_stake[0].key.name) != "ask" and not at_stake[0].finished:
            self.match.serve(source, at_stake[0])
            return self._live(call, "a person said: run it again")
        return stops.decision_needed(at_stake, self.differences[0] if self.differences else "")

    def _live(self, call: Call, why: str, instead_of: Entry | None = None) -> Verdict:
        if self.policy.replay_only:
            return self._replay_only(call)
        return Execute(why, instead_of=instead_of)

    def _strict(self, call: Call, what: str) -> Stop:
        return stops.strict(call.label, what)

    def differ(self, place: Place, what: str) -> None:
        """Note a difference; what happens in this place from now on comes after it."""
        self.differences += [] if place.tainted else [what]
        place.taint()
