"""Exceptions come back of the same class, with message and attributes, so that the program takes the same way."""

from __future__ import annotations

import dataclasses

import httpx2
import msgspec
import openai
import pytest

from jupyter_durable.errors import UnloadableValue
from jupyter_durable.event_data import ErrorInfo, Payload
from jupyter_durable.values import describe_error, encode, encode_verified, restore_error


class Needy(Exception):
    def __init__(self, *, response: object, hint: str) -> None:
        super().__init__("needy")
        self.response = response
        self.hint = hint


class WithSlots(Exception):
    __slots__ = ("code",)


class ByText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@dataclasses.dataclass
class AsData(Exception):
    n: int


class Group(ExceptionGroup):
    def derive(self, excs):
        return Group(self.message, excs)


def response(status=429, body=b'{"error":{"message":"slow"}}'):
    request = httpx2.Request(
        "POST",
        "https://user:pw12345@host/v1",
        headers={"Authorization": "Bearer sk-secret-12345678"},
        content=b"prompt",
    )
    return httpx2.Response(status, request=request, content=body, headers={"retry-after": "7", "set-cookie": "s=1"})


def back(error: BaseException) -> BaseException:
    """Through the log: what `restore_error` makes of what `describe_error` gave."""
    info, encoded = describe_error(error)
    assert encoded is not None
    payload = Payload(codec=encoded.codec, data=msgspec.Raw(encoded.text))
    line = msgspec.json.encode(msgspec.structs.replace(info, payload=payload))
    return restore_error(msgspec.json.decode(line, type=ErrorInfo))


ERRORS = {
    "key": KeyError("k"),
    "several arguments": ValueError("a", 2, None),
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "stop": StopIteration(5),
    "file": FileNotFoundError(2, "No such file", "a.txt"),
    "two files": OSError(18, "cross", "a", None, "b"),
    "unicode": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    "import": ImportError("x", name="mod", path="p"),
    "attribute": AttributeError("x", name="n"),
    "syntax": SyntaxError("bad", ("f.py", 1, 2, "text")),
    "group": ExceptionGroup("g", [ValueError(1), ExceptionGroup("h", [KeyError("x")])]),
    "own group": Group("g", [ValueError(1)]),
    "dataclass": AsData(3),
    "rate limit": openai.RateLimitError("slow down", response=response(), body={"code": "rate"}),
    "connection": openai.APIConnectionError(request=response().request),
    "timeout": openai.APITimeoutError(request=response().request),
    "http status": httpx2.HTTPStatusError("bad", request=response().request, response=response()),
    "needy": Needy(response=object(), hint="h"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_exception_comes_back_of_the_same_class_with_the_same_message(name):
    error = ERRORS[name]

    restored = back(error)

    assert type(restored) is type(error)
    assert str(restored) == str(error)
    if name not in ("group", "own group"):
        assert restored.args == error.args


def test_an_sdk_error_is_caught_by_its_class_with_status_and_response():
    try:
        raise back(ERRORS["rate limit"])
    except openai.RateLimitError as error:
        restored = error

    assert (restored.status_code, restored.code, restored.body) == (429, "rate", {"code": "rate"})
    assert restored.response.headers["retry-after"] == "7"
    assert restored.response.json() == {"error": {"message": "slow"}}


def test_the_response_of_an_http_error_decides_as_it_did():
    restored = back(ERRORS["http status"])

    assert restored.response.status_code == 429
    assert str(restored.request.url.host) == "host"


def test_no_header_password_or_prompt_of_a_request_is_stored():
    error = ERRORS["rate limit"]

    encoded = describe_error(error)[1]

    for secret in (b"sk-secret", b"pw12345", b"prompt", b"s=1"):
        assert secret not in encoded.text


def test_what_cannot_be_stored_of_an_exception_is_dropped_and_named():
    restored = back(ERRORS["needy"])

    assert restored.hint == "h"
    assert not hasattr(restored, "response")
    assert restored.__not_stored__ == {"response": "object"}
    assert restored.__notes__ == ["not stored in the log: response (object)"]
    assert back(restored).__notes__ == restored.__notes__


def test_members_of_c_code_come_back():
    file, two = back(ERRORS["file"]), back(ERRORS["two files"])
    found = [file.errno, file.filename, two.filename2, back(ERRORS["exit"]).code, back(ERRORS["stop"]).value]
    found += [back(ERRORS["unicode"]).object, back(ERRORS["import"]).name, back(ERRORS["syntax"]).lineno]

    assert found == [2, "a.txt", "b", 3, 5, b"\xff", "mod", 1]


def test_slots_notes_and_causes_come_back():
    error = WithSlots("a")
    error.code = 4
    error.add_note("a note")
    error.__cause__ = KeyError("k")
    error.__cause__.__cause__ = ERRORS["needy"]

    restored = back(error)

    assert (restored.code, restored.__notes__) == (4, ["a note"])
    assert isinstance(restored.__cause__, KeyError)
    assert restored.__cause__.__cause__.hint == "h"


def test_raise_from_none_stays_so():
    error = ValueError("a")
    error.__cause__ = None

    assert back(error).__suppress_context__ is True


def test_a_chain_of_causes_ends_and_may_be_a_circle():
    error = ValueError("a")
    error.__cause__ = KeyError("b")
    error.__cause__.__cause__ = error

    assert type(back(error).__cause__.__cause__) is ValueError


def test_an_exception_is_never_a_pickle_and_may_be_a_result():
    encoded, restored = encode_verified([ValueError("a"), ERRORS["connection"]])

    assert b'"pickle"' not in encoded.text
    assert isinstance(restored[1], openai.APIConnectionError)


def test_an_exception_inside_a_pickled_object_loads():
    class_of = type(ERRORS["rate limit"])

    restored = encode_verified(Holder(ERRORS["rate limit"]))[1]

    assert type(restored.error) is class_of


class Holder:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def test_an_exception_whose_class_has_no_name_is_described_and_not_restored():
    class Local(Exception):
        pass

    info, encoded = describe_error(Local("m"))

    assert encoded is None
    assert info.message == "m"
    with pytest.raises(UnloadableValue, match="Local"):
        restore_error(info)


def test_a_class_that_is_gone_is_named():
    info, encoded = describe_error(ERRORS["needy"])
    text = encoded.text.replace(b'"q":"Needy"', b'"q":"Gone"')

    with pytest.raises(UnloadableValue, match="Gone"):
        restore_error(msgspec.structs.replace(info, payload=Payload(codec="tagged", data=msgspec.Raw(text))))


def test_secrets_are_taken_out_of_messages_and_arguments():
    info, encoded = describe_error(ValueError("bad key sk-live-8842-zzzz"))

    assert info.message == "bad key [redacted]"
    assert b"8842" not in encoded.text
    assert "8842" not in info.traceback


def test_a_traceback_shows_no_frame_of_ours_and_is_capped():
    def deep(n):
        if n == 0:
            encode(x for x in [])
        deep(n - 1)

    try:
        deep(50)
    except Exception as error:
        info = describe_error(error)[0]
    try:
        raise ValueError("x" * 50_000)
    except ValueError as error:
        long = describe_error(error)[0]

    assert "in deep" in info.traceback
    assert "jupyter_durable/values" not in info.traceback.replace("tests/values", "")
    assert len(long.traceback) <= 8 * 1024
    assert len(long.message) <= 8 * 1024


def test_an_exception_that_cannot_be_shown_is_still_described():
    info = describe_error(ByText())[0]

    assert info.type.endswith("ByText")
    assert "RuntimeError" in info.message
