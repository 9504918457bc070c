"""What the body of a step prints and displays is recorded, and shown again on replay."""

from __future__ import annotations

import io
import sys

import msgspec
import pytest

from jupyter_durable.engine import outputs
from jupyter_durable.event_data import OutputItem


def texts(sink):
    return [(item.kind, item.text) for item in sink]


def test_neighbouring_pieces_of_a_stream_are_joined():
    sink: list[OutputItem] = []
    for piece in ("a", "b"):
        outputs.add_text(sink, "stdout", piece)
    outputs.add_text(sink, "stderr", "c")
    outputs.add_text(sink, "stdout", "d")

    assert texts(sink) == [("stdout", "ab"), ("stderr", "c"), ("stdout", "d")]


def test_a_flood_is_cut_and_marked_once():
    sink: list[OutputItem] = []
    for _ in range(3000):
        outputs.add_text(sink, "stdout", "x" * 99 + "\n")
    outputs.add_text(sink, "stderr", "more")

    whole = "".join(item.text for item in sink)
    assert len(whole) == outputs.MOST + len(outputs.CUT)
    assert whole.count(outputs.CUT) == 1
    assert len(sink) < 100


def test_a_secret_is_not_recorded():
    sink: list[OutputItem] = []
    outputs.add_text(sink, "stdout", "the key is sk-live-8842-zzz\n")
    outputs.add_display(sink, {"text/plain": 'api_key="sk-live-8842-zzz"'}, {}, "")

    assert "8842" not in str(sink)
    assert msgspec.json.decode(sink[1].data)["data"]["text/plain"] == 'api_key="[redacted]"'


def test_an_update_takes_the_place_of_its_display():
    sink: list[OutputItem] = []
    outputs.add_display(sink, {"text/plain": "1 %"}, {}, "bar")
    outputs.add_text(sink, "stdout", "between")
    outputs.add_display(sink, {"text/plain": "100 %"}, {}, "bar", update=True)
    outputs.add_display(sink, {"text/plain": "elsewhere"}, {}, "other", update=True)

    assert [item.kind for item in sink] == ["display", "stdout"]
    assert msgspec.json.decode(sink[0].data)["data"] == {"text/plain": "100 %"}


def test_pictures_and_strange_displays_are_kept_or_left_out():
    sink: list[OutputItem] = []
    outputs.add_display(sink, {"image/png": b"\x89PNG"}, {}, "")
    outputs.add_display(sink, {"text/plain": object()}, {}, "")
    outputs.add_display(sink, {"text/plain": "x" * outputs.MOST}, {}, "")

    assert msgspec.json.decode(sink[0].data)["data"] == {"image/png": "iVBORw=="}
    assert texts(sink[1:]) == [("stdout", "[a display of this step was too large to be recorded]\n")]


def test_installing_twice_and_leaving_restores_the_streams(monkeypatch):
    class Stream(io.StringIO):
        pass

    stream = Stream()
    monkeypatch.setattr(sys, "stdout", stream)
    outputs.install()
    outputs.install()
    assert "write" in vars(stream)
    outputs.uninstall()
    print("seen")
    outputs.uninstall()

    assert "write" not in vars(stream)
    assert stream.getvalue() == "seen\n"


def test_what_somebody_else_put_over_ours_stays(monkeypatch):
    class Stream(io.StringIO):
        pass

    stream = Stream()
    monkeypatch.setattr(sys, "stdout", stream)
    outputs.install()
    stream.write = theirs = lambda text: None
    outputs.uninstall()

    assert vars(stream)["write"] is theirs


def test_emitting_without_a_shell_prints_the_plain_form(capsys):
    items = [
        OutputItem(kind="stdout", text="out\n"),
        OutputItem(kind="stderr", text="err\n"),
        OutputItem(kind="display", data=msgspec.Raw(b'{"data":{"text/plain":"shown"}}')),
    ]

    outputs.emit(items)

    assert capsys.readouterr() == ("out\nshown\n", "err\n")


# In a kernel --------------------------------------------------------------------------------------------------------

STEPS = """
from IPython.display import display, HTML, update_display
import sys
@step
def inner(n): print("inner", n)
@step
def outer(n):
    print("before", n)
    inner(n)
    print("after", n)
@step(outputs=False)
def hushed(n): print("hushed", n)
@step
async def say(n):
    print("say", n, "began"); await asyncio.sleep(0.01 * (3 - n)); print("say", n, "ended"); return n
@step
def bar():
    handle = display({"text/plain": "0 %"}, raw=True, display_id="bar")
    handle.update({"text/plain": "100 %"}, raw=True)
@step
def warn(): print("careful", file=sys.stderr)
"""


@pytest.fixture
def cells(kernel):
    """The kernel with steps that print."""
    kernel.ok(STEPS)
    return kernel


def twice(cells, name, body):
    """A cell's two executions: live, and replayed whole."""
    cell = f"%%durable {name}\n{body}"
    first, again = cells.ok(cell), cells.ok(cell)
    assert "new" not in again.summary.split("\n")[0]
    return first, again


def test_a_nested_step_is_shown_with_its_outer_one(cells):
    first, again = twice(cells, "nested", "outer(1)")

    assert first.text == again.text == "before 1\ninner 1\nafter 1\n"


def test_outputs_of_a_step_can_be_left_out(cells):
    first, again = twice(cells, "left_out", "hushed(1)\nprint('glue')")

    assert first.text == "hushed 1\nglue\n"
    assert again.text == "glue\n"


def test_concurrent_steps_keep_their_own_lines(cells):
    first, again = twice(cells, "concurrent", "await asyncio.gather(*(say(n) for n in range(3)))")

    assert sorted(first.text.splitlines()) == sorted(again.text.splitlines())
    for n in range(3):
        assert f"say {n} began\nsay {n} ended\n" in again.text


def test_a_progress_bar_is_replayed_as_it_ended(cells):
    first, again = twice(cells, "progress", "bar()")

    assert "100 %" in first.displays
    (shown,) = [c for c in again.of("display_data") if c["data"]["text/plain"] == "100 %"]
    assert shown["metadata"] == {"jupyter_durable": {"replayed": True}}
    assert shown["transient"] == {"display_id": "bar"}


def test_stderr_comes_back_as_stderr(cells):
    _, again = twice(cells, "warned", "warn()")

    streams = [(content["name"], content["text"]) for content in again.of("stream")]
    assert streams == [("stderr", "careful\n")]


def test_a_shell_command_in_a_step_is_recorded(cells):
    cells.ok("@step\ndef shelled(): get_ipython().system('echo from a shell')")
    first, again = twice(cells, "shelled", "shelled()")

    assert "from a shell" in first.text
    assert "from a shell" in again.text
