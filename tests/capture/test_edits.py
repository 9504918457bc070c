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


async def test_an_equal_request_is_used_again_in_another_kind_of_place(run, provider, requests_made):
    """A loop becomes a `gather`: the answers depend on nothing but the requests."""
    import asyncio

    import openai

    async with openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-test-1") as client:

        async def ask(text):
            message = {"role": "user", "content": text}
            answer = await client.chat.completions.create(model="gpt-4o-mini", messages=[message])
            return answer.choices[0].message.content

        def prepare(version):
            return step(name="prepare", key=lambda: "prepare", version=version, rerun="always")(lambda: version)()

        async with run():
            prepare("1")
            before = [await ask(text) for text in "abc"]
        async with run():
            prepare("2")
            after = await asyncio.gather(*map(ask, "abc"))

    assert after == before
    assert requests_made() == 3
