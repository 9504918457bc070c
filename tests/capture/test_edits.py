"""After an edit: which recorded answers are used again."""

from __future__ import annotations

import pytest

from jupyter_durable import errors, step


@pytest.fixture
def edited(run):
    """Execute a function as a cell, then another one as the same cell after an edit, with an edited first step."""

    def edited(before, after):
        def cell(version, rest):
            @step(name="prepare", key=lambda: "prepare", version=version)
            def prepare():
                return version

            prepare()
            return rest()

        with run():
            first = cell("1", before)
        with run(reuse="pure"):
            return first, cell("2", after)

    return edited


def test_an_equal_request_is_not_bought_again_after_an_edit(edited, ask, requests_made):
    first, second = edited(lambda: ask("hello"), lambda: ask("hello"))

    assert first == second
    assert requests_made() == 1


def test_another_request_is_bought_and_says_in_what_it_differs(run, ask, requests_made):
    def cell(version, prompt):
        @step(name="prepare", key=lambda: "prepare", version=version)
        def prepare():
            return version

        prepare()
        return ask(prompt)

    with run():
        cell("1", "the first prompt")
    with run(reuse="pure") as begun:
        cell("2", "the other prompt")

    assert requests_made() == 2
    assert "`messages[0].content`" in begun.execution.stats.rows[-1].why


def test_a_request_with_a_tool_of_the_provider_is_asked_about(run, client, requests_made):
    def search():
        return client.responses.create(model="gpt-5-mini", input="news", tools=[{"type": "web_search"}]).output_text

    def cell(version):
        @step(name="prepare", key=lambda: "prepare", version=version)
        def prepare():
            return version

        prepare()
        return search()

    with run():
        cell("1")
    with pytest.raises(errors.DecisionNeeded, match="responses"), run():
        step(name="prepare", key=lambda: "prepare", version="2", rerun="always")(lambda: "2")()
        search()

    assert requests_made() == 1
