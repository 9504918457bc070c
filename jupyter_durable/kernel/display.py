"""What a durable cell and ``%durable`` show: one line and a table, as static HTML and as plain text.

No script and no style sheet: it must be readable in an untrusted notebook, on a page of a repository, in a terminal.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from jupyter_durable import clock
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.stats import StepRow
from jupyter_durable.engine.tally import money, tokens_text
from jupyter_durable.engine.waits import Wait
from jupyter_durable.event_data import Usage
from jupyter_durable.kernel.wait_buttons import waits_entry
from jupyter_durable.sentences import quoted

FIRST_AFTER = 0.3
"""Seconds of running after which the summary is first shown; a shorter cell shows it once, at its end."""

EVERY = 0.25
"""Seconds between two updates."""

MOST_ROWS = 200
"""Steps that the table of a summary lists; the rest is in ``%durable history``."""

_CELL = 'style="text-align:left;padding:1px 12px 1px 0;vertical-align:top"'


# Tables -------------------------------------------------------------------------------------------------------------


class Shown:
    """Something with an HTML and a plain form, for IPython's display."""

    def __init__(self, text: str, html: str) -> None:
        self.text = text
        self.html = html

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self.text, "text/html": self.html}


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> Shown:
    """A table.

    >>> print(table(["step", "status"], [["ask", "replayed"]], "report"))
    report
    step  status
    ask   replayed
    """
    cells = [[str(value) for value in row] for row in rows]
    text = text_table(columns, cells)
    html = html_table(columns, cells)
    if title:
        return Shown(f"{title}\n{text}", f"<div><strong>{escape(title)}</strong>{html}</div>")
    return Shown(text, f"<div>{html}</div>")


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned by blanks."""
    rows = [[value.replace("\n", " ") for value in row] for row in rows]
    widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(columns)]
    lines = [columns, *rows]
    return "\n".join("  ".join(f"{v:<{w}}" for v, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table that inherits the colours around it."""
    head = "".join(f'<th scope="col" {_CELL}>{escape(name)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(f"<td {_CELL}>{escape(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


# The summary of a cell ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class CellView:
    """What the summary of a cell says."""

    name: str
    branch: str
    status: str
    """``running`` or how it ended."""
    replayed: int
    adopted: int
    live: int
    failed: int
    seconds: float
    rows: Sequence[StepRow] = ()
    notices: Sequence[str] = ()
    offer: str = ""
    """What the user can do now."""
    at: str = ""
    """The step that runs right now."""
    spent: str = ""
    """What model calls of this execution cost; empty without any."""
    saved: str = ""
    """What was replayed instead of being bought."""


def line(view: CellView) -> str:
    """The summary in one line.

    >>> line(CellView("review", "main", "completed", 11, 0, 3, 0, 6.2))
    'review · 14 steps · 11 replayed, 3 new · 6.2 s'
    >>> line(CellView("review", "main-2", "failed", 0, 9, 1, 1, 0.04))
    'review · main-2 · failed · 10 steps · kept 9, 1 new (1 failed) · 40 ms'
    >>> line(CellView("review", "main", "completed", 11, 0, 3, 0, 6.2, spent="$0.04", saved="$0.31"))
    'review · 14 steps · 11 replayed, 3 new · $0.04 spent, $0.31 saved · 6.2 s'
    """
    parts = [view.name]
    if view.branch != "main":
        parts.append(view.branch)
    if view.status != "completed":
        parts.append(view.status + (f": {view.at}" if view.at else ""))
    steps = view.replayed + view.adopted + view.live
    parts.append(f"{steps} step" + ("" if steps == 1 else "s"))
    counts = [f"{view.replayed} replayed"] if view.replayed else []
    counts += [f"kept {view.adopted}"] if view.adopted else []
    if view.live:
        counts.append(f"{view.live} new" + (f" ({view.failed} failed)" if view.failed else ""))
    parts += [", ".join(counts)] if counts else []
    bill = [f"{view.spent} spent"] if view.spent else []
    bill += [f"{view.saved} saved"] if view.saved else []
    parts += [", ".join(bill)] if bill else []
    parts.append(duration(view.seconds))
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(0.0402), duration(6.24), duration(75), duration(7300)
    ('40 ms', '6.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def as_text(view: CellView) -> str:
    """The summary for terminals and for whoever cannot show HTML."""
    said = [f"note: {notice}" for notice in view.notices] + ([view.offer] if view.offer else [])
    return "\n".join([line(view), *said])


def as_html(view: CellView) -> str:
    """The summary as a line that opens to a table of its steps."""
    said = "".join(f"<div>note: {code_marked(notice)}</div>" for notice in view.notices)
    said += f"<div>{code_marked(view.offer)}</div>" if view.offer else ""
    head = escape(line(view))
    if not view.rows:
        return f'<div style="opacity:0.85"><div>{head}</div>{said}</div>'
    rows = list(view.rows)[-MOST_ROWS:]
    left_out = len(view.rows) - len(rows)
    used = any(r.kind == "model" for r in rows)
    body = html_table(
        ["step", "name", "status", "time", *(["used"] if used else []), "why"],
        [
            [
                str(r.number), r.name, _standing(r), duration(r.seconds) if r.status in TIMED else "",
                *([usage_text(r.usage)] if used else []), r.why,
            ]
            for r in rows
        ],
    )  # fmt: skip
    if left_out:
        body = f"<div>{left_out} earlier steps: <code>%durable history {escape(view.name)}</code></div>{body}"
    return f'<div style="opacity:0.85"><details><summary>{head}</summary>{body}</details>{said}</div>'


def _standing(row: StepRow) -> str:
    """How a step stands; of one that runs, how far it is."""
    return f"{row.status} {row.progress}".rstrip() if row.status == "running" else row.status


def usage_text(usage: Usage | None) -> str:
    """What a model call used, short; empty where that is unknown.

    >>> usage_text(Usage(model="gpt-5", input=1200, output=340, cost=0.0125))
    'gpt-5 · 1200 in, 340 out · $0.01'
    """
    if usage is None:
        return ""
    counts = [f"{tokens_text(n)} {side}" for n, side in ((usage.input, "in"), (usage.output, "out")) if n is not None]
    cost = money(usage.cost) if usage.cost is not None else ""
    return " · ".join(part for part in (usage.model, ", ".join(counts), cost) if part)


TIMED = ("live", "failed", "cancelled", "interrupted", "not stored")
"""Statuses of steps that were executed, so that they took time."""


def code_marked(text: str) -> str:
    """Escaped text in which what stands between back quotes is shown as code.

    >>> code_marked("say `a<b`")
    'say <code>a&lt;b</code>'
    """
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 and i < len(parts) - 1 else part for i, part in enumerate(parts))


def _asking(wait: Wait) -> str:
    """What a cell that waits says to who sits in front of it: the kernel is busy, so not by a magic."""
    if wait.call.kind == "approval":
        options = "|".join(wait.info.choices) or "yes|no"
        return f"{wait.info.question} Answer in the panel, or with `jupyter durable approve {wait.number} {options}`"
    return f"waits {wait}"


def _at(rows: Sequence[StepRow], progress: str) -> str:
    """Where a cell is that runs: the step that was begun last, how far it is, and how far the cell is."""
    row = next((row for row in reversed(rows) if row.status == "running"), None)
    step = "" if row is None else f"{row.name} {row.progress}".rstrip()
    return ", ".join(part for part in (progress, step) if part)


@dataclass(slots=True)
class Summary:
    """The summary of one cell while it runs and at its end."""

    shell: Any
    execution: Execution
    notices: list[str]
    again: bool
    """The run was completed before, and a person runs it again."""
    quiet: bool = False
    """Say nothing of a cell without steps."""
    _id: str = ""
    _ended: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _changed: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def rich(self) -> bool:
        """Whether a front end can show HTML and replace it."""
        return hasattr(self.shell, "kernel")

    def start(self) -> None:
        """Begin to show it, from a thread: a cell may do nothing for long but wait for one step."""
        if not self.rich:
            return
        self.execution.on_change = self._note
        # The thread publishes as a part of this cell, whatever runs by then.
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._tick,), name="durable-summary", daemon=True).start()

    def _note(self) -> None:
        self._changed = True

    def _tick(self) -> None:
        wait = FIRST_AFTER
        while not self._stop.wait(wait):
            wait = EVERY
            if self._changed or self.execution.in_flight:
                self._changed = False
                try:
                    self._publish()
                except Exception:
                    return  # the connection is going away; the end of the cell will say so if it matters

    def take_place_of(self, before: Summary) -> None:
        """Be shown where another one is shown: of a cell that goes on anew there is one."""
        with self._lock:
            self._id = self._id or before._id

    def stop(self) -> None:
        """No more updates but the last."""
        self._stop.set()
        self._ended = clock.monotonic()

    def finish(self) -> None:
        """Show how the cell ended."""
        if self.quiet and not (self.execution.stats.steps or self.execution.stats.notices):
            return
        if self.rich:
            self._publish()
        else:
            sys.stdout.write(as_text(self.view()) + "\n")

    def _publish(self) -> None:
        with self._lock:
            if self.quiet and not self.execution.stats.steps:
                return
            if not self._ended and self._stop.is_set():
                return
            view = self.view()
            update = bool(self._id)
            self._id = self._id or f"durable-{self.execution.header.execution}"
            self.shell.display_pub.publish(
                {"text/plain": as_text(view), "text/html": as_html(view), **waits_entry(self.execution)},
                {},
                transient={"display_id": self._id},
                update=update,
            )

    def _branch(self) -> str:
        spec, name = self.execution.spec, self.execution.header.branch_name
        return f"{name} · sample {spec.sample_number} of {spec.flags.sample}" if spec.flags.sample else name

    def view(self) -> CellView:
        """The summary as of now."""
        execution = self.execution
        stats, outcome = execution.stats, execution.outcome
        status = outcome.status if outcome is not None else "running"
        rows = list(stats.rows)
        running = _at(rows, stats.progress) if outcome is None else ""
        offer = ""
        if self.again and status == "completed" and stats.replayed and not (stats.live or stats.adopted):
            offer = f"replayed from history; `%%durable {quoted(execution.header.name)} --fresh` for a new run"
        if execution.parked is not None:
            offer = "; ".join(f"waits {wait}" for wait in execution.parked.facts["waits"])
            offer += "; run the cell again to go on"
        elif outcome is None and execution.room is not None and (waits := list(execution.room.waits)):
            running = running or "waiting"
            offer = "; ".join(_asking(wait) for wait in waits)
        return CellView(
            name=execution.header.name,
            branch=self._branch(),
            status=status,
            replayed=stats.replayed,
            adopted=stats.adopted,
            live=stats.live,
            failed=stats.failed,
            seconds=(self._ended or clock.monotonic()) - execution.started,
            rows=rows,
            notices=list(dict.fromkeys([*self.notices, *stats.notices])),
            offer=offer,
            at=running,
            spent=stats.spent.text(),
            saved=execution.savings.total.text(),
        )
