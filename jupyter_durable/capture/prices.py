"""What a model call costs: prices set by the user, else those of genai-prices if that is installed.

A cost is told only if it is known: the tokens of every side that has a price, the provider, and the model. The list
prices know nothing of discounts, batches and tiers of service; searches and code that ran at the provider are not in
tokens, and not in the cost.

genai-prices takes a quarter of a second to import and 150 µs for a call. `warm` imports it beside the cell; its prices
for a model are turned into a `Card` once, and a call then costs a few microseconds.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from jupyter_durable import clock
from jupyter_durable.errors import UsageError
from jupyter_durable.event_data import Usage

BY_USER = "set by the user"
MILLION = 1_000_000

_DATED = re.compile(r"[-@:](?:20\d\d-?\d\d-?\d\d|\d{4}|latest)(?:-v\d+(?::\d+)?)?")
"""What an answer adds to the name that was asked for: ``gpt-4o`` is answered by ``gpt-4o-2024-08-06``."""


class Rate(msgspec.Struct, frozen=True):
    """A price in US dollars per million tokens, that may rise for all tokens when the input is long."""

    base: float
    steps: tuple[tuple[int, float], ...] = ()
    """Tokens of input, and the price above them; falling, so that the first that fits is the one."""

    def at(self, total_input: int) -> float:
        """The price for a call with this much input."""
        for start, price in self.steps:
            if total_input > start:
                return price
        return self.base

    @property
    def is_free(self) -> bool:
        """Whether it is 0 for every call."""
        return not self.base and not any(price for _, price in self.steps)


FREE = Rate(0.0)


class Card(msgspec.Struct, frozen=True):
    """All prices of a model that tokens decide."""

    whose: str
    input: Rate
    output: Rate
    cached: Rate | None = None
    cache_write: Rate | None = None
    reasoning: Rate | None = None
    request: float = 0.0
    """US dollars for the request itself."""

    def cost(self, usage: Usage) -> float | None:
        """US dollars; ``None`` if a number that it needs is not known."""
        paid, output = usage.input, usage.output
        if paid is None:
            if not self.input.is_free:
                return None
            paid = 0
        if output is None:
            if not self.output.is_free:
                return None
            output = 0
        read = min(usage.cached or 0, paid) if self.cached is not None else 0
        written = min(usage.cache_write or 0, paid - read) if self.cache_write is not None else 0
        thought = min(usage.reasoning or 0, output) if self.reasoning is not None else 0
        dollars = (paid - read - written) * self.input.at(paid) + (output - thought) * self.output.at(paid)
        if read and self.cached is not None:
            dollars += read * self.cached.at(paid)
        if written and self.cache_write is not None:
            dollars += written * self.cache_write.at(paid)
        if thought and self.reasoning is not None:
            dollars += thought * self.reasoning.at(paid)
        return dollars / MILLION + self.request

    def most(self, paid: int, output: int) -> float:
        """The most that a call can cost: nothing comes from the cache, and all may be written to it."""
        dear = max(rate.at(paid) for rate in (self.input, self.cache_write) if rate is not None)
        out = max(rate.at(paid) for rate in (self.output, self.reasoning) if rate is not None)
        return (paid * dear + output * out) / MILLION + self.request


Cards = Callable[[dt.datetime | None], Card | None]

_HOURS = ("audio_hours", "output_audio_hours", "input_audio_hours")

_set: dict[tuple[str, str], Card] = {}
_set_for: dict[tuple[str, str], Card | None] = {}
"""Answers of `_user_card`, because names are compared by pattern."""
_cards: dict[tuple[str, str], tuple[Any, dict[int, Card | None]]] = {}
"""(provider, model) -> what genai-prices knows of it, and a card for each of its price lists."""
_snapshot: Any = None
"""The price list of genai-prices that `_cards` was made from."""
_library: Any = None
"""The module; ``False`` if it cannot be imported."""
_missing = ""
_warming: threading.Thread | None = None


def priced(usage: Usage) -> Usage:
    """The usage with its cost in US dollars and whose prices they are, where they are known.

    A price of the user's goes before everything; then what the answer itself told; then genai-prices.

    >>> set_price("my-model", input=1, output=10)
    >>> priced(Usage(model="my-model", input=1_000, output=500)).cost
    0.006
    >>> priced(Usage(model="my-model", input=1_000)).cost
    >>> forget_prices()
    """
    card = _user_card(usage.provider, usage.model)
    if card is None:
        if usage.cost is not None:
            return usage
        card = _list_card(usage.provider, usage.model)
    cost = None if card is None else card.cost(usage)
    if card is None or cost is None:
        return usage
    return msgspec.structs.replace(usage, cost=cost, prices=card.whose)


def most_cost(provider: str, model: str, input_tokens: int, output_tokens: int) -> float | None:
    """The most that a call may cost, in US dollars, to hold back from a budget; ``None`` without a known price.

    >>> set_price("my-model", input=1, output=10)
    >>> most_cost("", "my-model", 1_000, 500)
    0.006
    >>> forget_prices()
    """
    card = _user_card(provider, model) or _list_card(provider, model)
    return None if card is None else card.most(input_tokens, output_tokens)


def set_price(model: str, *, input: float, output: float, cached: float | None = None, provider: str = "") -> None:  # noqa: A002  # the words of `Usage`
    """Set the price of a model, for this process. It goes before every other one.

    Args:
        model: as the request or the answer names it; dated names (``NAME-2026-01-31``) follow.
        input: US dollars per million input tokens.
        output: US dollars per million output tokens.
        cached: US dollars per million input tokens read from a cache; as ``input`` if not given.
        provider: only at this provider; empty for all, local servers included.

    Raises:
        UsageError: no name, or a price that is no number of dollars.

    >>> set_price("qwen3", input=0, output=0)
    >>> priced(Usage(model="qwen3", input=10, output=10)).cost
    0.0
    >>> forget_prices()
    """
    if not isinstance(model, str) or not model.strip():
        raise UsageError("`durable.price` takes the name of a model: `durable.price('gpt-4o', input=2.5, output=10)`.")
    if not isinstance(provider, str):
        raise UsageError("`provider` of `durable.price` is the id of a provider, such as 'openai', or left out.")
    for name, price in (("input", input), ("output", output), ("cached", cached)):
        if price is None and name == "cached":
            continue
        if isinstance(price, bool) or not isinstance(price, int | float) or not math.isfinite(price) or price < 0:
            raise UsageError(
                f"`{name}` of `durable.price` is a price in US dollars per million tokens: a number, 0 or more; "
                f"for `{model}` it is not."
            )
    _set[provider.strip().lower(), model.strip().lower()] = Card(
        BY_USER, Rate(float(input)), Rate(float(output)), None if cached is None else Rate(float(cached))
    )
    _set_for.clear()


def forget_prices() -> None:
    """Take back all prices that were set by `set_price`."""
    _set.clear()
    _set_for.clear()


def why_unknown(usage: Usage) -> str:
    """A sentence that says why a usage has no cost; empty if it has one.

    >>> why_unknown(Usage(provider="", model="gpt-5", input=1, output=1))
    "Nobody knows who serves `gpt-5` (a local server or a gateway): tell its price with `durable.price('gpt-5', ...)`."
    """
    if priced(usage).cost is not None:
        return ""
    name = usage.model or "the model"
    card = _user_card(usage.provider, usage.model) or _list_card(usage.provider, usage.model)
    if card is not None:
        return f"The answer of `{name}` did not tell its tokens, or not all of them, so its cost is not known."
    if not usage.provider:
        return (
            f"Nobody knows who serves `{name}` (a local server or a gateway): "
            f"tell its price with `durable.price({name!r}, ...)`."
        )
    if not _genai_prices():
        return (
            f"Prices need genai-prices, which {_missing}: "
            f'`pip install "jupyter_durable[prices]"`, or `durable.price({name!r}, ...)`.'
        )
    return f"No price is known for `{name}` at `{usage.provider}`: tell it with `durable.price({name!r}, ...)`."


def warm() -> None:
    """Begin to import genai-prices in a thread, so that no call waits for it. Returns at once; may be repeated."""
    global _warming, _library
    if _library is False:
        # It may have been installed since.
        _library = None
    if _library is None and (_warming is None or not _warming.is_alive()):
        _warming = threading.Thread(target=_genai_prices, name="jupyter_durable prices", daemon=True)
        _warming.start()


def _user_card(provider: str, model: str) -> Card | None:
    if not _set:
        return None
    key = (provider, model)
    if key not in _set_for:
        _set_for[key] = _search_user_card(provider.lower(), model.lower())
    return _set_for[key]


def _search_user_card(provider: str, model: str) -> Card | None:
    for place in dict.fromkeys((provider, "")):
        if (card := _set.get((place, model))) is not None:
            return card
    for place in dict.fromkeys((provider, "")):
        for (where, name), card in _set.items():
            if where == place and model.startswith(name) and _DATED.fullmatch(model, len(name)):
                return card
    return None


def _genai_prices() -> Any:
    """The library with its prices loaded; ``False`` if it cannot be had."""
    global _library, _missing
    if _library is None:
        try:
            from genai_prices import data_snapshot

            data_snapshot.get_snapshot()
        except ModuleNotFoundError as error:
            _library = False
            _missing = "is not installed" if error.name == "genai_prices" else f"misses {error.name}"
        except Exception as error:
            _library, _missing = False, f"cannot be loaded ({type(error).__name__})"
        else:
            _library = data_snapshot
    return _library


def _list_card(provider: str, model: str) -> Card | None:
    """The card of genai-prices for this moment: some prices change on a day, or by the hour."""
    global _snapshot
    # Without a provider genai-prices would guess one from the model, and bill a local server like the real one.
    if not provider or not model or not (library := _genai_prices()):
        return None
    snapshot = library.get_snapshot()
    if snapshot is not _snapshot:
        _cards.clear()
        _snapshot = snapshot
    known = _cards.get((provider, model))
    if known is None:
        known = _cards[provider, model] = (_find(snapshot, provider, model), {})
    info, cards = known
    if info is None:
        return None
    try:
        # One list of prices needs no clock; of several, the library picks.
        prices = info.prices
        if isinstance(prices, list):
            prices = info.get_prices(dt.datetime.fromtimestamp(clock.now(), dt.UTC))
        key = id(prices)
        if key not in cards:
            cards[key] = _card_of(prices)
        return cards[key]
    except Exception:
        return None  # an own snapshot of the user's may hold anything; the cost is then unknown


def _find(snapshot: Any, provider: str, model: str) -> Any:
    plain = model.replace("@", "-")
    for name in dict.fromkeys((model, plain, plain.rpartition("/")[2])):
        try:
            return snapshot.find_provider_model(name, None, provider, None)[1]
        except LookupError:
            continue
    return None


def _card_of(prices: Any) -> Card | None:
    """The card of one price list; ``None`` if what it prices is not told in tokens of input and output."""
    told = {name: value for name, value in vars(prices).items() if value is not None and not name.startswith("_")}
    given = {name: _rate(told[name]) for name in told if name.endswith("_mtok")}
    if "input_mtok" not in given and "output_mtok" not in given:
        return None
    for side in ("input", "output"):
        # Priced only as sound, pictures, pages or hours: their tokens are not told apart, and 0 would be a lie.
        if f"{side}_mtok" not in given and any(name.startswith(side) or name in _HOURS for name in told):
            return None
    import genai_prices

    requests = told.get("requests_kcount")
    return Card(
        f"genai-prices {genai_prices.__version__}",
        given.get("input_mtok", FREE),
        given.get("output_mtok", FREE),
        given.get("cache_read_mtok"),
        given.get("cache_write_mtok"),
        given.get("output_reasoning_mtok"),
        0.0 if requests is None else _rate(requests).base / 1000,
    )


def _rate(price: Any) -> Rate:
    base = getattr(price, "base", None)
    if base is None:
        return Rate(float(price))
    steps = sorted(((tier.start, float(tier.price)) for tier in price.tiers), reverse=True)
    return Rate(float(base), tuple(steps))
