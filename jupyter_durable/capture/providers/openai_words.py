"""The words of OpenAI's protocol that several of its requests share: counts of tokens, the cost, the provider."""

from __future__ import annotations

from typing import Any

from jupyter_durable.capture.providers import counts, hosts
from jupyter_durable.capture.providers.base import Ask


def openai_usage(told: Any) -> dict[str, Any]:
    """Fields of a `Usage` from a ``usage`` object, in any of the dialects that providers speak.

    >>> openai_usage({"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}})
    {'input': 9, 'output': 4, 'cached': 8, 'cache_write': None, 'reasoning': None}
    """
    details = counts.at(told, "prompt_tokens_details") or counts.at(told, "input_tokens_details")
    of_output = counts.at(told, "completion_tokens_details") or counts.at(told, "output_tokens_details")
    paid = counts.count(told, "prompt_tokens", "input_tokens")
    output = counts.count(told, "completion_tokens", "output_tokens")
    reasoning = counts.count(of_output, "reasoning_tokens")
    whole = counts.count(told, "total_tokens")
    if paid is not None and output is not None and reasoning and whole == paid + output + reasoning:
        # xAI counts thoughts beside the output, everybody else inside of it.
        output += reasoning
    cached = counts.count(details, "cached_tokens")
    if cached is None:
        cached = counts.count(told, "prompt_cache_hit_tokens", "cached_tokens")  # DeepSeek; Moonshot
    return {
        "input": paid,
        "output": output,
        "cached": cached,
        "cache_write": counts.count(details, "cache_write_tokens"),
        "reasoning": reasoning,
    }


def told_cost(provider: str, told: Any) -> dict[str, Any]:
    """The cost, where the answer itself tells it: that is the bill, and no price list knows better."""
    cost = counts.at(told, "cost")
    if provider == "perplexity":
        cost = counts.at(cost, "total_cost")
    elif provider != "openrouter":
        return {}
    if isinstance(cost, bool) or not isinstance(cost, int | float) or cost < 0:
        return {}
    return {"cost": float(cost), "prices": f"told by {provider}"}


def provider_of(ask: Ask, model: str) -> str:
    """The provider behind the host; the router of Hugging Face names it in the path or behind the model.

    >>> ask = Ask(method="POST", scheme="https", host="router.huggingface.co", port=None, path="/v1/chat/completions")
    >>> provider_of(ask, "openai/gpt-oss-20b:groq")
    'huggingface_groq'
    """
    found = hosts.provider_behind(ask.host, model)
    if found == "huggingface":
        first = ask.path.split("/", 2)[1] if ask.path.startswith("/") else ""
        chosen = model.partition(":")[2] or (first if first not in {"v1", "hf-inference", "models", ""} else "")
        if chosen and chosen not in {"fastest", "cheapest"}:
            return f"huggingface_{chosen}"
    return found
