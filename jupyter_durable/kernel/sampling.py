"""A cell that runs as several samples: its body is executed K times in one execution of the cell, each on its branch.

What IPython executes of such a cell is the body, a call of `next` here, the body again, and so on; at last a call that
gives the table of all samples. So everything else of a cell stays as it is: top-level ``await``, line numbers, the
stop button, errors that stop Run All. Each sample begins with the notebook as it was before the first.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, Any

import msgspec

from jupyter_durable.engine.inputs import restore
from jupyter_durable.engine.setting import decoded
from jupyter_durable.errors import DurableError, UsageError
from jupyter_durable.event_data import Payload
from jupyter_durable.kernel.branch_words import samples_table
from jupyter_durable.kernel.cell import as_sentence
from jupyter_durable.kernel.display import Shown
from jupyter_durable.kernel.header import Header
from jupyter_durable.kernel.live import LiveCell
from jupyter_durable.sampled import samples
from jupyter_durable.values import redact

if TYPE_CHECKING:
    from jupyter_durable.kernel.cell import Hooks

_LONGEST = 200
"""Characters of a value in the table."""

_IPYTHON = frozenset({"In", "Out", "exit", "quit", "get_ipython"})

_live: dict[int, Sampler] = {}


def of(key: int) -> Sampler:
    """The sampler whose cell is being executed: what the calls between the samples ask for."""
    return _live[key]


class Samples(list[Any]):
    """The values of the last expression, one for each sample. Shown as the table of the samples."""

    def __init__(self, values: list[Any], shown: Shown) -> None:
        super().__init__(values)
        self._shown = shown

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self._shown.text, "text/html": self._shown.html}

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("..." if cycle else self._shown.text)


class Sampler:
    """The samples of one cell between its two hooks."""

    def __init__(self, hooks: Hooks, info: Any, source: str, header: Header) -> None:
        """Begin the first sample; arguments as of `LiveCell`."""
        self._hooks, self._info, self._source = hooks, info, source
        self._of = header.flags.sample
        self._number = 1
        self._namespace: dict[str, Any] = hooks.shell.user_ns
        self._before = dict(self._namespace)
        self._values: list[Any] = []
        self._header = header
        self._live: LiveCell | None = LiveCell(hooks, info, source, header, quiet=False)
        execution = self._live.execution
        self._first = execution.header
        self._spec = execution.spec
        history = execution.replay.own.headers
        sample = (history[0] if history else self._first).sample
        assert sample is not None
        self._set = sample.first
        self._label()
        _live[id(self)] = self

    def tree(self, tree: ast.Module) -> ast.Module:
        """What IPython executes: the body as often as there are samples, with what is between them."""
        body: list[ast.stmt] = []
        for number in range(self._of):
            statements = copy.deepcopy(tree.body)
            if statements and isinstance(last := statements[-1], ast.Expr):
                call = _call(f"of({id(self)}).value")
                call.args = [last.value]
                statements[-1] = ast.copy_location(ast.Expr(ast.copy_location(call, last)), last)
            body += statements
            after = "next" if number + 1 < self._of else "finish"
            body.append(ast.Expr(_call(f"of({id(self)}).{after}")))
        return ast.fix_missing_locations(ast.Module(body=body, type_ignores=tree.type_ignores))

    # What the cell calls between the samples --------------------------------------------------------------------------

    def value(self, value: Any = None) -> None:
        """The last expression of the sample that is being executed."""
        assert self._live is not None
        self._values.append(value)
        self._live.execution.stats.shown = as_text(value)

    def next(self) -> None:
        """End a sample and begin the one after it.

        Raises:
            DurableError: it cannot begin; the cell ends.
        """
        try:
            self._close()
            self._number += 1
            self._put_back()
            spec = msgspec.structs.replace(self._spec, sample_number=self._number, sample_first=self._set)
            self._live = LiveCell(self._hooks, self._info, self._source, self._header, quiet=False, spec=spec)
        except DurableError as error:
            as_sentence(error)
            raise
        self._label()

    def finish(self) -> Samples:
        """End the last sample.

        Returns:
            The values of all of them, shown as a table.
        """
        self._close()
        found = samples(self._hooks.surroundings.log, self._first.run, self._set)
        return Samples(self._values, samples_table(found, self._first.name))

    def end(self, result: Any) -> None:
        """The cell has ended: by an error in a sample, or after the last one. Raises nothing."""
        _live.pop(id(self), None)
        live, self._live = self._live, None
        if live is not None:
            live.end(result)

    # Between two samples ----------------------------------------------------------------------------------------------

    def _close(self) -> None:
        live, self._live = self._live, None
        assert live is not None
        if len(self._values) < self._number:
            self._values.append(None)
        self._digests = live.execution.end_inputs
        live.close()

    def _label(self) -> None:
        text = f"sample {self._number} of {self._of}"
        html = f'<div style="opacity:0.85"><strong>{text}</strong></div>'
        self._hooks.shell.display_pub.publish({"text/plain": text, "text/html": html}, {})

    def _put_back(self) -> None:
        """Let the notebook be as it was before the first sample: names, and what small inputs hold.

        Raises:
            UsageError: an input was changed in place and its start value is not kept.
        """
        for name in [each for each in self._namespace if not each.startswith("_") and each not in _IPYTHON]:
            if name not in self._before:
                del self._namespace[name]
        for name, value in self._before.items():
            if not name.startswith("_") and self._namespace.get(name, self) is not value:
                self._namespace[name] = value

        def value_of(payload: Payload) -> Any:
            return decoded({"": payload}, self._hooks.surroundings.log)[""]

        now = self._digests()
        if restore(self._namespace, self._first, {**self._first.inputs, **now}, value_of) is None:
            changed = [name for name, digest in now.items() if self._first.inputs.get(name) != digest]
            raise UsageError(
                f"Sample {self._number} cannot begin as sample 1 did: {', '.join(f'`{name}`' for name in changed)} was "
                f"changed in place, and is too large to be put back. Make it inside the cell, so that each sample has "
                f"its own."
            )


def as_text(value: Any) -> str:
    """A value on one line, for people; empty for ``None``."""
    if value is None:
        return ""
    try:
        text = redact(" ".join(repr(value).split()))
    except Exception as error:
        return f"<{type(value).__name__}: its repr raised {type(error).__name__}>"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _call(what: str) -> ast.Call:
    call = ast.parse(f"__import__({__name__!r}, fromlist=['of']).{what}()", mode="eval").body
    assert isinstance(call, ast.Call)
    return call
