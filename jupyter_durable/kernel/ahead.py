"""What lies ahead of a cell that ran with ``--replay-only``: what a front end asks before it lets the cell spend.

A front end asks it as a user expression of a silent execution::

    __import__("jupyter_durable.kernel.ahead", fromlist=["ahead"]).ahead(get_ipython())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyter_durable.engine.tally import Tally
from jupyter_durable.errors import DurableError, ReplayOnlyError
from jupyter_durable.kernel.extension import loaded

if TYPE_CHECKING:
    from jupyter_durable.kernel.live import Surroundings
    from jupyter_durable.planning import Plan


class Ahead:
    """Facts that a front end reads as JSON."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts

    def _repr_json_(self) -> dict[str, Any]:
        return self.facts


def ahead(shell: Any) -> Ahead:
    """What the last durable cell of this kernel replayed, and what it would execute next.

    Returns:
        Empty facts, if it did not stop for ``--replay-only``. Else ``run``, ``name``, ``replayed`` (steps that came
        back), ``message``; of the next step ``step``, ``kind``, ``model``, ``tokens`` and ``usd`` (the most that a
        model call may use), ``why`` it is executed although it is recorded (``in doubt``), ``asks`` (a person would
        be asked there, and nothing executed); ``again``: further recorded steps that will be executed again as far
        as is known, and ``again_usd``, what all of them had cost.
    """
    hooks = loaded(shell)
    around: Surroundings | None = None if hooks is None else hooks.surroundings
    last = None if around is None else around.ran.get(around.last_run)
    if around is None or last is None or not isinstance(last.stopped, ReplayOnlyError):
        return Ahead({})
    known = last.stopped.facts
    plan = _plan(around)
    again = [] if plan is None else plan.of("again")
    itself = next((step for step in again if step.name == known.get("step")), None)
    bought = Tally() if plan is None else plan.at_least
    return Ahead(
        {
            "run": around.last_run,
            "name": last.name,
            "replayed": last.replayed,
            "message": str(last.stopped),
            "step": known.get("step", ""),
            "kind": known.get("kind", ""),
            "model": known.get("model", ""),
            "tokens": known.get("tokens"),
            "usd": known.get("usd"),
            "asks": bool(known.get("asks")),
            "why": "" if itself is None else itself.why,
            "again": len(again) - (itself is not None),
            "again_usd": bought.cost,
        }
    )


def _plan(around: Surroundings) -> Plan | None:
    """The plan of the run without the flag; ``None`` where the cell cannot be planned, which stops nobody."""
    from jupyter_durable.kernel.planned import made_plan

    try:
        return made_plan(around, around.log, around.last_run)[0]
    except DurableError:
        return None
