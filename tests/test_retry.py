"""When a failed attempt is tried again, and after how long."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import math
import pickle
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable import clock
from jupyter_durable.errors import (
    NondeterminismError,
    RunSealed,
    StepTimeout,
    UnstorableValue,
    UsageError,
)
from jupyter_durable.retry import RetryPolicy, parse_duration, retry_after


class Noon(clock.SystemClock):
    """2026-12-01 12:00:00 UTC, for ever."""

    time = staticmethod(lambda: dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC).timestamp())


class HTTPError(Exception):
    """An error as SDKs make them: with the response that brought it."""

    def __init__(self, headers: object) -> None:
        super().__init__("status 429")
        self.response = SimpleNamespace(headers=headers)


def delays(policy: RetryPolicy, random01: float = 0.0) -> list[float | None]:
    """What a policy answers to its first failures."""
    return [policy.next(attempt, OSError(), random01) for attempt in range(1, 10)]


# Durations


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30s", 30),
        ("2m", 120),
        ("2min", 120),
        ("1h30m", 5400),
        ("1 h 30 m", 5400),
        ("500ms", 0.5),
        ("1.5H", 5400),
        ("3d", 259_200),
        ("1w", 604_800),
        (dt.timedelta(minutes=1), 60),
        (5, 5),
        (0.25, 0.25),
        (0, 0),
    ],
)
def test_durations_are_read(value, seconds):
    assert parse_duration(value) == seconds


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("30", "cannot be read"),
        ("", "cannot be read"),
        ("soon", "cannot be read"),
        ("1h 30", "cannot be read"),
        ("1m 1m", "cannot be read"),
        ("1h-30m", "cannot be read"),
        ("٣s", "cannot be read"),
        ("9" * 400 + "s", "finite"),
        (-1, "negative"),
        (dt.timedelta(seconds=-1), "negative"),
        (math.nan, "finite"),
        (math.inf, "finite"),
        (10**400, "finite"),
        (True, "not a `bool`"),
        (None, "not a `NoneType`"),
        ([1], "not a `list`"),
    ],
)
def test_what_is_no_duration_is_refused_in_words(value, said):
    with pytest.raises(UsageError, match=said) as caught:
        parse_duration(value, "timeout")

    assert "`timeout`" in str(caught.value)


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_a_duration_is_the_sum_of_its_parts(hours, minutes, seconds, millis):
    text = f"{hours}h{minutes}m{seconds}s{millis}ms"

    assert parse_duration(text) == pytest.approx(hours * 3600 + minutes * 60 + seconds + millis / 1000)


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(UsageError):
        assert parse_duration(text) >= 0


# Delays


def test_without_retries_a_step_fails_at_once():
    assert RetryPolicy().next(1, OSError(), 0.5) is None


def test_delays_double_from_one_second_to_a_minute():
    assert delays(RetryPolicy(retries=8)) == [1, 2, 4, 8, 16, 32, 60, 60, None]


def test_jitter_adds_up_to_a_quarter():
    policy = RetryPolicy(retries=1)

    assert [policy.next(1, OSError(), random01) for random01 in (0.0, 0.5, 1.0)] == [1, 1.125, 1.25]


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (5, [5, 10, 20]),
        ("90s", [90, 90, 90]),
        (0, [0, 0, 0]),
        ((1, 1, 1), [1, 1, 1]),
        (("500ms", 3, "2s"), [0.5, 1.5, 2]),
        ([1, 10, 50], [1, 10, 50]),
    ],
)
def test_backoff_is_a_first_delay_or_three_parts(backoff, expected):
    assert delays(RetryPolicy(retries=3, backoff=backoff))[:4] == [*expected, None]


def test_a_function_of_the_attempt_is_taken_as_it_is():
    policy = RetryPolicy(retries=3, backoff=lambda n: f"{n * 10}s")

    assert delays(policy, random01=1.0)[:4] == [10, 20, 30, None]


def test_a_function_that_answers_no_delay_is_told_so():
    with pytest.raises(UsageError, match="`backoff`"):
        RetryPolicy(retries=1, backoff=lambda _: None).next(1, OSError(), 0.0)


@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(1, 1e6), st.floats(0, 1e6))
def test_a_delay_is_never_longer_than_the_longest_and_its_jitter(attempt, random01, factor, first):
    policy = RetryPolicy(retries=10**6, backoff=(first, factor, 1e6))

    delay = policy.next(attempt, OSError(), random01)

    assert delay is not None
    assert first <= delay <= 1e6 * 1.25


# What is retried


def test_types_and_subclasses_are_retried():
    policy = RetryPolicy(retries=1, retry_on=(OSError, KeyError))

    assert [policy.next(1, error, 0) for error in (ConnectionError(), KeyError(), ValueError())] == [1, 1, None]


def test_a_predicate_decides():
    policy = RetryPolicy(retries=1, retry_on=lambda error: "again" in str(error))

    assert policy.next(1, ValueError("try again"), 0) == 1
    assert policy.next(1, ValueError("no"), 0) is None


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(), asyncio.CancelledError(), RunSealed("over")])
def test_what_is_no_exception_is_never_retried(stop):
    assert RetryPolicy(retries=9, retry_on=lambda _: True).next(1, stop, 0) is None
    assert RetryPolicy(retries=9).next(1, BaseExceptionGroup("g", [stop]), 0) is None


@pytest.mark.parametrize("error", [NondeterminismError("n"), UnstorableValue("u"), UsageError("u")])
def test_our_own_errors_are_never_retried(error):
    assert RetryPolicy(retries=9).next(1, error, 0) is None
    assert RetryPolicy(retries=9).next(1, ExceptionGroup("g", [OSError(), error]), 0) is None


def test_a_timeout_of_the_step_is_retried():
    assert RetryPolicy(retries=1).next(1, StepTimeout("slow"), 0) == 1


def test_a_group_is_retried_if_all_its_members_are():
    policy = RetryPolicy(retries=1, retry_on=OSError)

    assert policy.next(1, ExceptionGroup("g", [OSError(), ConnectionError()]), 0) == 1
    assert policy.next(1, ExceptionGroup("g", [OSError(), ValueError()]), 0) is None


# What a server says


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "20"}, 20),
        ({"Retry-After": "1.5"}, 1.5),
        ({b"retry-after": b"3"}, 3),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Tue, 01 Dec 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Tue, 01 Dec 2026 14:00:30 +0200"}, 30),
        ({"retry-after": "Tue, 01 Dec 2026 12:00:30 -0000"}, 30),
        ({"retry-after": "Tue, 01 Dec 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "in a while"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
        (None, None),
        ("retry-after: 3", None),
    ],
)
def test_headers_of_the_answer_are_read(headers, seconds):
    with clock.use(Noon()):
        assert retry_after(HTTPError(headers)) == seconds


@pytest.mark.parametrize(
    ("given", "seconds"), [(7, 7), ("7", 7), (dt.timedelta(seconds=7), 7), (None, None), (True, None), (object(), None)]
)
def test_an_attribute_of_the_error_is_read(given, seconds):
    error = OSError()
    error.retry_after = given

    assert retry_after(error) == seconds


def test_an_error_whose_attributes_raise_is_still_retried():
    class Broken(Exception):
        @property
        def retry_after(self):
            raise RuntimeError

        @property
        def response(self):
            raise RuntimeError

    assert RetryPolicy(retries=1).next(1, Broken(), 0) == 1


@pytest.mark.parametrize("client", ["httpx", "httpx2"])
def test_headers_of_a_real_client_are_read(client):
    httpx = pytest.importorskip(client)
    request = httpx.Request("GET", "http://127.0.0.1")
    response = httpx.Response(429, headers={"Retry-After": "12"}, request=request)

    assert retry_after(httpx.HTTPStatusError("429", request=request, response=response)) == 12


def test_what_a_server_says_goes_before_the_own_delay():
    policy = RetryPolicy(retries=2, backoff=lambda _: 1)

    assert policy.next(1, HTTPError({"retry-after": "20"}), 0) == 20
    assert policy.next(1, HTTPError({"retry-after": "20"}), 1) == 25
    assert policy.next(3, HTTPError({"retry-after": "20"}), 0) is None


# Parameters


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retries": -1}, "`retries`"),
        ({"retries": 1.5}, "`retries`"),
        ({"retries": True}, "`retries`"),
        ({"retries": "3"}, "`retries`"),
        ({"backoff": -1}, "`backoff`"),
        ({"backoff": "fast"}, "`backoff`"),
        ({"backoff": None}, "`backoff`"),
        ({"backoff": (1, 2)}, "`backoff`"),
        ({"backoff": (1, 0.5, 9)}, "factor of `backoff`"),
        ({"backoff": (9, 2, 1)}, "longest delay of `backoff`"),
        ({"backoff": (1, 2, -1)}, "longest delay"),
        ({"jitter": 2}, "`jitter`"),
        ({"jitter": None}, "`jitter`"),
        ({"retry_on": "OSError"}, "`retry_on`"),
        ({"retry_on": (OSError, 1)}, "`retry_on`"),
        ({"retry_on": KeyboardInterrupt}, "`retry_on`"),
        ({"retry_on": int}, "`retry_on`"),
        ({"timeout": 0}, "`timeout`"),
        ({"timeout": "never"}, "`timeout`"),
    ],
)
def test_a_parameter_that_cannot_be_meant_is_named(options, said):
    with pytest.raises(UsageError, match=said):
        RetryPolicy(**options)


def test_an_empty_retry_on_retries_nothing():
    assert RetryPolicy(retries=3, retry_on=()).next(1, OSError(), 0) is None


def test_a_timeout_is_kept_in_seconds():
    assert RetryPolicy(timeout="2m").timeout == 120
    assert RetryPolicy().timeout is None


def test_policies_are_values():
    policy = RetryPolicy(retries=2, backoff="3s", retry_on=OSError)

    assert pickle.loads(pickle.dumps(policy)) == policy == RetryPolicy(2, 3, 0.25, (OSError,))
    with pytest.raises(AttributeError):
        policy.retries = 5
