"""The words of ``%durable`` for what waits: look, answer, send. `answering` has the facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_durable import answering, client
from jupyter_durable.errors import UsageError
from jupyter_durable.event_data import WaitInfo
from jupyter_durable.kernel.display import Shown, table
from jupyter_durable.sentences import moment

if TYPE_CHECKING:
    from jupyter_durable.kernel.magics import Console


def waiting(console: Console, rest: str) -> Shown | str:
    """``%durable waiting``."""
    waits = answering.waiting(console.log, console.find(rest) if rest else "")
    if not waits:
        return "Nothing waits."
    rows = [(wait.number, wait.whose, wait.title, moment(wait.info.until), _how(wait), _said(wait)) for wait in waits]
    return table(["number", "run", "waits for", "until", "answer", "said"], rows)


def _how(wait: answering.WaitView) -> str:
    """What may be typed."""
    if wait.kind == "timer":
        return ""
    if wait.kind == "signal":
        return f"%durable signal {wait.name} VALUE"
    return f"%durable approve {wait.number} {_options(wait)}"


def _options(wait: answering.WaitView) -> str:
    return "|".join(wait.info.choices) or "yes|no"


def _said(wait: answering.WaitView) -> str:
    return f"answered by {wait.answer.by}, not taken yet" if wait.answer is not None else ""


def approve(console: Console, rest: str) -> str:
    """``%durable approve``."""
    log = console.log
    words = rest.split(None, 1)
    waits = [wait for wait in answering.waiting(log) if wait.kind == "approval"]
    which = words[0] if words else ""
    known = [wait for wait in waits if which in (str(wait.number), wait.info.request)]
    if len(known) > 1:
        known = [wait for wait in known if wait.run == console.hooks.surroundings.last_run] or known
    if known:
        said = words[1] if len(words) > 1 else ""
    else:
        which, said, known = "", rest, waits
    if not known or len(known) > 1 or not said:
        listed = "; ".join(f"{wait.number} {wait.info.question} ({_options(wait)})" for wait in waits)
        raise UsageError(f"Say `%durable approve [NUMBER] ANSWER`. Waiting: {listed or 'nothing'}.")
    wait = known[0]
    value = answering.value_of(said, wait.info)
    answering.answer(log, which or wait.info.request, value, run=wait.run, via="magic")
    then = "It goes on at once." if wait.running else "Run its cell again to go on."
    return f"`{wait.info.question}` of run `{wait.run_name}` is answered. {then}"


def signal(console: Console, rest: str) -> str:
    """``%durable signal``."""
    words = rest.split(None, 1)
    if not words:
        raise UsageError("Say `%durable signal NAME [VALUE]`, or `%durable signal RUN/NAME [VALUE]` for another run.")
    run, _, name = words[0].rpartition("/")
    value = answering.value_of(words[1], WaitInfo()) if len(words) > 1 else None
    log = console.log
    waits = [wait for wait in answering.waiting(log) if wait.kind == "signal" and wait.name == name]
    if run:
        known, child = client.find_child(log, run, console.hooks.surroundings.notebook_id or None)
        found = f"{known}/{child}" if child else known
    else:
        found = waits[0].run if len(waits) == 1 else console.find("")
    answering.send(log, found, name, value, via="magic")
    return f"Signal `{name}` was sent; it is used when the run waits for it."
