"""Where replay stops: what is said to a person about it, and of which steps. Pure."""

from __future__ import annotations

from jupyter_durable import errors
from jupyter_durable.call import Stop
from jupyter_durable.entries import Entry
from jupyter_durable.sentences import listed, state_of


def failed_before(entry: Entry, later: list[Entry]) -> Stop:
    """A failed step would be tried again, and others finished after it on another way through the cell."""
    return Stop(
        errors.DecisionNeeded,
        f"{entry.label} failed and ended the cell, and would now be tried again. {listed(later)} finished "
        f"after it on another way through the cell, and may not be asked for this time. Say whether the "
        f"results stay valid: `%durable decide reuse` (go on, and use them where they are asked for) or "
        f"`%durable decide rerun` (go on, and execute them again).",
        (entry, *later),
    )


def in_doubt(entry: Entry) -> Stop:
    """An `at_most_once` step was begun and its end is not known."""
    return Stop(
        errors.InDoubtError,
        f"{entry.label} was begun and its end is not known (the process died or was stopped in it), and it is "
        f"declared `at_most_once`. Say what happened: `%durable settle {entry.begun} rerun`, "
        f"`%durable settle {entry.begun} value EXPRESSION`, or `%durable settle {entry.begun} fail`.",
        (entry,),
    )


def changed_outside(first: Entry, named: tuple[Entry, ...], where: str, asked: str, likely: str) -> Stop:
    """A completed branch, and its cell asks for something else now."""
    return Stop(
        errors.DecisionNeeded,
        f"This cell has completed before. History has {first.label}{where} at this point; the cell now asks "
        f"for {asked}.{likely} Nothing was executed. `%%durable --from {first.begun}` goes on from "
        f"here on a new branch; `%%durable --fresh` starts again.",
        named,
    )


def nondeterminism(
    first: Entry, named: tuple[Entry, ...], where: str, asked: str, likely: str, *, in_script: bool = False
) -> Stop:
    """Nothing recorded has changed, and still the cell asks for something else.

    Args:
        first: what is recorded at this point.
        named: what the error names.
        where: the scope, as it is said.
        asked: the call.
        likely: sentences about likely causes, with a space before them.
        in_script: it is a `with durable.run(...)` block: its code may have been edited, and nobody could tell.
    """
    if in_script:
        return Stop(
            errors.NondeterminismError,
            f"The block asks for something else than is recorded{where}: recorded is {first.label[:-1]}, "
            f"{state_of(first)}), asked is {asked}. Nothing was executed.{likely} The code of a `with "
            f"durable.run(...)` block is not recorded, so nobody can tell whether it was edited. If it was, "
            f'`from_step="{first.begun}"` goes on from here on a new branch, and `fresh=True` starts again. Else put '
            f"what may differ from run to run into a step, or use `durable.now()`, `durable.random()`, "
            f"`durable.uuid()`, and run it again.",
            named,
        )
    return Stop(
        errors.NondeterminismError,
        f"Code and inputs are as recorded, and still the cell asks for something else{where}: recorded is "
        f"{first.label[:-1]}, {state_of(first)}), asked is {asked}. Nothing was executed.{likely} Put what "
        f"may differ from run to run into a step, or use `durable.now()`, `durable.random()`, `durable.uuid()`. "
        f"Then run the cell again; `--from {first.begun}` goes on from here on a new branch, `--fresh` starts "
        f"again.",
        named,
    )


def replay_only(label: str, *, asks: bool) -> Stop:
    """History has no result, and nothing may be executed.

    Args:
        label: the call.
        asks: without the flag a person would be asked here.
    """
    said = f"`--replay-only` promises to execute nothing, and history has no result for {label}. "
    return Stop(errors.ReplayOnlyError, f"{said}Run the cell without the flag to go on from here.", asks=asks)


def running_elsewhere(alive: list[Entry]) -> Stop:
    """What the branch of origin has begun is being executed right now, by another kernel."""
    return Stop(
        errors.BranchBusy,
        f"{listed(alive)} is being executed right now by another kernel, on the branch that this one was made "
        f"from. Nothing was executed here. Wait until that cell has ended, or stop it, and run this one again.",
        tuple(alive),
    )


def decision_needed(at_stake: list[Entry], difference: str) -> Stop:
    """Finished, or begun, before an edit, and neither to be used nor repeated unasked.

    Args:
        at_stake: the steps.
        difference: the first one that was met, as a sentence; empty where none is known.
    """
    doubt = [e for e in at_stake if not e.finished]
    done = [e for e in at_stake if e.finished]
    said = [f"The cell has changed: {difference}." if difference else "The cell has changed."]
    if done:
        said.append(f"{listed(done)} finished before the change and may depend on what changed.")
    if doubt:
        said.append(f"{listed(doubt)} was begun before the change and its end is not known.")
    said.append(
        "Nothing of this was executed or reused. Say once what to do, and run the cell again: "
        "`%durable decide reuse` (use the recorded results), `%durable decide rerun` (execute again; what is in "
        "doubt too), `%%durable --fresh` (start a new branch with nothing reused), or put the old code back to "
        "continue as it was."
    )
    return Stop(errors.DecisionNeeded, " ".join(said), tuple(at_stake))


def changed_code(entry: Entry) -> Stop:
    """The code of a finished step has changed, and its author wants nobody to go on over that."""
    return Stop(
        errors.DecisionNeeded,
        f"The code that {entry.label} depends on has changed since it finished, and it is declared "
        f'`on_code_change="error"`, so neither its result is used nor is it executed again, whatever was decided '
        f"before. Put the old code back to go on as it was, or say it for this execution: `%%durable --reuse all` "
        f"(use the recorded results), `%%durable --reuse none` (execute again), `%%durable --fresh` (a new branch "
        f"with nothing reused).",
        (entry,),
    )


def strict(label: str, what: str) -> Stop:
    """`--strict`: any difference is an error."""
    return Stop(
        errors.DecisionNeeded,
        f"`--strict` makes any difference an error: {what}. Nothing was executed at {label}. Put the old code "
        f"or inputs back, or run the cell without the flag to make a branch from here.",
    )
