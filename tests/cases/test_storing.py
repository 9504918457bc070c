"""G02, G04, G05: what a step returns and what must not be stored of it."""

from __future__ import annotations

import pytest

from tests.cases.conftest import refused

SESSION = """
import openai
@step
def open_session(): hit("open_session"); return {"id": 31, "client": openai.OpenAI(api_key="sk-fake-8842")}
@step
def use(s): hit("use"); return s["id"]
"""
SESSION_CELL = "%%durable sess\ns = open_session()\nuse(s)"


def test_g02_a_result_that_cannot_be_stored(case):
    case.open(SESSION)

    first = case.kernel.run(SESSION_CELL)

    words = (
        "`sess`",
        "`open_session`",
        "['client']",
        "openai.OpenAI",
        "return the id; make the client inside the step",
    )
    refused(first, "UnstorableValue", *words, "DID happen", hidden=("sk-fake-8842",))
    assert case.effects.tags() == ["open_session"]
    assert case.statuses("sess") == [("open_session", "not_stored")]

    again = case.kernel.run(SESSION_CELL)
    elsewhere = case.rerun(SESSION_CELL)

    for ran in (again, elsewhere):
        refused(ran, "ValueNotStored", *words[:4], "its effect did happen", "%durable settle", hidden=("sk-fake-8842",))
    assert case.effects.tags() == ["open_session"]
    assert b"sk-fake-8842" not in case.stored()
    # A way out: a person says what the step gave.
    case.kernel.ok("%durable settle open_session value {'id': 31}")
    assert case.kernel.ok(SESSION_CELL).results == ["31"]
    assert case.effects.tags() == ["open_session", "use"]


UNSTORABLE = {
    "generator": ("(n for n in range(3))", "result", "generator"),
    "coroutine": ("closed(work())", "result", "coroutine"),
    "lock": ("threading.Lock()", "result", "lock"),
    "rlock": ("{'a': {'b': threading.RLock()}}", "result['a']['b']", "RLock"),
    "socket": ("[1, (2, socket.socket())]", "result[1][1]", "socket"),
    "sqlite": ("Holder('db', sqlite3.connect(':memory:'))", "result.inner", "sqlite3.Connection"),
    "duckdb": ("{'rows': [1], 'db': duckdb.connect()}", "result['db']", "DuckDBPyConnection"),
    "context_variable": ("contextvars.ContextVar('v')", "result", "ContextVar"),
    "event_loop": ("[asyncio.new_event_loop()]", "result[0]", "loop"),
    "written_file": ("{'log': open('written.txt', 'w')}", "result['log']", "TextIOWrapper"),
    "thread": ("[threading.Thread(target=print)]", "result[0]", "Thread"),
    "future": ("asyncio.get_event_loop_policy and concurrent.futures.Future()", "result", "Future"),
    "process": ("subprocess.Popen(['true'])", "result", "Popen"),
    "http_client": ("{'c': [httpx2.Client()]}", "result['c'][0]", "Client"),
    "key_of_a_dict": ("{threading.Lock(): 1}", "result", "lock"),
    "set": ("{threading.Lock()}", "result", "lock"),
    "dataclass_in_list": ("[Holder('x', [Holder('y', memoryview(b'abc'))])]", "result[0].inner[0].inner", "memoryview"),
    "local_class": ("local()", "result", "Local"),
}


@pytest.mark.parametrize("kind", UNSTORABLE)
def test_g02_every_kind_is_refused_with_its_place(kernel, effects, kind):
    made, path, type_name = UNSTORABLE[kind]
    kernel.ok(
        effects.code
        + f"""
import socket, sqlite3, duckdb, contextvars, concurrent.futures, subprocess, dataclasses, httpx2
@dataclasses.dataclass
class Holder: name: str; inner: object
async def work(): pass
kept = []
def closed(coroutine): kept.append(coroutine); return coroutine
def local():
    class Local: pass
    return Local()
@step
def make_{kind}(prompt): hit("made"); return {made}
"""
    )
    cell = f"%%durable holds_{kind}\nv = make_{kind}('the secret prompt')"

    first, again = kernel.run(cell), kernel.run(cell)
    kernel.ok("_ = [each.close() for each in kept]")

    words = (f"`holds_{kind}`", f"`make_{kind}`", path, type_name)
    refused(first, "UnstorableValue", *words, "To solve it, ", "DID happen", hidden=("the secret prompt",))
    refused(again, "ValueNotStored", *words, "%durable settle", hidden=("the secret prompt",))
    assert effects.tags() == ["made"]


@pytest.mark.parametrize("annotation", ["collections.abc.Iterator[str]", "'sqlite3.Connection'", "openai.OpenAI"])
def test_g02_where_the_signature_says_so_it_is_refused_before_the_effect(kernel, effects, annotation):
    kernel.ok(
        f"{effects.code}\nimport collections.abc, openai, sqlite3\n"
        f"@step\ndef told() -> {annotation}: hit('told'); return 1"
    )

    refused(kernel.run("%%durable told_run\ntold()"), "UnstorableValue", "`told_run`", "`told`", "cannot be stored")

    assert effects.tags() == []


# G04 ----------------------------------------------------------------------------------------------------------------

FILES = {
    "text": "open('feed.txt')",
    "binary": "open('feed.txt', 'rb')",
    "unbuffered": "open('feed.txt', 'rb', buffering=0)",
    "named_temporary": "tempfile.NamedTemporaryFile('w+')",
    "temporary": "tempfile.TemporaryFile()",
    "spooled": "tempfile.SpooledTemporaryFile()",
    "temporary_folder": "tempfile.TemporaryDirectory()",
    "zip": "zipfile.ZipFile('feed.zip')",
    "zip_member": "zipfile.ZipFile('feed.zip').open('a.txt')",
    "gzip": "gzip.open('feed.gz', 'rt')",
    "tar": "tarfile.open('feed.tar')",
    "in_a_list": "[open('feed.txt')]",
    "path_open": "pathlib.Path('feed.txt').open()",
}
FILE_IMPORTS = "import tempfile, zipfile, gzip, tarfile, pathlib, io, warnings\nwarnings.simplefilter('ignore')\n"


def test_g04_an_open_file(case):
    """``durable.sleep`` is not there yet: the cell ends at once, for nothing of it may go on after the refusal."""
    (case.folder / "feed.txt").write_text("one\ntwo\n")
    case.open('@step\ndef open_feed(): hit("open_feed"); f = open("feed.txt"); f.readline(); return f')
    cell = "%%durable feed\nf = open_feed()\nhold()\nrest = f.read()"

    first = case.kernel.run(cell)
    with (case.folder / "feed.txt").open("a") as file:
        file.write("three\n")
    case.kill()
    again = case.rerun(cell)

    words = ("`feed`", "`open_feed`", "TextIOWrapper", "open file", "return its path")
    refused(first, "UnstorableValue", *words, "DID happen", hidden=("two",))
    refused(again, "ValueNotStored", *words, hidden=("two",))
    assert case.effects.tags() == ["open_feed"]
    assert "rest" not in case.kernel.value("sorted(globals())")


@pytest.mark.parametrize("kind", FILES)
def test_g04_every_kind_of_file_is_refused(kernel, effects, kind):
    kernel.ok(
        effects.code
        + FILE_IMPORTS
        + f"""
pathlib.Path("feed.txt").write_text("one")
with zipfile.ZipFile("feed.zip", "w") as z: z.writestr("a.txt", "one")
with gzip.open("feed.gz", "wt") as g: g.write("one")
with tarfile.open("feed.tar", "w") as t: t.add("feed.txt")
@step
def open_{kind}(): hit("opened"); return {FILES[kind]}
"""
    )

    refused(
        kernel.run(f"%%durable file_{kind}\nf = open_{kind}()"), "UnstorableValue", f"`file_{kind}`", "return its path"
    )

    assert effects.tags() == ["opened"]


def test_g04_a_file_in_memory_is_a_value_and_keeps_its_place(case):
    """The counterpart: what cloudpickle would make of a file is stored where it is what the step returned."""
    ran = case.killed_and_rerun(
        "import io\n@step\ndef text(): f = io.StringIO('one\\ntwo'); f.readline(); return f", "hold",
        "%%durable memory\nf = text()\nhold()\nf.read()",
    )  # fmt: skip

    assert ran.results == ["'two'"], ran.errors


# G05 ----------------------------------------------------------------------------------------------------------------

KEY = "sk-live-8842-zzz"
LOOKUP = f"""
import functools
API_KEY = "{KEY}"
BIG = "x" * 20_000_000
class Lookup:
    def call(self, q): return (API_KEY, q, len(BIG))
    def size(self): return len(BIG)
class Keeper: pass
def keep(value):
    keeper = Keeper(); keeper.inner = value; return keeper
def plain(q): return API_KEY
def closing(key):
    def inner(q): return key
    return inner
"""


def test_g05_a_key_of_the_notebook_does_not_end_up_in_the_log(case):
    case.open(LOOKUP + "@step\ndef pick_tool(): hit('pick'); return Lookup()\n")
    cell = "%%durable tools\ntool = pick_tool()\nhold()\ntool.call('q')[1:]"
    case.kill_at("hold", cell)

    ran = case.rerun(cell)
    case.kernel.end(now=False)

    assert ran.results == ["('q', 20000000)"]
    assert case.effects.tags() == ["pick"]
    assert KEY.encode() not in case.stored()
    assert sum(path.stat().st_size for path in case.durable.rglob("*") if path.is_file()) < 3_000_000


CARRIERS = {
    "lambda": "lambda q: API_KEY",
    "closure": "closing(API_KEY)",
    "default": "lambda q, key=API_KEY: key",
    "partial_of_lambda": "functools.partial(lambda q: API_KEY, 1)",
    "bound_method": "Lookup().call",
    "attribute_with_bound_method": "keep(Lookup().call)",
    "attribute_with_lambda": "keep(lambda q: API_KEY)",
    "function": "plain",
    "instance_in_list": "[Lookup(), {'tool': Lookup()}]",
    "class": "Lookup",
    "nested_lambda": "lambda: (lambda: API_KEY)",
    "failing": "1 / 0 if API_KEY else 0",
}


@pytest.mark.parametrize("kind", CARRIERS)
def test_g05_nothing_that_carries_code_takes_the_key_along(case, kind):
    """Stored without it, or refused with the name of what captures it; text that a step returns is stored."""
    case.open(LOOKUP + f"@step\ndef pick(): hit('pick'); return {CARRIERS[kind]}\n")

    ran = case.kernel.run(f"%%durable carry_{kind}\ntool = pick()")
    case.kernel.end(now=False)

    if kind == "failing":
        assert ran.reply["ename"] == "ZeroDivisionError"
    elif ran.status == "error":
        refused(ran, "UnstorableValue", f"`carry_{kind}`", "`pick`", hidden=(KEY,))
    assert case.effects.tags() == ["pick"]
    assert KEY.encode() not in case.stored()


def test_g05_a_key_in_a_cell_in_an_error_and_in_a_traceback_is_taken_out(case):
    """Docs: taken out of sources, tracebacks and other text for people; here as the ways into the log that are left."""
    case.open(f"@step\ndef call(key): hit('call'); raise ValueError('bad key ' + key)\nAPI_KEY = '{KEY}'")

    case.kernel.run(f"%%durable said\nkey = '{KEY}'\ntry: call(key)\nexcept ValueError: pass\ncall(API_KEY)")
    case.kernel.end(now=False)

    assert KEY.encode() not in case.stored()
