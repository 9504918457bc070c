"""What a budget leaves for model calls: what the branch has spent, what is held back for calls on their way.

Before a call is made, the most that it can cost is held back: its input as bytes allow, its output as the request
limits it. When its use is told, the rest is given back. A call whose use is never told keeps what was held back for it.
"""

from __future__ import annotations

import threading
from urllib.parse import urlsplit

import msgspec

from jupyter_durable.capture.asked import recorded_request
from jupyter_durable.capture.conversation import whole_body
from jupyter_durable.capture.estimate import input_at_most
from jupyter_durable.capture.prices import most_cost, why_unknown
from jupyter_durable.capture.providers.base import Api, Ask
from jupyter_durable.engine.budget import Budget, parse_budget
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.tally import money
from jupyter_durable.entries import Entry
from jupyter_durable.errors import BudgetExceeded, DurableError, RunStopped
from jupyter_durable.event_data import Usage

ASSUMED_OUTPUT = 8_192
"""Output tokens that are held back for a request without a limit of its own; a model may write more."""

NOTHING = Usage(input=0, output=0, cost=0.0)
"""The use of a call that was refused."""


class Reserved(msgspec.Struct):
    """What is held back for a call."""

    tokens: int
    usd: float | None
    """``None`` where no price is known."""


def at_most(api: Api, ask: Ask) -> tuple[int, int, float | None]:
    """The most that a call can use: tokens in, tokens out, and dollars; ``None`` where no price is known."""
    most_output = api.most_output(ask)
    output = ASSUMED_OUTPUT if most_output is None else most_output
    tokens_in = input_at_most(ask)
    return tokens_in, output, most_cost(api.provider_of(ask), api.model(ask), tokens_in, output)


class Purse:
    """See the module. Threads may use it at once."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._lock = threading.Lock()
        self._usd = 0.0
        self._tokens = 0
        carried = execution.header.carried
        if carried is not None:
            self._usd, self._tokens = carried.usd, carried.tokens
        self._held: dict[int, Reserved] = {}
        for entry in execution.replay.own.models:
            for usage in entry.billed:
                self._spend(usage, None)
            if _is_in_doubt(entry):
                self._spend(None, self._of_recorded(entry))
        self._limits: list[tuple[str, Budget, float, int]] = []
        """Whose budget, the budget, and what else counts against it."""
        if execution.budget.of_models:
            self._limits.append(("its", execution.budget, 0.0, 0))
        spec = execution.spec
        if spec.notebook_budget:
            elsewhere = spec.spent_elsewhere(execution.header.branch) if spec.spent_elsewhere else (0.0, 0)
            if carried is not None:  # of other branches, and counted already
                elsewhere = (elsewhere[0] - carried.usd, elsewhere[1] - carried.tokens)
            self._limits.append(("the notebook's", parse_budget(spec.notebook_budget), *elsewhere))

    def reserve(self, api: Api, ask: Ask) -> Reserved:
        """Hold back the most that a call may cost.

        Raises:
            RunStopped: the budget does not allow it, with `BudgetExceeded`; the call must not be made.
        """
        most_output = api.most_output(ask)
        tokens_in, output, usd = at_most(api, ask)
        reserved = Reserved(tokens_in + output, usd)
        with self._lock:
            held_usd = sum(held.usd or 0.0 for held in self._held.values())
            held_tokens = sum(held.tokens for held in self._held.values())
            for whose, budget, other_usd, other_tokens in self._limits:
                spent_usd, spent_tokens = self._usd + other_usd, self._tokens + other_tokens
                if budget.usd is not None and usd is None:
                    why = why_unknown(Usage(provider=api.provider_of(ask), model=api.model(ask), input=1, output=1))
                    self._stop(whose, budget, f"the price of the next call is not known. {why.rstrip('.')}", api, "")
                if budget.usd is not None and usd is not None and spent_usd + held_usd + usd > budget.usd:
                    next_one = f"{money(max(usd, 0.0001))} ({_said(tokens_in, output, most_output)})"
                    self._stop(whose, budget, _spent(money(spent_usd), held_usd and money(held_usd)), api, next_one)
                if budget.tokens is not None and spent_tokens + held_tokens + reserved.tokens > budget.tokens:
                    next_one = _said(tokens_in, output, most_output)
                    spent = _spent(f"{spent_tokens} tokens", held_tokens and f"{held_tokens} tokens")
                    self._stop(whose, budget, spent, api, next_one)
            self._held[id(reserved)] = reserved
        return reserved

    def settle(self, reserved: Reserved, usage: Usage | None) -> None:
        """A call has ended: what it did not use is free again.

        Args:
            reserved: what was held back for it.
            usage: what it used; ``None``, or without numbers, where that was not told.
        """
        with self._lock:
            self._held.pop(id(reserved), None)
            self._spend(usage, reserved)

    def _spend(self, usage: Usage | None, reserved: Reserved | None) -> None:
        known = usage is not None and (usage.input is not None or usage.output is not None)
        if known and usage is not None:
            self._tokens += (usage.input or 0) + (usage.output or 0)
        elif reserved is not None:
            self._tokens += reserved.tokens
        if usage is not None and usage.cost is not None:
            self._usd += usage.cost
        elif reserved is not None:
            self._usd += reserved.usd or 0.0

    def _of_recorded(self, entry: Entry) -> Reserved | None:
        """The most that a recorded call can have cost."""
        log = self._execution.log
        found = recorded_request(entry, log)
        if found is None:
            return None
        execution, info = found
        try:
            body = msgspec.json.encode(whole_body(info, execution, log)) if info.body is not None else b""
        except DurableError:
            body = b""
        url = urlsplit(info.url)
        ask = Ask(info.method, url.scheme, url.hostname or "", url.port, url.path, body=body)
        output = ASSUMED_OUTPUT if info.most_output is None else info.most_output
        tokens_in = input_at_most(ask)
        return Reserved(tokens_in + output, most_cost(info.provider, info.model, tokens_in, output))

    def _stop(self, whose: str, budget: Budget, spent: str, api: Api, next_one: str) -> None:
        execution = self._execution
        may = f" and the next call ({api.name}) may use up to {next_one}" if next_one else ""
        knob = "the notebook's budget (`%durable budget`)" if whose != "its" else "the budget"
        advice = f"Raise the number of {knob}" if next_one else "Tell the price, or limit tokens instead"
        error = BudgetExceeded(
            f"{execution.place_of_run()}: {whose} budget is {budget}; {spent}{may}. The call was not made, and the run "
            f"is intact. {advice}, and run it again to go on from here.",
            **execution.where,
            budget=str(budget),
            spent=spent,
            next=next_one,
            step=api.name,
        )
        execution.seal("its budget does not allow the next model call.", error)
        raise RunStopped(error)


def _is_in_doubt(entry: Entry) -> bool:
    """Whether the newest attempt of a call may have been charged, and nothing is known of it."""
    if entry.adopted is not None or len(entry.billed) > entry.attempts:
        return False
    if entry.state == "failed":
        return entry.error is not None and not entry.error.type.startswith("HTTP ")
    return entry.state in ("open", "interrupted", "cancelled")


def _said(tokens_in: int, output: int, most_output: int | None) -> str:
    limit = "" if most_output is not None else ", assumed, since the request sets no limit"
    return f"{tokens_in} tokens in, {output} out{limit}"


def _spent(spent: str, held: str | float) -> str:
    return f"{spent} are spent" + (f", {held} held back for calls on their way," if held else "")
