"""Whatever a stranger wrote into a log, it is shown, and nothing breaks."""

from __future__ import annotations

import string

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable.server.inert import Writer
from jupyter_durable.server.messages import conversation, options, tools
from jupyter_durable.server.replies import events_of, reply

NAMES = """
    $ v class classes value of m q blob size type text role content parts messages input contents prompt system tools
    instructions choices delta message candidates output tool_calls function name arguments id index image_url url
    source data inlineData functionCall functionResponse toolUse toolResult thinking summary finish_reason args base
    ver
""".split()
WORDS = [
    *"tuple set dict enum error dataclass pydantic subclass nparray pickle bytes namespace typed image text".split(),
    *"tool_use tool_result reasoning function_call content_block_start response.completed base64 user tool".split(),
]

texts = st.sampled_from(WORDS) | st.text(string.printable, max_size=8)
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | texts
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=25,
)


@given(trees, st.lists(trees, max_size=3))
def test_every_tree_has_a_text(tree, classes):
    writer = Writer(classes, tagged=True, longest=200)

    text, cut = writer.whole(tree)
    assert writer.version_of(tree) in ("", " (version 2)", " (version 3)")

    assert len(text) <= 201
    assert cut == text.endswith("…") or not cut
    assert isinstance(writer.type_of(tree), str)


@given(trees)
def test_every_request_and_answer_is_a_conversation_of_some_kind(tree):
    stop = reply(tree)[1]
    found = [*conversation(tree), *reply(tree)[0]]

    assert isinstance(stop, str)
    msgspec.convert(msgspec.to_builtins(found), list[type(found[0])] if found else list)
    assert all(isinstance(name, str) for name in tools(tree))
    assert isinstance(options(tree), dict)


@given(st.text())
def test_every_text_is_a_stream_of_some_events(text):
    assert isinstance(events_of(text), list)
