"""Who is behind a host: ids of providers as genai-prices names them, and what is honest to say of a host nobody knows.

The provider decides the price, so a guess here would be an invented bill. A known host names its provider. A server on
this machine or in a private network has none, whatever model it claims to be: it may be a local model under a famous
name. At any other host (a gateway) a name such as ``anthropic/claude-sonnet-4-5`` tells, if nobody but that provider
runs the model; ``openai/gpt-oss-20b`` and ``google/gemma-3-27b`` are run by many and tell nothing.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

HOSTS = {
    "anthropic.com": "anthropic",
    "api.openai.com": "openai",
    "openai.azure.com": "azure",
    "cognitiveservices.azure.com": "azure",
    "services.ai.azure.com": "azure",
    "azure-api.net": "azure",
    "models.ai.azure.com": "azure",
    "googleapis.com": "google",
    "amazonaws.com": "aws",
    "openrouter.ai": "openrouter",
    "api.groq.com": "groq",
    "api.together.xyz": "together",
    "api.together.ai": "together",
    "api.fireworks.ai": "fireworks",
    "api.deepseek.com": "deepseek",
    "mistral.ai": "mistral",
    "api.x.ai": "x-ai",
    "api.perplexity.ai": "perplexity",
    "api.cerebras.ai": "cerebras",
    "api.cohere.com": "cohere",
    "api.cohere.ai": "cohere",
    "api.voyageai.com": "voyageai",
    "api.jina.ai": "jina",
    "api.moonshot.ai": "moonshotai",
    "api.moonshot.cn": "moonshotai",
    "api.novita.ai": "novita",
    "api.avian.io": "avian",
    "api.z.ai": "zai",
    "open.bigmodel.cn": "zhipuai",
    "api.minimax.io": "minimax",
    "api.minimaxi.com": "minimax",
    "inference.baseten.co": "baseten",
    "api.githubcopilot.com": "github-copilot",
    "api.doubleword.ai": "doubleword",
    "api.arcee.ai": "arcee",
    "oai.endpoints.kepler.ai.cloud.ovh.net": "ovhcloud",
    "api.cloudflare.com": "cloudflare",
    "elevenlabs.io": "elevenlabs",
    # genai-prices has no prices of these; the name is for people.
    "huggingface.co": "huggingface",
    "endpoints.huggingface.cloud": "huggingface",
    "api.sambanova.ai": "sambanova",
    "api.deepinfra.com": "deepinfra",
    "api.hyperbolic.xyz": "hyperbolic",
    "api.replicate.com": "replicate",
    "api.deepgram.com": "deepgram",
    "integrate.api.nvidia.com": "nvidia",
    "models.github.ai": "github",
    "dashscope.aliyuncs.com": "alibaba",
    "dashscope-intl.aliyuncs.com": "alibaba",
    "ollama.com": "ollama",
    "cloud.databricks.com": "databricks",
    "azuredatabricks.net": "databricks",
    "gcp.databricks.com": "databricks",
}
"""Host, or the end of it after a dot -> provider."""

CLOSED = {
    "openai/": ("openai", ("gpt-3", "gpt-4", "gpt-5", "chatgpt-", "o1", "o3", "o4", "text-embedding-")),
    "azure/": ("azure", ("gpt-3", "gpt-4", "gpt-5", "o1", "o3", "o4", "text-embedding-")),
    "anthropic/": ("anthropic", ("claude-",)),
    "google/": ("google", ("gemini-",)),
    "gemini/": ("google", ("gemini-",)),
    "vertex_ai/": ("google", ("gemini-", "claude-")),
    "x-ai/": ("x-ai", ("grok-",)),
    "xai/": ("x-ai", ("grok-",)),
}
"""Beginning of a qualified name at a gateway -> provider, for models that are not run by anybody else."""

PRIVATE_ENDS = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".test", ".invalid")


@lru_cache(maxsize=256)
def provider_at(host: str) -> str:
    """The provider that a host belongs to; empty if it is not known.

    >>> provider_at("eu.api.openai.com"), provider_at("corp.openai.azure.com"), provider_at("openai.com.evil.example")
    ('openai', 'azure', '')
    """
    rest = host
    while rest:
        if found := HOSTS.get(rest):
            return found
        rest = rest.partition(".")[2]
    return ""


@lru_cache(maxsize=256)
def is_local(host: str) -> bool:
    """Whether a host is this machine or sits in a private network.

    >>> [is_local(host) for host in ("localhost", "127.0.0.1", "::1", "10.1.2.3", "ollama", "llm.example.com")]
    [True, True, True, True, True, False]
    """
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        # A name without a dot is one of the own network: a container, a neighbour.
        return "." not in host or host.endswith(PRIVATE_ENDS)
    return address.is_private or address.is_loopback or address.is_link_local


def provider_behind(host: str, model: str, family: str = "") -> str:
    """The provider of a model at a host.

    Args:
        host: the host that is asked.
        model: the model as the request names it.
        family: what to say at a public host that is not known, where the model's name does not tell.

    >>> provider_behind("api.groq.com", "llama-3.3-70b-versatile")
    'groq'
    >>> provider_behind("llm.example.com", "anthropic/claude-sonnet-4-5")
    'anthropic'
    >>> provider_behind("localhost", "gpt-4o"), provider_behind("llm.example.com", "gpt-4o")
    ('', '')
    """
    if found := provider_at(host):
        return found
    if is_local(host):
        return ""
    for start, (provider, names) in CLOSED.items():
        if model.startswith(start) and model[len(start) :].startswith(names):
            return provider
    return family
