"""A conversation is written down once, not once for each turn, and can be put together again."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable import errors
from jupyter_durable.capture.asked import recorded_request
from jupyter_durable.capture.conversation import Conversations, whole_body
from jupyter_durable.capture.providers.base import Ask
from jupyter_durable.history import History
from jupyter_durable.log import open_log
from jupyter_durable.log.query import connect

TURN = "a sentence of some length that is new in its turn and about forty words long, " * 8


def converse(client, turns: int) -> list[dict]:
    messages: list[dict] = [{"role": "system", "content": "You are helpful."}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{turn} {TURN}"})
        answer = client.chat.completions.create(model="gpt-4o-mini", messages=messages)
        messages.append({"role": "assistant", "content": answer.choices[0].message.content})
    return messages


def test_the_log_of_a_conversation_grows_by_what_is_new(run, client, tmp_path):
    with run():
        messages = converse(client, 40)
    new = len(msgspec.json.encode(messages))
    written = sum(path.stat().st_size for path in (tmp_path / "log" / "journal").rglob("*") if path.is_file())
    with connect(tmp_path / "log") as log:
        [(bodies,)] = log.sql("SELECT sum(length(CAST(request -> '$.body' AS VARCHAR))) FROM llm_calls").fetchall()

    assert bodies < 1.3 * new
    assert written < 10 * new


def test_every_request_of_a_conversation_can_be_put_together_again(run, client, provider, tmp_path):
    with run() as begun:
        converse(client, 6)
    sent = [msgspec.json.decode(seen.body) for seen in provider.desk.seen()]
    log = open_log(str(tmp_path / "log"))
    history = History(log.history(begun.execution.header.branch))

    whole = []
    for entry in history.models:
        found = recorded_request(entry, log)
        assert found is not None
        whole.append(whole_body(found[1], found[0], log))

    assert whole == sent


def test_what_differs_deep_in_a_conversation_is_found(run, client, requests_made):
    class Boom(Exception):
        pass

    def talk(last: str):
        messages = converse(client, 5)
        client.chat.completions.create(model="gpt-4o-mini", messages=[*messages, {"role": "user", "content": last}])
        raise Boom

    with pytest.raises(Boom), run():
        talk("It is 10:45.")
    with pytest.raises(errors.NondeterminismError, match=r"`messages\[11\]\.content`"), run():
        talk("It is 11:02.")

    assert requests_made() == 6


class Kept:
    """A log that keeps requests in memory, as far as putting them together needs one."""

    read_blob = None

    def __init__(self):
        self.infos = []

    def reload(self, _execution, seq):
        data = self.infos[seq]
        return msgspec.defstruct("R", ["event"])(msgspec.defstruct("E", ["data"])(data))


bodies = st.dictionaries(
    st.sampled_from("abcd"),
    st.one_of(st.integers(), st.text(max_size=5), st.lists(st.text(min_size=200, max_size=300), max_size=4)),
    max_size=4,
)


@given(st.lists(bodies, max_size=6))
def test_any_sequence_of_requests_comes_back_as_it_was(sent):
    """Whatever grows, shrinks, comes and goes."""
    conversations, log = Conversations(), Kept()
    for body in sent:
        ask = Ask("POST", "https", "api.example.com", None, "/v1/chat/completions", body=msgspec.json.encode(body))
        info, remember = conversations.written("here", ask, (), None)
        log.infos.append(info)
        remember(len(log.infos) - 1)

    assert [whole_body(info, "e", log) for info in log.infos] == sent
