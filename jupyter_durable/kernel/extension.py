"""``%load_ext jupyter_durable``: what is put into IPython, and taken out again."""

from __future__ import annotations

from typing import Any

from jupyter_durable.errors import UsageError
from jupyter_durable.kernel.cell import MISPLACED, Hooks
from jupyter_durable.kernel.header import flags_help
from jupyter_durable.kernel.transform import transform

_EVENTS = ("pre_run_cell", "post_run_cell")


def load_ipython_extension(shell: Any) -> None:
    """Make ``%%durable`` and ``%durable`` known to a shell. Doing it twice is harmless."""
    if loaded(shell) is not None:
        return
    hooks = Hooks(shell)
    shell.input_transformers_cleanup.append(transform)
    shell.ast_transformers.append(hooks)
    for event in _EVENTS:
        shell.events.register(event, getattr(hooks, event))
    _register_magics(shell, hooks)


def unload_ipython_extension(shell: Any) -> None:
    """Leave the shell as it was before."""
    hooks = loaded(shell)
    if hooks is None:
        return
    if hooks.busy:
        raise UsageError("A durable cell cannot unload the extension that records it; do that in a cell of its own.")
    shell.ast_transformers.remove(hooks)
    if transform in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(transform)
    for event in _EVENTS:
        shell.events.unregister(event, getattr(hooks, event))
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("durable", None)
    shell.magics_manager.magics["line"].pop("%durable", None)


def loaded(shell: Any) -> Hooks | None:
    """The hooks of a shell that has the extension."""
    return next((each for each in shell.ast_transformers if isinstance(each, Hooks)), None)


def _register_magics(shell: Any, hooks: Hooks) -> None:
    from IPython.core.magic import no_var_expand

    @no_var_expand  # braces and dollars belong to queries and expressions
    def line_magic(line: str = "") -> Any:
        from jupyter_durable.kernel.magics import run

        return run(hooks, line)

    def cell_magic(*_: str) -> Any:
        # The input transformer has taken every `%%durable` on a first line; this is one that it did not see.
        raise UsageError(MISPLACED)

    line_magic.__doc__ = _HELP_LINE
    cell_magic.__doc__ = f"{_HELP_CELL}\n{flags_help()}\n"
    shell.register_magic_function(line_magic, "line", "durable")
    shell.register_magic_function(cell_magic, "cell", "durable")
    # A `%%durable` below other code is a line magic with this name to IPython.
    shell.register_magic_function(cell_magic, "line", "%durable")


_HELP_LINE = """Look at durable runs and decide about them: ``%durable help`` lists the words.
"""

_HELP_CELL = """Run a cell so that it survives the death of the kernel: every step is recorded, none is paid for twice.

``%%durable [NAME] [flags]`` stands on the first line; ``#| durable: NAME [flags]`` means the same. Without a name the
run is known by its cell. Run again, the cell replays what is recorded and goes on where it was cut.
"""
