"""What is shown: one line, a table, plain text; nothing that runs, nothing that a value could break out of."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

import pytest

from jupyter_durable.engine.stats import StepRow
from jupyter_durable.kernel.display import MOST_ROWS, CellView, as_html, as_text, line, table


def view(**changes):
    seen = CellView(
        name="review", branch="main", status="completed", replayed=11, adopted=0, live=3, failed=0, seconds=6.2,
        rows=[StepRow(0, "ask", "replayed", 0.0, "recorded"), StepRow(4, "write", "live", 1.5, "")],
    )  # fmt: skip
    return dataclasses.replace(seen, **changes)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "review · 14 steps · 11 replayed, 3 new · 6.2 s"),
        ({"replayed": 1, "live": 0}, "review · 1 step · 1 replayed · 6.2 s"),
        ({"replayed": 0, "live": 0}, "review · 0 steps · 6.2 s"),
        ({"branch": "main-2", "adopted": 9, "replayed": 0}, "review · main-2 · 12 steps · kept 9, 3 new · 6.2 s"),
        ({"status": "failed", "failed": 1}, "review · failed · 14 steps · 11 replayed, 3 new (1 failed) · 6.2 s"),
        ({"status": "running", "at": "search"}, "review · running: search · 14 steps · 11 replayed, 3 new · 6.2 s"),
        ({"status": "stopped"}, "review · stopped · 14 steps · 11 replayed, 3 new · 6.2 s"),
    ],
)
def test_the_line_says_what_happened(changes, text):
    assert line(view(**changes)) == text


def test_notices_and_an_offer_follow_the_line():
    shown = view(notices=["step `ask` changed its argument `x`"], offer="say `%%durable review --fresh`")

    assert as_text(shown).splitlines()[1:] == [
        "note: step `ask` changed its argument `x`",
        "say `%%durable review --fresh`",
    ]
    assert "<code>%%durable review --fresh</code>" in as_html(shown)


class Strict(HTMLParser):
    """Collects tags and complains about ones that are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes = [], set(), set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_html_is_static_closed_and_free_of_colours():
    parser = Strict()
    parser.feed(as_html(view(notices=["a `b` c"])))

    assert parser.open == []
    assert parser.seen <= {"div", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert parser.attributes <= {"style", "scope"}
    assert not re.search(r"color|background|url|expression", as_html(view()))


def test_names_cannot_break_out_of_the_html():
    evil = "<img src=x onerror=alert(1)>`</code><script>"
    rows = [StepRow(0, evil, "live", 0.1, evil)]
    html = as_html(view(name=evil, branch=evil, rows=rows, notices=[evil], offer=evil))

    assert "<img" not in html
    assert "<script" not in html
    assert "<img" not in table([evil], [[evil]], evil).html


def test_a_long_run_lists_its_last_steps_and_says_where_the_rest_is():
    rows = [StepRow(n, f"s{n}", "live", 0.1) for n in range(MOST_ROWS + 50)]
    html = as_html(view(rows=rows))

    assert html.count("<tr>") == MOST_ROWS + 1
    assert "50 earlier steps: <code>%durable history review</code>" in html


def test_a_table_has_an_empty_face():
    assert table(["step", "status"], []).text == "step  status"
