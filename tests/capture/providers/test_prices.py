"""Costs: of genai-prices, of the user, or unknown; never invented."""

from __future__ import annotations

import datetime as dt
import sys
import time

import genai_prices
import pytest
from genai_prices import data_snapshot
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable import clock
from jupyter_durable.capture import prices
from jupyter_durable.capture.prices import most_cost, priced, set_price, why_unknown
from jupyter_durable.errors import UsageError
from jupyter_durable.event_data import Usage

SNAPSHOT = data_snapshot.get_snapshot()
MODELS = [
    ("openai", "gpt-4o-mini"),
    ("openai", "gpt-4o-2024-08-06"),
    ("anthropic", "claude-sonnet-4-5-20250929"),
    ("anthropic", "claude-sonnet-4-0"),
    ("google", "gemini-2.5-pro"),
    ("google", "gemini-2.5-flash"),
    ("deepseek", "deepseek-chat"),
    ("mistral", "mistral-large-latest"),
    ("perplexity", "sonar-pro"),
    ("azure", "gpt-4o"),
    ("aws", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
]


@pytest.fixture(autouse=True)
def _no_prices_of_others():
    prices.forget_prices()
    yield
    prices.forget_prices()


@pytest.fixture
def not_installed(monkeypatch):
    """genai-prices cannot be imported."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setattr(prices, "_library", None)
    monkeypatch.setattr(prices, "_missing", "")


def gpt(**counts: int) -> Usage:
    return Usage(provider="openai", model="gpt-4o-mini", **counts)


@given(
    st.sampled_from(MODELS),
    st.integers(0, 2_000_000),
    st.integers(0, 100_000),
    st.floats(0, 1),
    st.sampled_from([2, 7, 13, 18, 23]),
)
def test_the_cost_is_that_of_genai_prices_in_every_tier_and_at_every_hour(model, paid, output, part, hour):
    cached, written, thought = int(paid * part), int((paid - int(paid * part)) * part), int(output * part)
    when = dt.datetime(2026, 12, 1, hour, 30, tzinfo=dt.UTC)

    class Then(clock.SystemClock):
        time = staticmethod(when.timestamp)

    with clock.use(Then()):
        found = priced(
            Usage(
                provider=model[0],
                model=model[1],
                input=paid,
                output=output,
                cached=cached,
                cache_write=written,
                reasoning=thought,
            )
        )
    expected = SNAPSHOT.calc(
        genai_prices.Usage(
            input_tokens=paid,
            output_tokens=output,
            cache_read_tokens=cached,
            cache_write_tokens=written,
            output_reasoning_tokens=thought,
        ),
        model[1],
        model[0],
        None,
        when,
    )

    assert found.cost == pytest.approx(float(expected.total_price), abs=1e-12)
    assert found.prices == f"genai-prices {genai_prices.__version__}"


@pytest.mark.parametrize(
    "usage",
    [
        gpt(),
        gpt(input=10),
        gpt(output=10),
        Usage(provider="", model="gpt-4o", input=1, output=1),
        Usage(provider="ollama", model="gpt-4o", input=1, output=1),
        Usage(provider="openai", model="no-such-model", input=1, output=1),
        Usage(provider="openai", model="whisper-1", input=1, output=1),
        Usage(provider="openai", model="", input=1, output=1),
    ],
)
def test_what_is_not_known_has_no_cost(usage):
    found = priced(usage)

    assert (found.cost, found.prices) == (None, "")
    assert why_unknown(usage).endswith((".", ")`."))


def test_embeddings_need_no_output():
    found = priced(Usage(provider="openai", model="text-embedding-3-small", input=1_000_000))

    assert found.cost == pytest.approx(0.02)


def test_a_qualified_name_finds_the_price_of_its_provider():
    plain, qualified = (
        priced(Usage(provider="openai", model=name, input=9, output=9)) for name in ("gpt-4o", "openai/gpt-4o")
    )
    vertex = priced(Usage(provider="google", model="claude-sonnet-4-5@20250929", input=9, output=9))

    assert plain.cost == qualified.cost is not None
    assert vertex.cost is not None


def test_what_the_answer_told_goes_before_the_list_and_the_users_price_before_both():
    told = Usage(
        provider="openrouter", model="openai/gpt-4o", input=1_000_000, output=0, cost=0.5, prices="told by openrouter"
    )

    assert priced(told) is told

    set_price("openai/gpt-4o", input=3, output=4)
    assert (priced(told).cost, priced(told).prices) == (3.0, "set by the user")


def test_the_users_price_holds_for_dated_names_and_not_for_other_models():
    set_price("gpt-4o", input=1, output=0)

    def cost(model, provider=""):
        return priced(Usage(provider=provider, model=model, input=1_000_000, output=0)).cost

    assert cost("gpt-4o") == cost("GPT-4o") == cost("gpt-4o-2024-08-06") == cost("gpt-4o-latest") == 1.0
    assert cost("gpt-4o-mini") is None
    set_price("gpt-4o", input=2, output=0, provider="azure")
    assert (cost("gpt-4o", "azure"), cost("gpt-4o", "openai"), cost("gpt-4o-2024-08-06", "azure")) == (2.0, 1.0, 2.0)


def test_the_users_price_of_cached_input_is_that_of_input_if_not_given():
    usage = Usage(model="m", input=1_000_000, output=0, cached=500_000)

    set_price("m", input=2, output=0)
    assert priced(usage).cost == 2.0
    set_price("m", input=2, output=0, cached=0.5)
    assert priced(usage).cost == 1.25


@pytest.mark.parametrize(
    ("model", "given", "complaint"),
    [
        ("", {"input": 1, "output": 1}, "name of a model"),
        ("m", {"input": -1, "output": 1}, "`input` of `durable.price`"),
        ("m", {"input": 1, "output": float("nan")}, "`output` of `durable.price`"),
        ("m", {"input": 1, "output": True}, "`output` of `durable.price`"),
        ("m", {"input": 1, "output": 1, "cached": "2"}, "`cached` of `durable.price`"),
        ("m", {"input": 1, "output": 1, "provider": None}, "`provider` of `durable.price`"),
    ],
)
def test_a_price_that_is_none_is_refused(model, given, complaint):
    with pytest.raises(UsageError, match=complaint):
        set_price(model, **given)

    assert priced(Usage(model=model, input=1, output=1)).cost is None


@given(st.sampled_from(MODELS), st.integers(0, 1_000_000), st.integers(0, 100_000), st.floats(0, 1))
def test_the_most_that_a_call_may_cost_is_never_less_than_what_it_costs(model, paid, output, part):
    usage = Usage(
        provider=model[0],
        model=model[1],
        input=paid,
        output=int(output * part),
        cached=int(paid * part / 2),
        cache_write=int(paid * part / 2),
    )

    most = most_cost(*model, paid, output)

    assert most is not None
    assert most >= priced(usage).cost - 1e-12


def test_the_most_is_unknown_without_a_price():
    assert most_cost("", "gpt-4o", 1, 1) is None


def test_without_genai_prices_the_sentence_names_the_extra(not_installed):
    usage = gpt(input=1, output=1)

    assert priced(usage) is usage
    assert 'pip install "jupyter_durable[prices]"' in why_unknown(usage)
    set_price("gpt-4o-mini", input=1, output=1)
    assert why_unknown(usage) == ""


def test_a_library_that_is_installed_later_is_found_by_warming(not_installed, monkeypatch):
    assert priced(gpt(input=1, output=1)).cost is None

    monkeypatch.setitem(sys.modules, "genai_prices", genai_prices)
    prices.warm()
    assert prices._warming is not None
    prices._warming.join(30)

    assert priced(gpt(input=1, output=1)).cost is not None


def test_sentences_tell_why():
    assert "did not tell its tokens" in why_unknown(gpt(input=1))
    assert "Nobody knows who serves" in why_unknown(Usage(model="gpt-4o", input=1, output=1))
    assert "No price is known" in why_unknown(Usage(provider="openai", model="x", input=1, output=1))
    assert why_unknown(gpt(input=1, output=1)) == ""


def test_a_price_list_that_the_user_puts_in_place_is_used():
    before = priced(gpt(input=1_000_000, output=0)).cost
    provider = next(one for one in SNAPSHOT.providers if one.id == "groq")
    try:
        data_snapshot.set_custom_snapshot(data_snapshot.DataSnapshot(providers=[provider], from_auto_update=False))
        assert priced(gpt(input=1_000_000, output=0)).cost is None
    finally:
        data_snapshot.set_custom_snapshot(None)
    assert priced(gpt(input=1_000_000, output=0)).cost == before


def test_a_repeated_call_costs_microseconds():
    usage = gpt(input=1000, output=10, cached=500)
    priced(usage)

    def took() -> float:
        begin = time.perf_counter()
        for _ in range(500):
            priced(usage)
        return (time.perf_counter() - begin) / 500

    # Measured: 1.3 µs. The bound leaves room for a machine that is busy.
    assert min(took() for _ in range(5)) < 30e-6
