"""What cannot be stored is refused by name, with its place in the value and a way out."""

from __future__ import annotations

import ast
import asyncio
import collections.abc
import concurrent.futures
import contextvars
import dataclasses
import io
import logging
import re
import socket
import sqlite3
import sys
import tempfile
import threading
import types
import typing
import weakref

import duckdb
import httpx2
import openai
import pydantic
import pytest
import requests

from jupyter_durable.errors import UnstorableValue
from jupyter_durable.values import encode, encode_verified
from jupyter_durable.values.check import find_offenders, unstorable_annotation

SETTING = "not for the log"


@dataclasses.dataclass
class Session:
    id: int
    client: object


class Holder:
    def __init__(self, content: object) -> None:
        self.content = content


class Model(pydantic.BaseModel, arbitrary_types_allowed=True):
    lock: object


class Slots:
    __slots__ = ("a",)

    def __init__(self, a: object) -> None:
        self.a = a


class NotBack:
    """Can be written and not be read, as errors of some SDKs can."""

    def __reduce__(self):
        return NotBack, (1, 2, 3)


class Impostor:
    def __reduce__(self):
        return dict, ()


async def coroutine() -> None: ...


def generator():
    yield 1


@pytest.fixture
def refused(tmp_path):
    """One value of every kind that is never stored, closed again afterwards."""
    (tmp_path / "feed.txt").write_text("a\nb\n")
    loop = asyncio.new_event_loop()
    started = coroutine()
    left, right = socket.socketpair()
    read = (tmp_path / "feed.txt").open()
    write = (tmp_path / "out.txt").open("w")
    raw = (tmp_path / "feed.txt").open("rb", buffering=0)
    buffered = (tmp_path / "feed.txt").open("rb")
    temporary = tempfile.NamedTemporaryFile()  # noqa: SIM115
    connection = sqlite3.connect(":memory:")
    ducks = duckdb.connect()
    openai_client = openai.OpenAI(api_key="sk-fake")
    http_client = httpx2.Client()
    session = requests.Session()
    pool = concurrent.futures.ThreadPoolExecutor(1)
    try:
        raise ValueError
    except ValueError as error:
        trace = error.__traceback__
    yield {
        "generator": generator(),
        "generator expression": (x for x in [1]),
        "coroutine": started,
        "future": concurrent.futures.Future(),
        "asyncio future": loop.create_future(),
        "event loop": loop,
        "asyncio lock": asyncio.Lock(),
        "lock": threading.Lock(),
        "reentrant lock": threading.RLock(),
        "thread": threading.current_thread(),
        "event": threading.Event(),
        "executor": pool,
        "socket": left,
        "file open for reading": read,
        "file open for writing": write,
        "raw file": raw,
        "buffered file": buffered,
        "temporary file": temporary,
        "standard output": sys.__stdout__,
        "sqlite connection": connection,
        "sqlite cursor": connection.cursor(),
        "duckdb connection": ducks,
        "duckdb relation": ducks.sql("select 1"),
        "context variable": contextvars.ContextVar("x"),
        "context": contextvars.copy_context(),
        "memoryview": memoryview(b"a"),
        "match": re.match("a", "a"),
        "frame": sys._getframe(),
        "traceback": trace,
        "weak reference": weakref.ref(Holder),
        "openai client": openai_client,
        "openai resource": openai_client.chat.completions,
        "http client": http_client,
        "requests session": session,
        "unknown module": types.ModuleType("made_up"),
    }
    for one in (left, right, read, write, raw, buffered, temporary, connection, ducks, openai_client, http_client,
                session, started, loop):  # fmt: skip
        one.close()
    pool.shutdown()


KINDS = (
    "generator", "generator expression", "coroutine", "future", "asyncio future", "event loop", "asyncio lock", "lock",
    "reentrant lock", "thread", "event", "executor", "socket", "file open for reading", "file open for writing",
    "raw file", "buffered file", "temporary file", "standard output", "sqlite connection", "sqlite cursor",
    "duckdb connection", "duckdb relation", "context variable", "context", "memoryview", "match", "frame",
    "traceback", "weak reference", "openai client", "openai resource", "http client", "requests session",
    "unknown module",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_alive_is_refused_with_path_type_and_advice(refused, kind):
    value = refused[kind]

    for wrapped, path in ((value, "result"), ({"a": [value]}, "result['a'][0]"), (Holder(value), "result.content")):
        with pytest.raises(UnstorableValue) as caught:
            encode_verified(wrapped)

        error = caught.value
        assert error.path.startswith(path)
        assert error.type in str(error)
        assert error.path in str(error)
        assert error.advice
        assert error.advice in str(error)


def test_a_client_inside_a_result_is_named_with_its_key(refused):
    with pytest.raises(UnstorableValue) as caught:
        encode({"id": 31, "client": refused["openai client"]})

    assert (caught.value.path, caught.value.type) == ("result['client']", "openai.OpenAI")
    assert "return the id; make the client inside the step" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (Session(1, threading.Lock()), "result.client"),
        ((1, Holder({"deep": [threading.Lock()]})), "result[1].content['deep'][0]"),
        (Model(lock=threading.Lock()), "result.lock"),
        (Slots([threading.Lock()]), "result.a[0]"),
        ([Holder(Slots(threading.Lock()))], "result[0].content.a"),
        (Holder(generator).content, None),
    ],
)
def test_the_path_leads_to_the_deepest_offender(value, path):
    if path is None:
        assert encode_verified(value)[1] is generator
        return
    with pytest.raises(UnstorableValue) as caught:
        encode(value)

    assert caught.value.path == path


def test_a_captured_offender_is_found_in_a_closure():
    lock = threading.Lock()

    found = find_offenders({"call": lambda: lock})

    assert [(one.path, one.type) for one in found] == [("result['call'] (captured lock)", "_thread.lock")]


def test_all_offenders_up_to_the_limit_are_found():
    value = {str(place): threading.Lock() for place in range(5)}

    assert [one.path for one in find_offenders(value, limit=3)] == ["result['0']", "result['1']", "result['2']"]
    assert find_offenders({"a": [1, {"b": (2, None)}]}) == []


def test_the_search_ends_in_a_cycle_and_at_its_deadline():
    value: list[object] = [threading.Lock()]
    value.append(value)

    assert [one.path for one in find_offenders(value)] == ["result[0]"]
    assert [one.path for one in find_offenders(value, seconds=-1)] == ["result"]


def test_in_memory_files_are_values():
    restored = encode_verified([io.StringIO("text"), io.BytesIO(b"bytes")])[1]

    assert [one.read() for one in restored] == ["text", b"bytes"]


def test_what_can_be_written_and_not_read_is_refused():
    with pytest.raises(UnstorableValue, match="can be written but not read back"):
        encode_verified({"a": NotBack()})


def test_what_comes_back_as_another_type_is_refused():
    with pytest.raises(UnstorableValue, match="it comes back as dict"):
        encode_verified([Impostor()])


def test_a_function_with_a_global_is_refused_by_the_name_of_the_global():
    with pytest.raises(UnstorableValue, match=r"`.*<lambda>`, which captures global `SETTING`"):
        encode(lambda: [SETTING])


def test_a_function_over_modules_functions_and_classes_is_stored():
    restored = encode_verified(lambda x: (re.escape(x), Holder, generator, len(x)))[1]

    assert restored("a.") == ("a\\.", Holder, generator, 2)


def test_a_key_in_a_closure_default_or_constant_is_refused():
    key = "sk-live-8842-zzzz"

    for function in (lambda: key, lambda k="sk-live-8842-zzzz": k, lambda: "sk-live-8842-zzzz"):
        with pytest.raises(UnstorableValue, match="key or password") as caught:
            encode(function)
        assert "8842" not in str(caught.value)


def test_the_headers_of_a_stored_response_lose_their_secrets():
    request = httpx2.Request("GET", "https://x/", headers={"Authorization": "Bearer abcdef1234567"})
    response = httpx2.Response(200, request=request, content=b"hello", headers={"set-cookie": "session=1"})

    encoded, restored = encode_verified(response)

    assert restored.text == "hello"
    assert restored.request.headers["authorization"] == "[redacted]"
    assert restored.headers["set-cookie"] == "[redacted]"
    assert request.headers["authorization"] == "Bearer abcdef1234567"
    assert b"abcdef1234567" not in encoded.text + b"".join(encoded.blobs.values())


def test_messages_never_contain_the_value():
    with pytest.raises(UnstorableValue) as caught:
        encode([{"prompt": "the secret plan", "x": threading.Lock()}, "the secret plan"])

    assert "secret plan" not in str(caught.value) + repr(caught.value.facts)


@pytest.mark.parametrize(
    "annotation",
    [
        collections.abc.Generator, collections.abc.Iterator[int], typing.AsyncIterator[str], collections.abc.Coroutine,
        typing.IO[str], typing.TextIO, io.TextIOWrapper, threading.Thread, asyncio.Task, openai.OpenAI,
        openai.AsyncOpenAI, sqlite3.Connection, httpx2.Client, "Iterator[int]", "collections.abc.Generator[int]",
        "openai.OpenAI", typing.Annotated[collections.abc.Iterator[int], "x"], duckdb.DuckDBPyConnection,
    ],
)  # fmt: skip
def test_a_return_annotation_that_can_never_be_stored_is_known_before_the_effect(annotation):
    assert "cannot be stored" in (unstorable_annotation(annotation) or "")


@pytest.mark.parametrize(
    "annotation",
    [
        None, int, "int", list[int], "list[Iterator]", collections.abc.Iterable[int], typing.Any, Session, "Session",
        collections.abc.Sequence, io.StringIO, ast.AST, logging.Logger, "Iterator | None", int | None, typing.Optional,
        openai.RateLimitError, openai.types.chat.ChatCompletion,
    ],
)  # fmt: skip
def test_other_annotations_say_nothing(annotation):
    assert unstorable_annotation(annotation) is None
