"""G03: a step failed with an error that can be written but not read back, and the program caught it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Refusing:
    """FAKE LLM that answers every request with one status, and counts the requests."""

    def __init__(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self.requests = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests += 1
                text = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST  # noqa: N815 (the name is the base class's)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def limited() -> Iterator[Refusing]:
    """An endpoint that answers 429."""
    error = {
        "error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded", "param": None}
    }
    server = Refusing(429, error, {"x-request-id": "req_123", "Retry-After": "7"})
    yield server
    server.close()


GUARDED = """
import openai
client = openai.OpenAI(api_key="sk-live-4711-abcdef", base_url="URL", max_retries=0)
@step(retries=0)
def ask(): hit("ask"); return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "q"}])
@step
def fallback(): hit("fallback"); return "cached answer"
@step
def publish(a): hit("publish"); stand("publish"); return len(a)
"""
GUARDED_CELL = """%%durable guarded
try: a = ask()
except openai.RateLimitError as e:
    caught = (type(e).__name__, e.status_code, str(e), e.code, e.body, e.request_id, e.response.status_code,
              e.response.headers["retry-after"], isinstance(e, openai.APIStatusError))
    print("caught", caught)
    a = fallback()
publish(a)
"""


def test_g03_an_sdk_error_that_cannot_be_read_back(case, limited):
    case.open(GUARDED.replace("URL", limited.url))
    request = case.kernel.send(GUARDED_CELL)
    live = case.kernel.collect(request, lambda ran: "at publish" in ran.text)
    case.kill()

    ran = case.rerun(GUARDED_CELL)

    assert ran.results == ["13"], ran.errors
    assert "429" in live.text
    said = [line for line in (live.text + ran.text).splitlines() if line.startswith("caught")]
    assert len(said) == 2
    assert said[0] == said[1]
    assert case.effects.tags() == ["ask", "fallback", "publish", "publish"]
    assert limited.requests == 1
    assert b"sk-live-4711-abcdef" not in case.stored()


KINDS = """
import openai, httpx2, json, asyncio, zipfile, subprocess, urllib.error, email.message, pydantic, enum
URL = "HERE"
client = openai.OpenAI(api_key="k", base_url=URL, max_retries=0)
nobody = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", max_retries=0)
class Code(enum.Enum): A = 1
class NeedsWords(Exception):
    def __init__(self, *, code, tone): super().__init__(f"{code} {tone.name}"); self.code = code; self.tone = tone
class TwoArguments(ValueError):
    def __init__(self, text, where): super().__init__(text); self.where = where
class Silent(Exception):
    def __init__(self, limit): self.limit = limit
    def __str__(self): return f"over {self.limit}"
class Child(NeedsWords): pass
class Model(pydantic.BaseModel): n: int
def raise_(error): raise error
def chained():
    try: raise_(NeedsWords(code=1, tone=Code.A))
    except NeedsWords as error: raise TwoArguments("outer", [2]) from error
def status():
    httpx2.post(URL, json={}).raise_for_status()
MAKERS = {
    "openai_status": lambda: client.responses.create(model="m", input="q"),
    "openai_connection": lambda: nobody.responses.create(model="m", input="q"),
    "http_status": status,
    "http_connect": lambda: httpx2.get("http://127.0.0.1:9"),
    "required_words": lambda: raise_(NeedsWords(code=7, tone=Code.A)),
    "subclass": lambda: raise_(Child(code=8, tone=Code.A)),
    "two_arguments": lambda: raise_(TwoArguments("text", {"line": 3})),
    "silent": lambda: raise_(Silent(9)),
    "json": lambda: json.loads("{bad"),
    "unicode": lambda: b"\\xff".decode(),
    "process": lambda: subprocess.run(["false"], check=True),
    "os": lambda: open("/no/such/file"),
    "http_error": lambda: raise_(urllib.error.HTTPError("http://x", 404, "gone", email.message.Message(), None)),
    "chained": chained,
    "group": lambda: raise_(ExceptionGroup("two", [NeedsWords(code=1, tone=Code.A), KeyError("k")])),
}
@step
def fail(kind): hit(kind); MAKERS[kind]()
def part(e, name):
    try: return getattr(e, name)
    except Exception: return None
def told(e):
    attributes = ("status_code", "code", "tone", "where", "limit", "errno", "filename", "returncode", "lineno", "pos",
                  "start", "body")
    return (type(e) is globals().get(type(e).__name__, type(e)), type(e).__mro__[-4:], str(e),
            e.args if type(e).__module__ == "__main__" else (),
            [(name, part(e, name)) for name in attributes], str(e.__cause__), type(e.__cause__),
            [str(each) for each in part(e, "exceptions") or ()])
"""
KINDS_CELL = """%%durable failing
facts = {}
for kind in MAKERS:
    try: fail(kind)
    except Exception as e: facts[kind] = told(e)
print("FACTS", repr(facts))
hold()
"""


def test_g03_every_kind_of_error_is_raised_again_as_what_it_was(case, limited):
    """Errors of SDKs, of HTTP libraries, of the notebook with required keyword arguments, chained, in groups."""
    case.open(KINDS.replace("HERE", limited.url))
    request = case.kernel.send(KINDS_CELL)
    live = case.kernel.collect(request, lambda ran: "at hold" in ran.text)
    case.kill()

    ran = case.rerun(KINDS_CELL)

    assert ran.status == "ok", ran.errors
    (first,) = [line for line in live.text.splitlines() if line.startswith("FACTS")]
    (second,) = [line for line in ran.text.splitlines() if line.startswith("FACTS")]
    assert second == first
    assert case.kernel.value("[kind for kind in facts if not facts[kind][0]]") == []
    assert [tag for tag in case.effects.tags() if case.effects.count(tag) != 1] == []
    assert limited.requests == 2


def test_g03_an_answer_that_does_not_validate_is_raised_again(case):
    """What an agent catches most often: the model's answer does not fit, ask again."""
    cell = """%%durable parsing
try: parse('{"n": "many"}')
except pydantic.ValidationError as e: said = (e.error_count(), e.errors()[0]["loc"], e.errors()[0]["type"], str(e))
hold()
said[:3]
"""
    ran = case.killed_and_rerun(
        "import pydantic\nclass Model(pydantic.BaseModel): n: int\n"
        "@step\ndef parse(text): hit('parse'); return Model.model_validate_json(text)",
        "hold",
        cell,
    )

    assert ran.results == ["(1, ('n',), 'int_parsing')"], ran.errors
    assert case.effects.tags() == ["parse"]


def test_g03_a_failure_that_ended_the_cell_is_tried_again_and_never_a_type_error(case, limited):
    case.open(GUARDED.replace("URL", limited.url))
    cell = "%%durable bare\nask()"

    first, again, elsewhere = case.kernel.run(cell), case.kernel.run(cell), case.rerun(cell)

    assert [ran.reply["ename"] for ran in (first, again, elsewhere)] == ["RateLimitError"] * 3
    assert limited.requests == 3
