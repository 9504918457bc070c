"""The words of ``%durable`` for what waits: look, answer, send. `answering` has the facts."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from jupyter_durable import answering, client
from jupyter_durable.errors import UsageError
from jupyter_durable.event_data import WaitInfo
from jupyter_durable.kernel.display import Shown, table
from jupyter_durable.sentences import moment, quoted

if TYPE_CHECKING:
    from jupyter_durable.kernel.magics import Console


def waiting(console: Console, rest: str) -> Shown | str:
    """``%durable waiting``."""
    waits = answering.waiting(console.log, console.find(rest) if rest else "")
    if not waits:
        return "Nothing waits."
    rows = [
        (wait.number, wait.whose, wait.title, moment(wait.info.until), _how(wait, waits), _said(wait)) for wait in waits
    ]
    return table(["number", "run", "waits for", "until", "answer", "said"], rows)


def _how(wait: answering.WaitView, waits: list[answering.WaitView]) -> str:
    """What may be typed: it names the run, since a number is one of its run's."""
    if wait.kind == "timer":
        return ""
    if wait.kind == "signal":
        return f"%durable signal {_run_of(wait, waits, child=True)}/{wait.name} VALUE"
    return f"%durable approve {_run_of(wait, waits)} {wait.number} {_options(wait)}"


def _run_of(wait: answering.WaitView, waits: list[answering.WaitView], *, child: bool = False) -> str:
    """The run as it may be typed: by its id where another one that waits has its name."""
    alone = all(other.run == wait.run for other in waits if other.run_name == wait.run_name)
    name = wait.run_name if alone else wait.run
    return quoted(f"{name}/{wait.child}") if child and wait.child else quoted(name)


def _options(wait: answering.WaitView) -> str:
    return "|".join(wait.info.choices) or "yes|no"


def _said(wait: answering.WaitView) -> str:
    return f"answered by {wait.answer.by}, not taken yet" if wait.answer is not None else ""


_SAY = "Say `%durable approve NUMBER ANSWER`, or `%durable approve RUN NUMBER ANSWER`."


def approve(console: Console, rest: str) -> str:
    """``%durable approve``."""
    log = console.log
    waits = [wait for wait in answering.waiting(log) if wait.kind == "approval"]
    found, said = _meant(console, waits, rest)
    if len(found) > 1:
        listed = "; ".join(f"`{_how(wait, waits)}` ({wait.info.question})" for wait in found[:10])
        raise UsageError(f"Several requests wait, and an answer is for one of them. Say which: {listed}.")
    if not found or not said:
        listed = "; ".join(f"`{_how(wait, waits)}` ({wait.info.question})" for wait in waits[:10])
        raise UsageError(f"{_SAY} Waiting: {listed or 'nothing'}.")
    wait = found[0]
    value = answering.value_of(said, wait.info)
    answering.answer(log, wait.info.request, value, run=wait.run, via="magic")
    then = "It goes on at once." if wait.running else "Run its cell again to go on."
    return f"`{wait.info.question}` of run `{wait.run_name}` is answered. {then}"


def _meant(console: Console, waits: list[answering.WaitView], rest: str) -> tuple[list[answering.WaitView], str]:
    """The requests that a line may mean, and the answer in it.

    Raises:
        UsageError: it names a request that does not wait.
    """
    first, after = _word(rest)
    second, answer = _word(after)
    of_run = [wait for wait in waits if first and first in (wait.run_name, wait.run, wait.whose)]
    if of_run and second.isdecimal() and answer:
        found = [wait for wait in of_run if second == str(wait.number)]
        if not found:
            answering.find(console.log, second, of_run[0].run)  # says what has become of it
        return found, answer
    found = [wait for wait in waits if first in (str(wait.number), wait.info.request)]
    if found:
        return found, after
    chosen = any(rest.strip("\"'") in wait.info.choices for wait in waits)
    if first.isdecimal() and not chosen:
        answering.find(console.log, first)  # a number is no answer to another request
    return waits, rest


def _word(text: str) -> tuple[str, str]:
    """The first word of a line, which may be quoted, and what follows it."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    try:
        word = lexer.get_token()
    except ValueError:  # an apostrophe in an answer
        first, _, after = text.strip().partition(" ")
        return first, after.strip()
    return word or "", "".join(map(str, iter(lexer.instream.readline, ""))).strip()


def signal(console: Console, rest: str) -> str:
    """``%durable signal``."""
    word, said = _word(rest)
    if not word:
        raise UsageError("Say `%durable signal NAME [VALUE]`, or `%durable signal RUN/NAME [VALUE]` for another run.")
    run, slash, name = word.rpartition("/")
    if not name or (slash and not run):
        raise UsageError("A signal has a name: `%durable signal RUN/NAME [VALUE]`.")
    value = answering.value_of(said, WaitInfo()) if said else None
    log = console.log
    everything = answering.waiting(log)
    waits = [wait for wait in everything if wait.kind == "signal" and wait.name == name]
    if run:
        known, child = client.find_child(log, run, console.hooks.surroundings.notebook_id or None)
        found = f"{known}/{child}" if child else known
    elif len({wait.run for wait in waits}) > 1:
        listed = "; ".join(f"`{_how(wait, everything)}`" for wait in waits[:10])
        raise UsageError(f"Several runs wait for the signal `{name}`. Say which: {listed}.")
    else:
        found = waits[0].run if waits else console.find("")
    answering.send(log, found, name, value, via="magic")
    return f"Signal `{name}` was sent; {answering.use_of(log, client.find_child(log, found)[0])}."
