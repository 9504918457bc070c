"""The panel and the server speak of the same shapes."""

from __future__ import annotations

from tests.browser.shapes_ts import OUT, text


def test_the_panel_knows_the_shapes_that_the_server_answers_with():
    assert OUT.read_text(encoding="utf-8") == text(), "write it anew: python tests/browser/shapes_ts.py"
