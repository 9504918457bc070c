"""What is measured, with which targets: the workloads W1 to W6, model calls (W8), the panel (W9), and memory."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import values
from benchmarks.judged import RIVALS, Case, Column, Results, Target, Workload, best_of, median_of


def compressed_result(n: int) -> float:
    """Bytes of one 200-byte result of a run, if all of them are compressed by zstandard in blocks of 256 KB."""
    import zstandard

    text = "".join(values.text(i, 200) for i in range(n)).encode()
    compress = zstandard.ZstdCompressor(level=3).compress
    return sum(len(compress(text[at : at + (1 << 18)])) for at in range(0, len(text), 1 << 18)) / n


_STEPS = [
    Column("us", "us/step"),
    Column("cpu_us", "CPU us"),
    Column("bytes", "bytes/step", ",.0f"),
    Column("flushes", "flushes/step", ",.2f"),
]


def steps_process(quick: bool) -> Workload:
    """W1 without flushes."""
    n = 2_000 if quick else 10_000
    rounds, slow = (3, 1) if quick else (7, 2)
    params = {"n": n, "value": "text200", "flushed": False}
    fewer = {**params, "n": 1_000}

    def overhead(results: Results) -> float | None:
        rest = results.median("ours, folded", "rest")
        return None if rest is None else rest - compressed_result(n)

    ours = "ours"
    return Workload(
        key="W1",
        title=f"{n:,} trivial steps with 200-byte results, no flush reaches a disk",
        why_fair=(
            "Ours runs with durability='process'. The others cannot be told not to flush: all run on a RAM disk, where "
            "a flush costs nothing. Cost over the bare function call. DBOS and LangGraph get 1,000 steps: that favours "
            "them (LangGraph's cost grows with the steps)."
        ),
        cases=[
            Case("bare", "bare", "steps", params, rounds, ram=True),
            Case("ours", "ours", "steps", params, rounds, ram=True),
            Case("ours, 1,000", "ours", "steps", fewer, rounds, ram=True),
            Case("ours, folded", "ours", "steps", params, min(rounds, 5)),
            Case("joblib", "joblib", "steps", params, slow, ram=True),
            Case("LangGraph graph", "langgraph", "graph", fewer, slow, ram=True),
            Case("LangGraph @task", "langgraph", "steps", fewer, slow, ram=True),
            Case("DBOS", "dbos", "steps", fewer, slow, ram=True),
        ],
        columns=[
            *_STEPS[:3],
            Column("rest", "bytes at rest", ",.0f"),
            Column("fold", "fold ms", ",.0f", 1e3),
            Column("fold_cpu", "fold CPU ms", ",.0f", 1e3),
        ],
        bare="us",
        best="us",
        targets=[
            Target(f"us per step, {n:,} steps", 25, median_of(ours, "us"), unit="us", rival=best_of("us")),
            Target("CPU us per step (the same, whatever else runs)", 25, median_of(ours, "cpu_us"), unit="us"),
            Target("us per step, 1,000 steps", 25, median_of("ours, 1,000", "us"), unit="us"),
            Target("bytes per step as a kill leaves it", 600, median_of(ours, "bytes"), ",.0f", rival=best_of("bytes")),
            Target("bytes per step at rest, above the compressed result", 120, overhead, ",.0f"),
            Target(
                f"folding {n:,} steps (DuckDB's import apart)", 0.15, median_of("ours, folded", "fold"), ",.3f", "s"
            ),
        ],
    )


def steps_flushed(quick: bool) -> Workload:
    """W1 flushed."""
    n = 300 if quick else 1_000
    rounds, slow = (5, 1) if quick else (9, 3)
    params = {"n": n, "value": "text200", "flushed": True}
    return Workload(
        key="W1",
        title=f"{n:,} trivial steps with 200-byte results, each survives loss of power",
        why_fair=(
            "On the disk. Ours writes two lines a step, intent and completion, and a completion shares its flush with "
            "the next intent. joblib never flushes: its row is no rival here."
        ),
        cases=[
            Case("bare", "bare", "steps", params, rounds, count_flushes=200),
            Case("ours", "ours", "steps", params, rounds, count_flushes=200),
            Case("LangGraph graph", "langgraph", "graph", params, slow, count_flushes=100),
            Case("LangGraph @task", "langgraph", "steps", params, slow, count_flushes=100),
            Case("DBOS", "dbos", "steps", params, slow, count_flushes=100),
            Case("joblib (no flush)", "joblib", "steps", params, slow, count_flushes=100),
        ],
        columns=_STEPS,
        bare="us",
        best="us",
        duel=(20, 20 if quick else 40),
        targets=[
            Target(
                "x the bare write + fdatasync of one record", 1.2, Results.in_turns, ",.2f", "x",
                rival=_rival_ratio,
            ),
            Target("flushes per step", 1.0, median_of("ours", "flushes"), ",.2f", rival=best_of("flushes")),
        ],
    )  # fmt: skip


def _rival_ratio(results: Results) -> tuple[str, float] | None:
    names = [name for name in results.samples if name in RIVALS]  # without joblib, which flushes nothing
    found = [(name, ratio) for name in names if (ratio := results.ratio(name, "bare", "us")) is not None]
    return min(found, key=lambda pair: pair[1]) if found else None


def larger_results(kind: str, what: str, n: int, quick: bool) -> Workload:
    """W2."""
    rounds, slow = (3, 1) if quick else (7, 3)
    params = {"n": n, "value": kind, "flushed": True}
    return Workload(
        key="W2",
        title=f"{n} steps that return {what}, each survives loss of power",
        why_fair="The bare row writes the same bytes (of an array: its memory) into one file. joblib does not flush.",
        cases=[
            Case("bare", "bare", "steps", params, rounds, count_flushes=10),
            Case("ours", "ours", "steps", params, rounds, count_flushes=10),
            Case("LangGraph graph", "langgraph", "graph", params, slow, count_flushes=10),
            Case("LangGraph @task", "langgraph", "steps", params, slow, count_flushes=10),
            Case("DBOS", "dbos", "steps", params, slow, count_flushes=10),
            Case("joblib (no flush)", "joblib", "steps", params, slow, count_flushes=10),
        ],
        columns=_STEPS,
        bare="us",
        best="us",
        duel=(4, 10 if quick else 25) if kind == "array" else (10, 20 if quick else 40),
        targets=[
            Target(f"{what}: x the bare write + fdatasync", 1.3, Results.in_turns, ",.2f", "x", rival=_rival_ratio)
        ],
    )


def resume(quick: bool) -> Workload:
    """W3."""
    n = 2_000 if quick else 10_000
    long = 20_000 if quick else 100_000
    rounds = 3 if quick else 7
    params = {"n": n, "value": "text200"}
    limit = 0.15 * n / 10_000

    def linear(results: Results) -> float | None:
        short, far = results.median("ours", "seconds"), results.median(f"ours, {long:,}", "seconds")
        return None if short is None or far is None else (far / long) / (short / n)

    return Workload(
        key="W3",
        title=f"resume after {n:,} completed steps and a SIGKILL, until step {n + 1:,} is reached",
        why_fair=(
            "Imports apart; the page cache is warm. Ours: from the start of `durable.run`, the log's opening included, "
            "every step is called, its arguments digested and its value decoded. LangGraph's graph has only its state "
            "and nothing to replay; its functional API gets a tenth of the steps: its resume grows with their square."
        ),
        cases=[
            Case("bare", "bare", "resume", params, rounds, "prepare"),
            Case("ours", "ours", "resume", params, rounds, "prepare"),
            Case(f"ours, {long:,}", "ours", "resume", {**params, "n": long}, min(rounds, 3), "prepare"),
            Case("joblib", "joblib", "resume", params, 1 if quick else 3, "prepare"),
            Case("DBOS", "dbos", "resume", params, 1 if quick else 2, "prepare"),
            Case("LangGraph graph", "langgraph", "resume_graph", {**params, "n": n // 10}, 1, "prepare_graph"),
            Case(f"LangGraph @task, {n // 10:,}", "langgraph", "resume", {**params, "n": n // 10}, 1, "prepare"),
        ],
        columns=[
            Column("seconds", "seconds", ",.3f"),
            Column("cpu", "CPU s", ",.3f"),
            Column("opened", "log opened, s", ",.3f"),
            Column("first", "first step, s", ",.3f"),
            Column("duckdb", "DuckDB imported", ",.0f"),
        ],
        bare="seconds",
        best="seconds",
        targets=[
            Target(f"seconds for {n:,} steps", limit, median_of("ours", "seconds"), ",.3f", "s",
                   rival=lambda results: results.best("seconds", among=("joblib", "DBOS"))),
            Target("CPU seconds (the same, whatever else runs)", limit, median_of("ours", "cpu"), ",.3f", "s"),
            Target(f"time per step at {long:,} steps, x that at {n:,} (linear: 1)", 1.2, linear, ",.2f", "x"),
            Target("DuckDB imported on that path", 0, median_of("ours", "duckdb"), ",.0f"),
        ],
    )  # fmt: skip


def parallel(quick: bool) -> Workload:
    """W4."""
    n, slow_n = (2_000, 200) if quick else (10_000, 1_000)
    rounds, slow = (3, 1) if quick else (7, 3)
    params = {"n": n, "width": 100}
    fewer = {"n": slow_n, "width": 100}

    def per_hundred(results: Results) -> float | None:
        per_step = results.median("ours", "flushes")
        return None if per_step is None else per_step * 100

    return Workload(
        key="W4",
        title="100 concurrent asynchronous steps that do nothing, each survives loss of power",
        why_fair="Gathered a hundred at a time. The bare row writes a record a step and flushes once for the hundred.",
        cases=[
            Case("bare", "bare", "parallel", params, rounds, count_flushes=1_000),
            Case("ours", "ours", "parallel", params, rounds, count_flushes=1_000),
            Case("LangGraph @task", "langgraph", "parallel", fewer, slow, count_flushes=200),
            Case("DBOS", "dbos", "parallel", fewer, slow, count_flushes=200),
            Case("joblib", "joblib", "parallel", fewer, slow),
        ],
        columns=[
            Column("per_second", "steps/s", ",.0f"),
            Column("per_cpu_second", "steps per CPU s", ",.0f"),
            Column("flushes", "flushes/100", ",.1f", 100),
        ],
        bare="per_second",
        best="per_second",
        highest=True,
        targets=[
            Target("steps per second", 15_000, median_of("ours", "per_second"), ",.0f", sense="at least",
                   rival=best_of("per_second", highest=True)),
            Target("flushes for 100 steps", 5, per_hundred, ",.1f"),
        ],
    )  # fmt: skip


def cold(quick: bool) -> Workload:
    """W6, imports."""
    rounds = 5 if quick else 11
    return Workload(
        key="W6",
        title="imports, in milliseconds",
        why_fair=(
            "A run before each fills the byte code caches. Ours above what an IPython kernel imports anyway, peers "
            "above Python."
        ),
        cases=[
            Case("ours", "ours", "imports", {"warm": 1}, rounds),
            Case("ours, in a script", "ours", "imports_plain", {}, rounds),
            Case("joblib", "joblib", "imports", {}, 3),
            Case("DBOS", "dbos", "imports", {}, 3),
            Case("LangGraph @task", "langgraph", "imports", {}, 3),
        ],
        columns=[
            Column("import", "import"),
            Column("extension", "+ %load_ext"),
            Column("engine", "+ engine"),
            Column("duckdb", "DuckDB imported", ",.0f"),
        ],
        best="engine",
        targets=[
            Target("ms for import and %load_ext, above IPython", 20, median_of("ours", "extension"), unit="ms"),
            Target(
                "ms with the engine, above IPython", 60, median_of("ours", "engine"), unit="ms", rival=best_of("engine")
            ),
            Target("DuckDB imported", 0, median_of("ours", "duckdb"), ",.0f"),
        ],
    )


def opening(quick: bool) -> Workload:
    """W6, a large log, and memory."""
    n = 20_000 if quick else 100_000
    rounds = 3 if quick else 5
    one = {"n": n, "value": "text200"}
    many = {"n": n // 100, "runs": 100, "value": "text200"}
    large = {"n": n, "value": "text1000"}
    return Workload(
        key="W6",
        title=f"a log of {n:,} steps: until the first step has its value; memory to replay all of it",
        why_fair=(
            "Imports apart; the page cache is warm. *One run*: it holds all steps, and all of it is verified before "
            "the first value is handed out. *100 runs*: the steps lie in 100 runs, 99 of them folded; one is resumed."
        ),
        cases=[
            Case("one run", "ours", "resume", one, rounds, "prepare"),
            Case("100 runs", "ours", "resume", many, rounds, "prepare"),
            Case("1 KB values", "ours", "resume", large, min(rounds, 3), "prepare"),
        ],
        columns=[
            Column("opened", "log opened, s", ",.3f"),
            Column("first", "first step, s", ",.3f"),
            Column("seconds", "all steps, s", ",.3f"),
            Column("memory", "MB above before"),
            Column("duckdb", "DuckDB imported", ",.0f"),
        ],
        targets=[
            Target("first step, all steps in one run", 0.1, median_of("one run", "first"), ",.3f", "s"),
            Target("first step, the steps in 100 runs", 0.1, median_of("100 runs", "first"), ",.3f", "s"),
            Target(f"MB to replay {n:,} steps of 1 KB", 100, median_of("1 KB values", "memory"), ",.0f", "MB"),
        ],
    )


def conversation(quick: bool) -> Workload:
    """W5."""
    n = 60 if quick else 200
    params = {"n": n, "bytes": 1_000}
    return Workload(
        key="W5",
        title=f"a conversation of {n} turns over an SDK, 1 KB new in each, all before it sent again",
        why_fair="New bytes are the text of each turn, the whole answer as the provider sends it, and the answer's "
        "text, which the next turn sends back.",
        cases=[Case("ours", "calls", "conversation", params, repeats=3)],
        columns=[Column("journal", "journal / new", ".2f"), Column("rest", "at rest / new", ".2f")],
        targets=[Target("W5: bytes at rest for a byte that is new", 1.3, median_of("ours", "rest"), ".2f")],
    )


def model_calls(what: str, *, stream: bool, quick: bool) -> Workload:
    """W8."""
    n = 150 if quick else 400

    def case(name: str, mode: str) -> Case:
        return Case(name, "calls", "chat", {"n": n, "mode": mode, "stream": stream}, repeats=3 if quick else 5)

    def more(name: str) -> Callable[[Results], float | None]:
        def over(results: Results) -> float | None:
            one, bare = results.median(name, "cpu_us"), results.median("bare", "cpu_us")
            return None if one is None or bare is None else one - bare

        return over

    return Workload(
        key="W8",
        title=f"{what} calls of a model over the OpenAI SDK, 2 KB, the endpoint on loopback",
        why_fair="CPU of the client alone. Bare: the SDK as it is; hooked: our hooks in place and no durable run.",
        cases=[case("bare", "bare"), case("hooked", "hooked"), case("recorded", "record"), case("replayed", "replay")],
        columns=[Column("cpu_us", "CPU us"), Column("us", "us")],
        targets=[
            Target(f"W8, {what}: recording, CPU over the bare call", 300, more("recorded"), unit=" us"),
            Target(f"W8, {what}: replaying, CPU over the bare call", 0, more("replayed"), unit=" us"),
            Target(f"W8, {what}: hooks outside of a run, CPU over the bare call", 20, more("hooked"), unit=" us"),
        ],
        bare="cpu_us",
    )


def panel(n: int) -> Workload:
    """W9."""
    name = f"{n:,} steps"
    return Workload(
        key="W9",
        title=f"the panel with a run of {n:,} steps, in Chromium without a graphics card",
        why_fair=(
            "From the panel's first question to the server to the first row, and until all steps are there. Frames are "
            "those of 200 jumps through the whole tree, a hundredth of it each; 16.7 ms is the browser's own pace. The "
            "heap is what is still in use after a collection, above that of the same page before the run."
        ),
        cases=[Case(name, "panel", "browse", {"n": n}, repeats=3)],
        columns=[
            Column("first", "first row, s", ",.2f"),
            Column("whole", "all rows, s", ",.2f"),
            Column("frame", "frame ms"),
            Column("frame95", "95 % below"),
            Column("worst", "worst"),
            Column("filter", "filtered, s", ",.2f"),
            Column("rows", "rows on the page", ",.0f"),
            Column("heap", "heap MB"),
            Column("server", "server MB", ",.0f"),
        ],
        targets=[
            Target(f"W9, {name}: first row", 1.0, median_of(name, "first"), ",.2f", "s"),
            Target(f"W9, {name}: 95 of 100 frames while scrolling", 34, median_of(name, "frame95"), unit="ms"),
            Target(f"W9, {name}: heap of the page", n / 1_000, median_of(name, "heap"), unit="MB"),
        ],
    )


def all_workloads(quick: bool) -> list[Workload]:
    """Every workload, in order."""
    return [
        steps_process(quick),
        steps_flushed(quick),
        larger_results("text10000", "a 10 KB string", 100 if quick else 300, quick),
        larger_results("array", "a 1 MB array of random bytes", 15 if quick else 40, quick),
        resume(quick),
        parallel(quick),
        cold(quick),
        opening(quick),
        conversation(quick),
        model_calls("plain", stream=False, quick=quick),
        model_calls("streamed", stream=True, quick=quick),
        panel(10_000),
        *([] if quick else [panel(100_000)]),
    ]
