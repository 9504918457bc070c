"""One step in detail: values inert, attempts, errors, output, and model calls as conversations."""

from __future__ import annotations

import datetime as dt
import pickle
from base64 import b64encode

import httpx
import pytest

from jupyter_durable import durable, step
from jupyter_durable.demo.endpoint import Endpoint
from jupyter_durable.event_data import Adopted, OutputItem, Payload, Unstored, Usage
from jupyter_durable.events import StepAdopted, StepBilled, StepNotStored, StepOutput
from jupyter_durable.server import shapes
from tests.server.conftest import RUN
from tests.server.events import attempt_failed, completed, ended, failed, raw, started


@pytest.fixture
def show(ask):
    """The details of a step of the crafted run."""

    def show(number: int, branch: str = "main") -> shapes.StepDetail:
        return ask(f"runs/{RUN}/branches/{branch}/steps/{number}").as_(shapes.StepDetail)

    return show


@pytest.fixture
def value(begin, show):
    """The value of a step, as details show it."""

    def value(stored, codec="tagged"):
        writer = begin()
        seq = writer.append(started("a"))
        writer.append(completed(seq, stored, codec))
        return show(seq).value

    return value


def test_a_plain_value_comes_as_json_and_as_text(value):
    shown = value({"n": [1, None, "x"]}, "json")

    assert (shown.json, shown.text, shown.type) == ({"n": [1, None, "x"]}, "{'n': [1, None, 'x']}", "dict")
    assert (shown.cut, shown.size) == (False, 18)


@pytest.mark.parametrize(
    ("stored", "kind", "text"),
    [
        ({"$": "tuple", "v": [1]}, "tuple", "(1,)"),
        ({"$": "set", "v": [1, 2]}, "set", "set([1, 2])"),
        ({"$": "dict", "v": [[1, "one"]]}, "dict", "{1: 'one'}"),
        ({"$": "date", "v": "2026-01-02"}, "date", "date('2026-01-02')"),
        ({"$": "bytes", "v": "aGk="}, "bytes", "b'hi'"),
        ({"$": "timedelta", "v": [1, 2, 3]}, "timedelta", "timedelta(1, 2, 3)"),
        (
            {"$": "typed", "classes": [{"m": "app", "q": "P"}], "value": {"$": "dataclass", "class": 0, "v": {"x": 1}}},
            "app.P",
            "app.P(x=1)",
        ),
        (
            {
                "$": "typed",
                "classes": [{"m": "app", "q": "P", "ver": 3}],
                "value": {"$": "dataclass", "class": 0, "v": {}},
            },
            "app.P (version 3)",
            "app.P()",
        ),
        (
            {
                "$": "typed",
                "classes": [{"m": "a", "q": "P", "ver": 2}],
                "value": {"$": "pickle", "type": "a.P", "v": ""},
            },
            "a.P (version 2)",
            "<a.P: not loaded, 0 bytes>",
        ),
        (
            {"$": "typed", "classes": [{"m": "__main__", "q": "C"}], "value": {"$": "enum", "class": 0, "v": "RED"}},
            "C",
            "C.RED",
        ),
        ({"$": "unheard-of", "v": 1}, "unheard-of", "unheard-of(1)"),
        ({"$": "tuple"}, "tuple", "()"),
        ({"$": "dataclass", "class": 99, "v": 3}, "object", "object()"),
    ],
)
def test_a_tagged_value_is_written_out_as_its_tags_say(value, stored, kind, text):
    shown = value(stored)

    assert (shown.type, shown.text, shown.json) == (kind, text, None)


def test_no_pickle_is_ever_loaded(value, effects):
    class Bomb:
        def __reduce__(self):
            return (open, (str(effects.path), "w"))

    data = b64encode(pickle.dumps(Bomb())).decode()

    shown = value({"a": {"$": "pickle", "type": "app.Thing", "v": data}})

    assert "<app.Thing: not loaded," in shown.text
    assert not effects.path.exists()


def test_a_data_frame_shows_its_first_rows(ask, log):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")

    @step
    def frame():
        return pandas.DataFrame({"n": range(250), "s": ["<b>"] * 250}).astype({"s": "string"})

    with durable.run("frames", log=str(log)) as run:
        frame()
    shown = ask(f"runs/{run.execution.header.run}/branches/main/steps/1").as_(shapes.StepDetail).value

    assert (shown.type, shown.table.columns, shown.table.total, shown.cut) == ("DataFrame", ["n", "s"], 250, True)
    assert shown.table.rows[:2] == [[0, "<b>"], [1, "<b>"]]


def test_an_array_shows_its_first_rows_and_its_type(ask, log):
    numpy = pytest.importorskip("numpy")

    @step
    def array():
        return numpy.arange(6).reshape(3, 2)

    with durable.run("arrays", log=str(log)) as run:
        array()
    shown = ask(f"runs/{run.execution.header.run}/branches/main/steps/1").as_(shapes.StepDetail).value

    assert shown.table.rows == [[0, 1], [2, 3], [4, 5]]
    assert "<i8 (3, 2)" in shown.text


def test_libraries_of_frames_are_given_no_bytes_of_strangers(ask, log, key_file):
    numpy = pytest.importorskip("numpy")

    @step
    def array():
        return numpy.arange(3)

    with durable.run("arrays", log=str(log)) as run:
        array()
    key_file.unlink()

    shown = ask(f"runs/{run.execution.header.run}/branches/main/steps/1").as_(shapes.StepDetail).value

    assert (shown.table, shown.type) == (None, "ndarray")


def test_a_large_value_is_cut_and_its_size_is_told(ask, log):
    @step
    def large():
        return {"text": "x" * 300_000}

    with durable.run("large", log=str(log)) as run:
        large()
    shown = ask(f"runs/{run.execution.header.run}/branches/main/steps/1").as_(shapes.StepDetail).value

    assert (shown.json, shown.cut, shown.size) == (None, True, 300_011)
    assert len(shown.text) == 50_001


def test_attempts_are_told_one_by_one_with_their_errors(begin, show):
    writer = begin()
    seq = writer.append(started("a"))
    writer.append(attempt_failed(seq))
    writer.append(failed(seq, message="at last", traceback="\x1b[31mTraceback\x1b[0m: line 3"))

    detail = show(seq)

    assert [(a.number, a.status, a.error.message) for a in detail.attempts] == [
        (1, "failed", "try 0"),
        (2, "failed", "at last"),
    ]
    assert (detail.error.message, detail.error.traceback) == ("at last", "Traceback: line 3")


def test_an_attempt_cut_by_a_kernels_death_stays_in_doubt_beside_the_one_after_it(begin, show):
    first = begin()
    seq = first.append(started("a"))
    first.close()
    second = begin(first)
    again = second.append(started("a"))
    second.append(completed(again, 1))

    attempts = show(seq).attempts

    assert [(a.status, a.execution) for a in attempts] == [
        ("in_doubt", first.execution),
        ("completed", second.execution),
    ]


def test_a_running_attempt_is_running(begin, show):
    writer = begin()
    seq = writer.append(started("a"))

    assert show(seq).attempts[0].status == "running"


def test_output_comes_in_order_with_pictures_and_without_colours(begin, show):
    writer = begin()
    seq = writer.append(started("a"))
    picture = {"image/png": "aGk=", "text/html": "<script>alert(1)</script>"}
    items = (OutputItem(kind="stdout", text="\x1b[1mhi\x1b[0m"), OutputItem(kind="display", data=raw(picture)))
    writer.append(StepOutput(at=1.0, step=seq, data=items))
    writer.append(completed(seq))

    detail = show(seq)

    assert [(o.kind, o.text, o.data) for o in detail.outputs] == [("stdout", "hi", {}), ("display", "", picture)]
    assert detail.row.outputs == 2


def test_a_value_that_could_not_be_stored_says_why_and_shows_what_was_saved(begin, show):
    writer = begin()
    seq = writer.append(started("a"))
    salvage = Payload(codec="tagged", data=raw({"lock": {"$": "omitted", "type": "_thread.lock"}}))
    data = Unstored(path="result['lock']", value_type="_thread.lock", reason="it is a lock", salvage=salvage)
    writer.append(StepNotStored(at=1.0, step=seq, data=data))

    detail = show(seq)

    assert (detail.row.status, detail.not_stored.path) == ("not_stored", "result['lock']")
    assert detail.not_stored.salvage.text == "{'lock': <_thread.lock: not stored>}"


def test_an_adopted_step_names_where_its_result_comes_from(begin, show):
    first = begin()
    seq = first.append(started("a", kind="model"))
    end = first.append(completed(seq, 1))
    first.append(ended())
    first.close()
    second = begin(branch=f"{RUN}.2", branch_name="main-2")
    adopted = Adopted(
        execution=first.execution, seq=end, payload=Payload(data=raw(1)), usage=Usage(model="m", input=9, cost=0.5)
    )
    number = second.append(
        StepAdopted(at=2.0, name="a", digest="d", kind="model", why="its arguments are equal", data=adopted)
    )

    detail = show(number, "main-2")

    assert (detail.row.status, detail.row.why) == ("adopted", "its arguments are equal")
    assert (detail.row.saved.cost, detail.row.usage.cost) == (0.5, None)
    assert (detail.adopted_from.execution, detail.adopted_from.branch_name) == (first.execution, "main")
    assert detail.value.json == 1


def test_details_of_a_folded_step_come_from_the_database(ask, doubled, log):
    assert not list((log / "journal").glob("*.jsonl"))

    detail = ask(f"runs/{doubled}/branches/main/steps/3").as_(shapes.StepDetail)

    assert (detail.value.json, detail.attempts[0].status, detail.note) == ([7, 7], "completed", "")


def test_a_step_that_is_not_there_is_not_found(ask, doubled):
    answer = ask(f"runs/{doubled}/branches/main/steps/2")

    assert (answer.status, answer.problem.message) == (404, "Branch main has no step 2.")


# Model calls -------------------------------------------------------------------------------------------------------


@pytest.fixture
def conversation(log):
    """A run of three turns that each send all turns before it; the last is streamed. Its id."""
    with Endpoint() as endpoint, httpx.Client() as client, durable.run("talk", log=str(log)) as run:
        messages = [{"role": "system", "content": "Be brief. " * 100}]
        for turn in range(3):
            messages.append({"role": "user", "content": f"question {turn}"})
            body = {"model": "demo-1", "messages": messages, "temperature": 0.5, "stream": turn == 2}
            answer = client.post(f"{endpoint.url}/chat/completions", json=body)
            if turn < 2:
                messages.append(answer.json()["choices"][0]["message"])
    return run.execution.header.run


def test_a_conversation_that_was_written_as_differences_is_shown_whole(ask, conversation):
    rows = ask(f"runs/{conversation}/branches/main/steps").as_(shapes.Page).rows
    assert [row.kind for row in rows] == ["model"] * 3

    call = ask(f"runs/{conversation}/branches/main/steps/{rows[2].number}").as_(shapes.StepDetail).call

    assert [m.role for m in call.messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert call.messages[-1].parts == [shapes.Part(kind="text", text="question 2")]
    assert call.options == {"model": "demo-1", "temperature": 0.5, "stream": True}
    assert (call.api, call.model, call.status, call.complete) == ("chat.completions", "demo-1", 200, True)


def test_a_streamed_answer_is_put_together(ask, conversation):
    rows = ask(f"runs/{conversation}/branches/main/steps").as_(shapes.Page).rows
    plain, streamed = (
        ask(f"runs/{conversation}/branches/main/steps/{row.number}").as_(shapes.StepDetail).call for row in rows[1:]
    )

    for call in (plain, streamed):
        assert [m.role for m in call.reply] == ["assistant"]
        assert call.reply[0].parts[0].text
        assert call.stop == "stop"
    assert isinstance(streamed.answer, list)


def test_requests_that_build_on_each_other_in_a_circle_are_not_followed(begin, show):
    from jupyter_durable.event_data import RequestInfo

    writer = begin()
    info = RequestInfo(provider="p", api="chat", body=Payload(data=raw({})), base=1, same=("model",))
    seq = writer.append(started("chat", kind="model", data=info))

    call = show(seq).call

    assert "do not fit together" in call.note
    assert call.request is None


def test_a_request_that_is_tagged_is_not_built(begin, show):
    from jupyter_durable.event_data import RequestInfo

    writer = begin()
    body = Payload(codec="tagged", data=raw({"$": "pickle", "type": "x", "v": ""}))
    seq = writer.append(started("chat", kind="model", data=RequestInfo(provider="p", api="chat", body=body)))

    assert "no JSON" in show(seq).call.note


def test_a_billed_attempt_tells_its_tokens(begin, show):
    writer = begin()
    seq = writer.append(started("chat", kind="model"))
    writer.append(StepBilled(at=dt.datetime.now(dt.UTC).timestamp(), step=seq, data=Usage(model="m", input=3)))

    assert show(seq).attempts[0].usage.input == 3
