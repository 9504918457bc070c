"""Decides by type alone which values are never stored and never digested: what is alive, or holds something outside.

Such a value is a door (a file, a connection, a lock) or a piece of running program (a generator, a task); a copy of
it would be another thing. Some of them can be pickled, into something else without a word: an open file becomes a
frozen copy of its text.
"""

from __future__ import annotations

import re
import sys
import types
import typing
import weakref
from typing import Any

import msgspec

from jupyter_durable.errors import UnstorableValue


class Refusal(msgspec.Struct, frozen=True):
    """Why a type is refused, and what to do instead."""

    reason: str
    advice: str


_RUNNING = Refusal("it is a piece of running program", "return what it yields, such as list(...), not the thing itself")
_TASK = Refusal("it is work under way", "await it inside the step and return its result")
_LOCK = Refusal("it belongs to this process", "make it outside of the step and use it there")
_FILE = Refusal("it is an open file", "read it inside the step and return the text, or return its path")
_CONNECTION = Refusal("it is a connection", "open it inside the step and return plain data, such as the rows")
_CLIENT = Refusal("it is a client that holds connections and keys", "return the id; make the client inside the step")
_CONTEXT = Refusal("it belongs to this process", "return the value that it holds")
_VIEW = Refusal("it is a view of memory that belongs to something else", "return bytes(...) of it")
_MATCH = Refusal("it is a match that cannot be copied", "return match.groups(), match.group() or match.span()")
_FRAME = Refusal("it is a piece of running program", "return its text, such as traceback.format_exc()")
_WEAK = Refusal("it is a weak reference", "return the object itself or its id")

# By name, so that nothing is imported for the sake of asking; every class of the MRO is looked up.
_BY_NAME: dict[str, Refusal] = {
    **dict.fromkeys(("builtins.generator", "builtins.coroutine", "builtins.async_generator"), _RUNNING),
    **dict.fromkeys(("builtins.coroutine_wrapper", "builtins.async_generator_asend"), _RUNNING),
    **dict.fromkeys(("_asyncio.Future", "_asyncio.Task", "asyncio.futures.Future", "asyncio.tasks.Task"), _TASK),
    **dict.fromkeys(("concurrent.futures._base.Future", "multiprocessing.pool.ApplyResult"), _TASK),
    **dict.fromkeys(("distributed.client.Future", "asyncio.tasks._GatheringFuture"), _TASK),
    **dict.fromkeys(("_thread.lock", "_thread.RLock", "_thread._local", "_thread._ThreadHandle"), _LOCK),
    **dict.fromkeys(("threading.Thread", "threading._RLock", "threading.Event", "threading.Condition"), _LOCK),
    **dict.fromkeys(("threading.Semaphore", "threading.Barrier", "_threading_local.local"), _LOCK),
    **dict.fromkeys(("asyncio.locks.Lock", "asyncio.locks.Event", "asyncio.locks.Condition"), _LOCK),
    **dict.fromkeys(("asyncio.locks.Semaphore", "asyncio.queues.Queue", "asyncio.taskgroups.TaskGroup"), _LOCK),
    **dict.fromkeys(("queue.Queue", "_queue.SimpleQueue", "concurrent.futures._base.Executor"), _LOCK),
    **dict.fromkeys(("asyncio.events.AbstractEventLoop", "asyncio.events.Handle", "subprocess.Popen"), _LOCK),
    **dict.fromkeys(("asyncio.runners.Runner", "multiprocessing.process.BaseProcess", "mmap.mmap"), _LOCK),
    **dict.fromkeys(("_io._IOBase", "tempfile._TemporaryFileWrapper", "tempfile.SpooledTemporaryFile"), _FILE),
    **dict.fromkeys(("tempfile.TemporaryDirectory", "zipfile.ZipFile", "tarfile.TarFile"), _FILE),
    "posix.ScandirIterator": _FILE,
    **dict.fromkeys(("_socket.socket", "ssl.SSLSocket", "ssl.SSLObject", "_ssl._SSLContext"), _CONNECTION),
    **dict.fromkeys(("selectors.BaseSelector", "select.epoll", "select.poll"), _CONNECTION),
    **dict.fromkeys(("asyncio.streams.StreamReader", "asyncio.streams.StreamWriter"), _CONNECTION),
    **dict.fromkeys(("http.client.HTTPConnection", "http.client.HTTPResponse", "smtplib.SMTP"), _CONNECTION),
    **dict.fromkeys(("sqlite3.Connection", "sqlite3.Cursor", "ftplib.FTP", "imaplib.IMAP4"), _CONNECTION),
    **dict.fromkeys(("_contextvars.ContextVar", "_contextvars.Context", "_contextvars.Token"), _CONTEXT),
    **dict.fromkeys(("builtins.ContextVar", "builtins.Context", "builtins.Token"), _CONTEXT),
    "builtins.memoryview": _VIEW,
    "re.Match": _MATCH,
    **dict.fromkeys(("builtins.frame", "builtins.traceback"), _FRAME),
    **dict.fromkeys(("weakref.ReferenceType", "weakref.ProxyType", "weakref.CallableProxyType"), _WEAK),
    **dict.fromkeys(("builtins.weakref", "builtins.weakproxy", "weakref.WeakMethod", "weakref.finalize"), _WEAK),
    **dict.fromkeys(("openai._base_client.BaseClient", "anthropic._base_client.BaseClient"), _CLIENT),
    **dict.fromkeys(("requests.sessions.Session", "requests.adapters.BaseAdapter"), _CLIENT),
    **dict.fromkeys(("botocore.client.BaseClient", "boto3.session.Session", "botocore.session.Session"), _CLIENT),
    **dict.fromkeys(("boto3.resources.base.ServiceResource", "aiohttp.client.ClientSession"), _CLIENT),
}

_ALLOWED = frozenset(("_io.StringIO", "_io.BytesIO"))

# In these packages a class whose name has one of the words is a client or a connection, whatever it inherits from.
_PACKAGES = frozenset(
    (
        *("openai", "anthropic", "cohere", "mistralai", "groq", "together", "litellm", "google", "mcp"),
        *("httpx", "httpx2", "httpcore", "requests", "urllib3", "aiohttp", "grpc", "paramiko"),
        *("boto3", "botocore", "fsspec", "s3fs"),
        *("duckdb", "_duckdb", "psycopg", "psycopg2", "asyncpg", "aiosqlite", "sqlalchemy", "pymysql", "mysql"),
        *("pymongo", "redis", "snowflake", "elasticsearch", "opensearchpy"),
        *("chromadb", "qdrant_client", "weaviate", "pinecone"),
    )
)
_WORDS = re.compile(
    r"Client(?!Error|Exception|Response)(?!.*(?:Error|Exception|Response|Config|Options|Params|Info)$)|Connection$"
    r"|Cursor$|Session$|Engine$|Stream$|StreamManager$|Pool$|PoolManager$|Channel$|Transport$|FileSystem$"
    r"|^(?:Async)?(?:Open|Azure|AsyncAzure)AI$|^(?:Async)?AzureOpenAI$|^(?:Async)?Anthropic$|DuckDBPy(?!Type)"
)

_known: weakref.WeakKeyDictionary[type[Any], tuple[Refusal | None]] = weakref.WeakKeyDictionary()


def refusal(value: object) -> Refusal | None:
    """Why a value of this type is never stored, or ``None``.

    >>> refusal(x for x in [1]).reason
    'it is a piece of running program'
    >>> refusal([1]) is None
    True
    """
    cls = type(value)
    found = _known.get(cls)
    if found is None:
        found = _known[cls] = (refusal_of_class(cls),)
    return found[0]


def refusal_of_class(cls: type[Any]) -> Refusal | None:
    """Why instances of the class are never stored, or ``None``."""
    for base in cls.__mro__:
        module = str(getattr(base, "__module__", "") or "")
        name = f"{module}.{base.__qualname__}"
        if name in _ALLOWED:
            return None
        if name in _BY_NAME:
            return _BY_NAME[name]
        if module.partition(".")[0] in _PACKAGES and _WORDS.search(base.__name__) and not _is_data(cls):
            return _CLIENT
    return None


def _is_data(cls: type[Any]) -> bool:
    """Errors and pydantic models are data, whatever they are called (`Session`, `ConnectionError`)."""
    return issubclass(cls, BaseException) or any(one.__module__ == "pydantic.main" for one in cls.__mro__)


def unstorable(path: str, cls: type[Any], reason: str, advice: str) -> UnstorableValue:
    """The error for a value that cannot be stored: where it is, what it is, why, and the way out."""
    name = type_name(cls)
    return UnstorableValue(
        f"{path or 'The value'} cannot be stored ({name}): {reason}. To solve it, {advice}.",
        path=path,
        type=name,
        reason=reason,
        advice=advice,
    )


def type_name(cls: type[Any]) -> str:
    """Name of a class as people write it: ``openai.OpenAI``, ``dict``, ``Ticket`` for a class of the notebook."""
    module = str(getattr(cls, "__module__", "") or "")
    name = cls.__qualname__
    if module in ("builtins", "__main__", ""):
        return name
    top = module.partition(".")[0]
    exported = _exported(top, name)
    return f"{top}.{name}" if exported is cls else f"{module}.{name}"


_ALIVE = frozenset(
    (
        *("Generator", "Iterator", "AsyncGenerator", "AsyncIterator", "Coroutine", "Awaitable", "Future", "Task"),
        *("GeneratorType", "CoroutineType", "AsyncGeneratorType", "FrameType", "TracebackType"),
        *("IO", "TextIO", "BinaryIO", "IOBase", "RawIOBase", "TextIOBase", "TextIOWrapper", "FileIO"),
        *("BufferedReader", "BufferedWriter", "Thread", "Lock", "RLock", "ContextVar", "memoryview", "Match"),
        *("ContextManager", "AsyncContextManager", "AbstractContextManager", "AbstractAsyncContextManager"),
    )
)
"""Last parts of the names of annotations that can never be stored."""


def unstorable_annotation(annotation: object) -> str | None:
    """Whether a return annotation says that the value can never be stored; to refuse before the effect.

    Args:
        annotation: as it stands in ``__annotations__``: a class, a generic, or its text.

    Returns:
        A sentence part that names the type and the way out, or ``None`` if nothing speaks against it.

    >>> import collections.abc
    >>> unstorable_annotation(collections.abc.Iterator[int])
    'Iterator cannot be stored: return what it yields, such as list(...), not the thing itself'
    >>> unstorable_annotation(list[int]) is None
    True
    """
    if isinstance(annotation, str):
        # Only the outermost name of the text counts; `"Generator | None"` may be None in the end.
        name = re.fullmatch(r"\s*([\w.]+)\s*(?:\[.*\])?\s*", annotation, re.DOTALL)
        if name is None:
            return None
        short = name[1].rpartition(".")[2]
        if short in _ALIVE:
            return _annotation_sentence(short)
        if short in ("OpenAI", "AsyncOpenAI", "Anthropic", "AsyncAnthropic"):
            return f"{name[1]} cannot be stored: {_CLIENT.advice}"
        return None
    if annotation is types.NoneType or annotation is None:
        return None
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return unstorable_annotation(typing.get_args(annotation)[0])
    cls = origin if origin is not None else annotation
    if not isinstance(cls, type):
        return None
    if cls.__module__ in ("collections.abc", "typing", "contextlib") and cls.__name__ in _ALIVE:
        return _annotation_sentence(cls.__name__)
    refused = refusal_of_class(cls)
    return f"{type_name(cls)} cannot be stored: {refused.advice}" if refused else None


def _annotation_sentence(name: str) -> str:
    if name in ("Coroutine", "Awaitable", "Future", "Task", "CoroutineType"):
        advice = _TASK.advice
    elif name in ("Generator", "Iterator", "AsyncGenerator", "AsyncIterator", "GeneratorType"):
        advice = _RUNNING.advice
    elif "IO" in name or "Buffered" in name:
        advice = _FILE.advice
    else:
        advice = "return plain data instead"
    return f"{name} cannot be stored: {advice}"


def _exported(module: str, name: str) -> object:
    # Not `getattr`: some packages import, or warn, when a name is asked for.
    return vars(sys.modules[module]).get(name) if module in sys.modules else None
