"""Text for a terminal."""

from __future__ import annotations

import datetime
import decimal
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable.cli.shapes import plain
from jupyter_durable.cli.tables import facts, inert, moment, sentence, table, width


@given(st.text(st.characters()), st.integers(2, 40))
def test_whatever_the_text_it_is_printable_and_keeps_its_limit(text, limit):
    shown = inert(text, limit)

    assert shown.isprintable()
    assert width(shown) <= limit
    assert sentence(text).isprintable()


@given(st.lists(st.lists(st.none() | st.integers() | st.text(), min_size=3, max_size=3)))
def test_a_table_has_one_line_for_each_row(rows):
    assert len(table(["A", "B", "C"], rows).split("\n")) == len(rows) + 1


def test_wide_characters_keep_the_columns_in_line():
    text = table(["NAME", "STATUS"], [["報告", "completed"], ["é" + "\u0301", "failed"]])

    head, wide, combined = text.splitlines()
    assert head.index("STATUS") == 6
    assert wide == "報告  completed"
    assert combined == "é\u0301     failed"


def test_a_name_of_megabytes_is_cut_before_it_is_looked_at():
    assert inert("\x1b" * 10_000_000, 20) == "\\x1b\\x1b\\x1b\\x1b\\x1b…"[:19] + "…"


def test_a_half_of_a_surrogate_pair_is_shown_as_its_code():
    assert inert("a\udc80") == "a\\udc80"


def test_facts_that_are_empty_are_left_out():
    assert facts([("a", ""), ("b", None)]) == ""


@pytest.mark.parametrize("seconds", [float("nan"), 1e300, -1e300])
def test_a_time_that_is_none_is_a_question_mark(seconds):
    assert moment(seconds) == "?"


def test_no_time_is_nothing():
    assert moment(None) == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (decimal.Decimal("1.5"), 1.5),
        (decimal.Decimal("12345678901234567890.123456789"), "12345678901234567890.123456789"),
        (2**200, 2**200),
        (float("inf"), "inf"),
        (b"\x00\xff", "00ff"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), "2026-01-02T00:00:00+00:00"),
        (datetime.time(10, 30), "10:30:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({1: (True, None)}, {"1": [True, None]}),
    ],
)
def test_values_of_the_database_as_json(value, expected):
    assert plain(value) == expected
