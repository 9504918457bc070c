"""Records what the body of a step prints and displays, and shows it again on replay.

While a durable cell lives, ``write`` of stdout and stderr and ``publish`` of IPython's display publisher look at the
frame of the code that calls them. Code outside of a step's body costs one look; nothing costs anything where
nothing is written.
"""

from __future__ import annotations

import base64
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec

from jupyter_durable.engine.context import Frame, current
from jupyter_durable.event_data import OutputItem
from jupyter_durable.values import redact

MOST = 64 * 1024
"""Characters that are kept of the output of one step."""

CUT = "\n[the rest of this step's output was not recorded]\n"

_PIECE = 1024
"""Characters up to which a neighbouring piece of a stream is joined to the one before it."""

_lock = threading.RLock()
_users = 0
_shell: Any = None
_undo: list[Callable[[], None]] = []


def install(shell: Any = None) -> None:
    """Begin to record; nested calls count.

    Args:
        shell: IPython's shell, whose displays are recorded too.
    """
    global _users, _shell
    with _lock:
        _users += 1
        if _users > 1:
            return
        _shell = shell
        _replace(sys.stdout, "write", lambda original: _writer(original, "stdout"))
        _replace(sys.stderr, "write", lambda original: _writer(original, "stderr"))
        if shell is not None:
            _replace(shell.display_pub, "publish", _publisher)


def uninstall() -> None:
    """Undo one `install`; what somebody else has put over ours is left alone."""
    global _users, _shell
    with _lock:
        _users -= 1
        if _users == 0:
            while _undo:
                _undo.pop()()
            _shell = None


def emit(items: Iterable[OutputItem]) -> None:
    """Show recorded output again; displays are marked as replayed."""
    for item in items:
        if item.kind == "display":
            _display_again(item)
        else:
            stream = sys.stdout if item.kind == "stdout" else sys.stderr
            stream.write(item.text)


def _display_again(item: OutputItem) -> None:
    assert isinstance(item.data, msgspec.Raw)
    bundle = msgspec.json.decode(item.data)
    if _shell is None:
        sys.stdout.write(str(bundle["data"].get("text/plain", "")) + "\n")
        return
    metadata = {**bundle.get("metadata", {}), "jupyter_durable": {"replayed": True}}
    transient = {"display_id": item.text} if item.text else {}
    _shell.display_pub.publish(bundle["data"], metadata, transient=transient)


def _replace(owner: Any, name: str, wrapped: Callable[[Any], Any]) -> None:
    """Put a function over a method of one object, until `uninstall`."""
    own = vars(owner).get(name) if hasattr(owner, "__dict__") else None
    mine = wrapped(getattr(owner, name))
    try:
        setattr(owner, name, mine)
    except AttributeError:
        return  # a stream that takes no attributes: its output is not recorded

    def undo() -> None:
        if vars(owner).get(name) is not mine:
            return
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)

    _undo.append(undo)


def _writer(original: Callable[..., Any], kind: Literal["stdout", "stderr"]) -> Callable[..., Any]:
    def write(text: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(text, *args, **kwargs)
        frame = current()
        if frame is not None and frame.outputs is not None and isinstance(text, str) and text:
            for sink in _sinks(frame):
                add_text(sink, kind, text)
        return result

    return write


def _publisher(original: Callable[..., Any]) -> Callable[..., Any]:
    def publish(data: Any, metadata: Any = None, *args: Any, **kwargs: Any) -> Any:
        result = original(data, metadata, *args, **kwargs)
        frame = current()
        if frame is not None and frame.outputs is not None and isinstance(data, dict):
            name = str((kwargs.get("transient") or {}).get("display_id", ""))
            for sink in _sinks(frame):
                add_display(sink, data, metadata or {}, name, update=bool(kwargs.get("update")))
        return result

    return publish


def _sinks(frame: Frame) -> Iterator[list[OutputItem]]:
    """The step whose body writes, and the steps around it: on replay the outermost one speaks for all of them."""
    sink, call = frame.outputs, frame.step
    while sink is not None:
        yield sink
        place = call.place if call is not None else None
        while place is not None and not place.is_step:
            place = place.parent
        attempts = list(frame.execution.in_flight.values())
        around = next(
            (a for a in attempts if place is not None and a.body is not None and a.body._place is place), None
        )
        if around is None:
            return
        sink, call = around.outputs, around.call


def add_text(sink: list[OutputItem], kind: Literal["stdout", "stderr"], text: str) -> None:
    """Record a piece of a stream."""
    room = _room(sink)
    if room <= 0:
        return
    if len(text) > room:
        text = text[:room] + CUT
    last = sink[-1] if sink else None
    if last is not None and last.kind == kind and len(last.text) < _PIECE:
        sink[-1] = OutputItem(kind=kind, text=redact(last.text + text))
    else:
        sink.append(OutputItem(kind=kind, text=redact(text)))


def add_display(
    sink: list[OutputItem], data: dict[str, Any], metadata: dict[str, Any], name: str, *, update: bool = False
) -> None:
    """Record a display; an update of one takes its place, so that a progress bar is replayed as it ended."""
    try:
        raw = msgspec.json.encode({"data": data, "metadata": metadata}, enc_hook=_plain)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return  # front ends cannot be sent it either
    redacted = redact(raw.decode())
    if redacted.encode() != raw:
        try:
            raw = msgspec.json.encode(msgspec.json.decode(redacted))
        except msgspec.DecodeError:
            return  # holds a secret that cannot be taken out
    item = OutputItem(kind="display", text=name, data=msgspec.Raw(raw))
    if update:
        for index, old in enumerate(sink):
            if name and old.kind == "display" and old.text == name:
                sink[index] = item
        return
    if len(raw) <= _room(sink):
        sink.append(item)
    elif _room(sink) > 0:
        add_text(sink, "stdout", "[a display of this step was too large to be recorded]\n")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    raise TypeError(type(value).__qualname__)


def _room(sink: list[OutputItem]) -> int:
    """Characters that a step may still write; a negative number after the mark that it was cut."""
    used = sum(len(item.text) + (len(item.data) if isinstance(item.data, msgspec.Raw) else 0) for item in sink)
    return MOST - used
