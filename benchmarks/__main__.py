"""The benchmarks: ``python -m benchmarks [--quick] [--only W1] [--json FILE]``, or ``python3 dev.py bench``.

Measures this project beside bare writes to the same disk, DBOS, LangGraph and joblib, in one run, and prints a table
for each workload and one of the targets. Never part of a test: a figure in microseconds depends on the machine and on
what else it does, only the ratios carry over. What each number means, and why it is fair, stands in
`benchmarks.workloads` and in the docstrings of `benchmarks.subjects`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.judged import Case, Column, Results, Target, Workload
from benchmarks.measure import ChildFailed, Numbers, duel, flushes, run, scratch
from benchmarks.workloads import all_workloads

OURS = ("ours", "bare", "calls", "panel")
"""Subjects that are no rivals."""
PACKAGES = ("jupyter_durable", "dbos", "langgraph", "langgraph-checkpoint-sqlite", "joblib", "duckdb", "msgspec")


def main() -> int:
    """Measure what was asked for, print the tables, and write the samples."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer steps and repeats: a few minutes, rougher figures")
    parser.add_argument("--only", action="append", default=[], metavar="W1", help="only this workload; may be repeated")
    parser.add_argument("--ours", action="store_true", help="leave the rivals out: ours and the bare disk")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all samples into a file")
    asked = parser.parse_args()
    workloads = all_workloads(asked.quick)
    keys = sorted({workload.key for workload in workloads})
    wanted = {key.upper() for key in asked.only} or set(keys)
    if not wanted <= set(keys):
        parser.error(f"there is no workload {', '.join(sorted(wanted - set(keys)))}; there are {', '.join(keys)}")
    facts = circumstances()
    for name, value in facts.items():
        print(f"{name}: {value}")
    judged: list[tuple[Workload, Target, Results]] = []
    written: list[dict[str, Any]] = []
    for workload in workloads:
        if workload.key in wanted:
            cases = [case for case in workload.cases if not asked.ours or case.subject in OURS]
            results = measure(workload, cases)
            print_workload(workload, cases, results)
            judged += [(workload, target, results) for target in workload.targets]
            written.append(
                {"workload": workload.key, "title": workload.title, "samples": results.samples, "duels": results.duels}
            )
    print_targets(judged)
    print(f"\nload average at the end: {os.getloadavg()[0]:.2f}")
    if asked.json is not None:
        text = json.dumps({"circumstances": facts, "quick": asked.quick, "workloads": written}, indent=1)
        asked.json.write_text(text + "\n", encoding="utf-8")
    return 0


def circumstances() -> dict[str, str]:
    """What the figures depend on."""
    with scratch() as directory:
        fd = os.open(directory / "probe", os.O_WRONLY | os.O_CREAT)
        took = []
        for _ in range(50):
            os.write(fd, b"x" * 200)
            began = time.perf_counter()
            os.fdatasync(fd)
            took.append(time.perf_counter() - began)
        os.close(fd)
        place = directory.parent
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{name} -")
    return {
        "machine": f"{platform.platform()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.2f}",
        "python": platform.python_version(),
        "packages": ", ".join(versions),
        "disk": f"{place}, one flush takes {sorted(took)[25] * 1e6:,.0f} us now",
    }


def measure(workload: Workload, cases: list[Case]) -> Results:
    """Run the cases in turns."""
    results = Results({case.name: [] for case in cases})
    prepared: dict[str, Path] = {}
    kept = []
    try:
        for case in cases:
            if case.prepare:
                keeper = scratch(ram=True)
                directory = keeper.__enter__()
                kept.append(keeper)
                say(f"{workload.key}: {case.name}: preparing")
                try:
                    params = {**case.params, "directory": str(directory)}
                    run(case.subject, case.prepare, params, timeout=case.timeout)
                except ChildFailed as error:
                    results.failures[case.name] = str(error)
                prepared[case.name] = directory
        for number in range(max(case.repeats for case in cases)):
            for case in cases if number % 2 == 0 else cases[::-1]:
                if number < case.repeats and case.name not in results.failures:
                    say(f"{workload.key}: {case.name}, round {number + 1} of {case.repeats}")
                    try:
                        results.samples[case.name].append(one(case, prepared.get(case.name)))
                    except ChildFailed as error:
                        results.failures[case.name] = str(error)
        if workload.duel is not None:
            results.duels = [turns_of(workload, cases, number) for number in range(3)]
        for case in cases:
            if case.count_flushes and results.samples[case.name]:
                say(f"{workload.key}: {case.name}: counting flushes")
                counted = flushes(case.subject, case.job, case.params, case.count_flushes)
                if counted is not None:
                    for sample in results.samples[case.name]:
                        sample["flushes"] = counted
    finally:
        for keeper in kept:
            keeper.__exit__(None, None, None)
        say("")
    return results


def turns_of(workload: Workload, cases: list[Case], number: int) -> list[list[float]]:
    """Ours and the bare disk in turns."""
    assert workload.duel is not None
    size, bursts = workload.duel
    params = next(case.params for case in cases if case.name == "ours")
    say(f"{workload.key}: ours and bare in turns, {number + 1} of 3")
    with scratch() as one_directory, scratch() as other:
        sides = [
            ("bare", {**params, "burst": size, "directory": str(one_directory)}),
            ("ours", {**params, "burst": size, "directory": str(other)}),
        ]
        return duel("bursts", sides, bursts)


def one(case: Case, prepared: Path | None) -> Numbers:
    """One repeat of a case."""
    with scratch(ram=case.ram) as directory:
        if prepared is not None:
            shutil.copytree(prepared, directory, dirs_exist_ok=True)
        params = {**case.params, "directory": str(directory)}
        if case.job.startswith("imports"):
            run(case.subject, case.job, params, timeout=case.timeout)  # fills the caches
        return run(case.subject, case.job, params, timeout=case.timeout)


def say(text: str) -> None:
    """Tell on one line of the terminal what is being measured."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def print_workload(workload: Workload, cases: list[Case], results: Results) -> None:
    """The table of one workload."""
    print(f"\n{workload.key}: {workload.title}\n{workload.why_fair}\n")
    columns = [c for c in workload.columns if any(results.median(case.name, c.number) is not None for case in cases)]
    headings = ["", *(column.heading for column in columns)]
    headings += ["x bare"] if workload.bare else []
    headings += ["x best rival"] if workload.best else []
    headings += ["rounds"]
    rows = [row_of(workload, case, columns, results) for case in cases if results.samples[case.name]]
    table([headings, *rows])
    for name, text in results.failures.items():
        print(f"{name} failed: {text}")


def row_of(workload: Workload, case: Case, columns: list[Column], results: Results) -> list[str]:
    """One line of it."""
    row = [case.name]
    for column in columns:
        value = results.median(case.name, column.number)
        row.append("-" if value is None else format(value * column.scale, column.form))
    if workload.bare:
        in_turns = results.in_turns() if case.name == "ours" else None
        ratio = results.ratio(case.name, "bare", workload.bare) if in_turns is None else in_turns
        row.append("-" if ratio is None else f"{ratio:,.2f}")
    if workload.best:
        best, value = results.best(workload.best, highest=workload.highest), results.median(case.name, workload.best)
        row.append("-" if best is None or value is None else f"{value / best[1]:,.3f}")
    return [*row, str(len(results.samples[case.name]))]


def print_targets(judged: list[tuple[Workload, Target, Results]]) -> None:
    """All targets and whether they are met."""
    rows = [["", "target", "measured", "target is", "best rival", "met"]]
    for workload, target, results in judged:
        value = target.measured(results)
        limit = f"{target.sense} {target.limit:{target.form}} {target.unit}".strip()
        measured = "-" if value is None else f"{value:{target.form}} {target.unit}".strip()
        rival = target.rival(results)
        shown = "" if rival is None else f"{rival[1]:{target.form}} {target.unit} ({rival[0]})"
        verdict = "-" if value is None else "met" if target.met(value) else "NOT MET"
        rows.append([workload.key, target.what, measured, limit, shown, verdict])
    print("\nTargets\n")
    table(rows)


def table(rows: list[list[str]]) -> None:
    """Print rows with their columns aligned: the first heading row is underlined."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    left = {0} | ({1, len(widths) - 2, len(widths) - 1} if rows[0][1] == "target" else set())
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(w) if i in left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


if __name__ == "__main__":
    sys.exit(main())
