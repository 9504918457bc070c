"""G06, G07, G17, G27: which stored result belongs to which call, whoever finished first."""

from __future__ import annotations

from collections import Counter

import pytest

from jupyter_durable.history import History
from tests.engine import cells
from tests.engine.harness import MortalLog, World

BRIEF = """
import random
@step
async def price(s): await asyncio.sleep(random.random()/5); hit("price"); await pause("price"); return ("price", s)
@step
async def news(s):  await asyncio.sleep(random.random()/5); hit("news"); await pause("news"); return ("news", s)
@step
async def filings(s):
    await asyncio.sleep(random.random()/5); hit("filings"); await pause("filings"); return ("filings", s)
"""
PLAIN = "async def pause(name): pass\n"
BRIEF_CELL = """%%durable brief
a, b, c = await asyncio.gather(price("ACME"), news("ACME"), filings("ACME"))
hold()
print(a, b, c)
"""
BRIEF_SAYS = "('price', 'ACME') ('news', 'ACME') ('filings', 'ACME')"


def test_g06_gather_over_different_steps_in_a_real_kernel(case):
    """Killed twice during the sleep (here: a step that waits), each time with another order of completion."""
    case.open(PLAIN + BRIEF)
    case.kill_at("hold", BRIEF_CELL)
    case.new_kernel()
    case.kill_at("hold", BRIEF_CELL)

    ran = case.rerun(BRIEF_CELL)

    assert BRIEF_SAYS in ran.text, ran.errors
    assert sorted(case.effects.tags()) == ["filings", "news", "price"]


@pytest.mark.parametrize("late", ["price", "filings"])
def test_g06_killed_while_one_of_the_three_is_running(case, late):
    case.open(
        f"async def pause(name):\n    if name == {late!r}:\n"
        f"        await asyncio.sleep(0.5); await stand_async(name)\n{BRIEF}"
    )
    case.kill_at(late, BRIEF_CELL)

    ran = case.rerun(BRIEF_CELL)

    assert BRIEF_SAYS in ran.text, ran.errors
    assert {name: case.effects.count(name) for name in ("price", "news", "filings")} == {
        **dict.fromkeys(("price", "news", "filings"), 1), late: 2,
    }  # fmt: skip


SMALL = """
import random
@step
async def price(s): await asyncio.sleep(random.random() / 100); world.hit("price"); return ("price", s)
@step
async def news(s): await asyncio.sleep(random.random() / 100); world.hit("news"); return ("news", s)
@step
async def filings(s): await asyncio.sleep(random.random() / 100); world.hit("filings"); return ("filings", s)
@step
async def rest(): world.hit("rest")
"""
SMALL_CELL = "r = await {gather}\nawait rest()\nr"
GATHERS = {
    "gather": "asyncio.gather(price('A'), news('A'), filings('A'))",
    "tasks": "asyncio.gather(*[asyncio.create_task(f('A')) for f in (price, news, filings)])",
    "nested": "both('A')",
    "equal_calls": "asyncio.gather(*(price('A') for _ in range(4)))",
}
NESTED = "async def both(s): return [*(await asyncio.gather(price(s), news(s))), await filings(s)]\n"


@pytest.mark.parametrize("kind", GATHERS)
def test_g06_twenty_deaths_never_pair_a_result_with_another_step(kind):
    """The kernel in miniature dies at every event in turn, 20 times; what was recorded as finished is not repeated."""
    cell = SMALL_CELL.format(gather=GATHERS[kind])
    expected = [("price", "A")] * 4 if kind == "equal_calls" else [("price", "A"), ("news", "A"), ("filings", "A")]
    for die_after in range(20):
        log, world = MortalLog(), World()
        first = cells.Kernel(log, world, SMALL + NESTED).durable(cell, die_after=die_after)
        assert first.died or list(first.value) == expected
        finished = Counter(
            e.key.name for e in History(log.history(log.executions()[0].header.branch)).entries.values() if e.finished
        )
        world.clear()

        second = cells.Kernel(log, world, SMALL + NESTED).durable(cell)
        again = cells.Kernel(log, world, SMALL + NESTED).durable(cell)

        assert second.error is None, (die_after, second.error)
        assert list(second.value) == list(again.value) == expected, die_after
        assert Counter(world.effects) + finished == Counter([name for name, _ in expected] + ["rest"]), die_after
        assert again.live == 0


# G07 ----------------------------------------------------------------------------------------------------------------

POLL = """
state = {"n": 0}
@step
def job_status(job): hit("poll"); state["n"] += 1; return "done" if state["n"] >= 3 else "busy"
"""
POLL_CELL = """%%durable poll
seen = []
while (s := job_status("J1")) != "done": seen.append(s)
seen
"""


def test_g07_polling_with_the_same_arguments_ends_and_replays(case):
    case.open(POLL)

    first = case.kernel.ok(POLL_CELL)
    again = case.rerun(POLL_CELL)

    assert first.results == again.results == ["['busy', 'busy']"]
    assert case.effects.tags() == ["poll"] * 3
    # And in the kernel whose `state` says "done" by now.
    assert case.kernel.ok(POLL_CELL).results == ["['busy', 'busy']"]
    assert case.effects.tags() == ["poll"] * 3


def test_g07_a_loop_that_is_killed_goes_on_with_the_next_poll(case):
    """The service outside (a file) has the state; the third poll is killed in the middle."""
    setup = """
def count():
    n = int(open("n").read()) + 1 if os.path.exists("n") else 1
    open("n", "w").write(str(n)); return n
@step
def job_status(job):
    hit("poll"); n = count()
    if n == 3: stand("third")
    return "done" if n >= 4 else "busy"
"""
    ran = case.killed_and_rerun(setup, "third", POLL_CELL)

    assert ran.results == ["['busy', 'busy']"], ran.errors
    assert case.effects.tags() == ["poll"] * 4


# G17 ----------------------------------------------------------------------------------------------------------------

EMBED = """
from concurrent.futures import ThreadPoolExecutor
import contextvars
@step
def embed(i): hit(f"embed{i}"); return i * 10
@step
def store(vs): hit("store"); stand("store"); return sum(vs)
class Worker(threading.Thread):
    def __init__(self, i): super().__init__(); self.i = i
    def run(self): self.value = embed(self.i)
def started(threads):
    for each in threads: each.start()
    for each in threads: each.join()
    return threads
def nest(i, out):
    def inner(): out[i] = embed(i)
    started([threading.Thread(target=inner)])
def nested(shared):
    outs = [{}] * 8 if shared else [{} for _ in range(8)]
    started([threading.Thread(target=nest, args=(i, outs[i])) for i in range(8)])
    return [outs[i][i] for i in range(8)]
def submitted():
    with ThreadPoolExecutor(3) as p: return [f.result() for f in [p.submit(embed, i) for i in range(8)]]
def pool_in_pool():
    def half(n):
        with ThreadPoolExecutor(2) as q: return list(q.map(embed, range(n, n + 4)))
    with ThreadPoolExecutor(2) as p: return [v for vs in p.map(half, (0, 4)) for v in vs]
async def in_executor():
    loop = asyncio.get_running_loop()
    return list(await asyncio.gather(*(loop.run_in_executor(None, embed, i) for i in range(8))))
async def to_thread():
    return list(await asyncio.gather(*(asyncio.to_thread(embed, i) for i in range(8))))
def timers():
    out = {}
    started([threading.Timer(0.01, lambda i=i: out.update({i: embed(i)})) for i in range(8)])
    return [out[i] for i in range(8)]
"""
POOL = "with ThreadPoolExecutor(4) as p: vs = list(p.map(embed, range(8)))"
THREADS = {
    "pool": POOL,
    "pool_with_await": f"await asyncio.sleep(0)\n{POOL}",
    "submit": "vs = submitted()",
    "thread_subclass": "vs = [w.value for w in started([Worker(i) for i in range(8)])]",
    "nested_threads": "vs = nested(shared=False)",
    "nested_threads_with_one_dict": "vs = nested(shared=True)",
    "pool_in_pool": "vs = pool_in_pool()",
    "run_in_executor": "vs = await in_executor()",
    "to_thread": "vs = await to_thread()",
    "timers": "vs = timers()",
}


@pytest.mark.parametrize("kind", THREADS)
def test_g17_a_step_in_a_worker_thread(case, kind):
    ran = case.killed_and_rerun(EMBED, "store", f"%%durable emb_{kind}\n{THREADS[kind]}\nstore(vs)\nvs")

    assert ran.results == ["[0, 10, 20, 30, 40, 50, 60, 70]"], ran.errors
    assert sorted(case.effects.tags()) == [*(f"embed{i}" for i in range(8)), "store", "store"]


def test_g17_a_thread_that_outlives_its_run_is_refused_not_silently_plain(case):
    """Never a silent non-durable call: a step that begins after the cell has ended is not executed."""
    case.open(
        EMBED
        + """
go_on, said = threading.Event(), []
def late():
    go_on.wait(30)
    try: said.append(embed(99))
    except Exception as e: said.append(f"{type(e).__name__}: {e}")
"""
    )
    case.kernel.ok("%%durable early\nthread = threading.Thread(target=late); thread.start()\nembed(1)")

    case.kernel.ok("go_on.set(); thread.join()")
    (said,) = case.kernel.value("said")

    assert said.startswith("RunEnded: ")
    assert "`early`" in said
    assert "`embed`" in said
    assert case.effects.tags() == ["embed1"]


# G27 ----------------------------------------------------------------------------------------------------------------

ECHO = """
import random
@step
def echo(i): time.sleep(random.random() / 500); hit(f"echo{i}"); return i
@step
def flaky(i):
    time.sleep(random.random() / 500); hit(f"flaky{i}")
    if i % 3 == 0: raise ValueError(f"no {i}")
    return i
@step
def boom():
    if not os.path.exists("go"): raise RuntimeError("boom")
    return "done"
def work(step, numbers, out):
    for i in numbers:
        try: out[i] = step(i)
        except ValueError as e: out[i] = str(e)
def threads(step, count, each, shared=False):
    outs = [{}] * count if shared else [{} for _ in range(count)]
    ts = [threading.Thread(target=work, args=(step, range(n * each, n * each + each), outs[n])) for n in range(count)]
    for t in ts: t.start()
    for t in ts: t.join()
    return [outs[i // each].get(i) for i in range(count * each)]
"""


@pytest.mark.parametrize(
    ("step", "count", "each", "shared"),
    [("echo", 4, 50, False), ("flaky", 8, 12, False), ("echo", 4, 50, True)],
    ids=["four", "eight that fail", "four that fill one dict"],
)
def test_g27_steps_in_threads_never_read_each_others_results(case, step, count, each, shared):
    case.open(ECHO)
    cell = f"%%durable th\nvs = threads({step}, {count}, {each}, shared={shared})\nboom()"
    right = [f"no {i}" if step == "flaky" and i % 3 == 0 else i for i in range(count * each)]

    first = case.kernel.run(cell)
    live = case.kernel.value("vs")
    again = case.rerun(cell)

    assert first.reply["ename"] == "RuntimeError", first.errors
    assert again.status == "ok", again.errors
    assert live == case.kernel.value("vs") == right
    assert sorted(case.effects.tags()) == sorted(f"{step}{i}" for i in range(count * each))
