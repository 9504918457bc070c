"""Whether a host is there for models: narrower than who is behind a host, since clouds do much else. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from jupyter_durable.capture.providers.hosts import provider_at

_OF_CLOUDS = {
    "aws": re.compile(r"(^|\.)(bedrock|sagemaker|runtime\.sagemaker)"),
    "google": re.compile(r"generativelanguage|aiplatform|speech|translat"),
    "azure": re.compile(r"openai|cognitiveservices|services\.ai|models\.ai"),
    "huggingface": re.compile(r"^(router|api-inference)\.|endpoints\."),
    "cloudflare": re.compile(r"^(?!)"),  # models and everything else share one host
    "databricks": re.compile(r"^(?!)"),
    "github": re.compile(r"^models\."),
}
"""Provider that does more than models -> its hosts that are for models."""


@lru_cache(maxsize=256)
def is_model_host(host: str) -> bool:
    """Whether nobody asks a host for anything but models.

    >>> [is_model_host(host) for host in ("api.openai.com", "bedrock-runtime.us-east-1.amazonaws.com")]
    [True, True]
    >>> [is_model_host(host) for host in ("my-bucket.s3.amazonaws.com", "storage.googleapis.com", "localhost")]
    [False, False, False]
    """
    host = host.lower().rstrip(".")
    provider = provider_at(host)
    if not provider:
        return False
    of_cloud = _OF_CLOUDS.get(provider)
    return of_cloud is None or of_cloud.search(host) is not None
