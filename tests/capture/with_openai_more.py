"""The OpenAI SDK, synchronous: the smaller endpoints, and clients that are made in other ways."""

from __future__ import annotations

import base64
import io
from typing import Any

from tests.capture.scenarios import CHAT, OPENAI_KEY, asks, scenario, shown
from tests.capture.with_openai import client_of

SOUND = b"RIFF" + bytes(range(256)) * 4


@scenario("openai")
def openai_embeddings(url: str) -> Any:
    return shown(client_of(url).embeddings.create(model="text-embedding-3-small", input=["one", "two"]))


@scenario("openai")
def openai_embeddings_as_floats(url: str) -> Any:
    made = client_of(url).embeddings.create(model="text-embedding-3-small", input="one", encoding_format="float")
    return shown(made)


@scenario("openai")
def openai_transcription(url: str) -> Any:
    sound = io.BytesIO(SOUND)
    sound.name = "speech.wav"
    return shown(client_of(url).audio.transcriptions.create(model="gpt-4o-transcribe", file=sound))


@scenario("openai", 2)
def openai_transcriptions_of_two_sounds(url: str) -> Any:
    create = client_of(url).audio.transcriptions.create
    sounds = (("one.wav", SOUND), ("two.wav", SOUND + b"more"))
    return [create(model="gpt-4o-transcribe", file=sound).text for sound in sounds]


@scenario("openai")
def openai_moderation(url: str) -> Any:
    return shown(client_of(url).moderations.create(model="omni-moderation-latest", input="kind words"))


@scenario("openai")
def openai_image(url: str) -> Any:
    made = client_of(url).images.generate(model="gpt-image-1", prompt="a log")
    picture = base64.b64decode(made.data[0].b64_json).decode()
    return [picture, made.data[0].revised_prompt, made.usage.model_dump()]


@scenario("openai")
def openai_client_post(url: str) -> Any:
    body = {"model": CHAT, "messages": asks("client.post")}
    return client_of(url).post("/chat/completions", cast_to=object, body=body)


@scenario("openai")
def openai_gzip(url: str) -> Any:
    return shown(client_of(url).chat.completions.create(model="gzip-model", messages=asks("gzip")))


@scenario("openai")
def openai_gzip_stream(url: str) -> Any:
    stream = client_of(url).chat.completions.create(model="gzip-model", messages=asks("gzip stream"), stream=True)
    return [shown(chunk) for chunk in stream]


def _bound_method(url: str) -> Any:
    return client_of(url).chat.completions.create


@scenario("openai", prepare=_bound_method)
def openai_method_bound_before(url: str, create: Any) -> Any:
    return shown(create(model=CHAT, messages=asks("bound before")))


def _used_client(url: str) -> Any:
    client = client_of(url)
    client.moderations.create(model="omni-moderation-latest", input="a connection that is open already")
    return client


@scenario("openai", 1, prepare=_used_client)
def openai_client_used_before(url: str, client: Any) -> Any:
    return shown(client.chat.completions.create(model=CHAT, messages=asks("used before")))


@scenario("openai")
def openai_with_a_client_of_legacy_httpx(url: str) -> Any:
    import httpx

    with httpx.Client(timeout=30) as http:
        client = client_of(url, http_client=http)
        return shown(client.chat.completions.create(model=CHAT, messages=asks("legacy httpx")))


@scenario("openai")
def openai_with_a_transport_of_its_own(url: str) -> Any:
    import httpx2

    with httpx2.Client(transport=httpx2.HTTPTransport(retries=1)) as http:
        client = client_of(url, http_client=http)
        return shown(client.chat.completions.create(model=CHAT, messages=asks("own transport")))


@scenario("openai")
def openai_through_mounts(url: str) -> Any:
    import httpx2

    with httpx2.Client(mounts={"http://": httpx2.HTTPTransport()}) as http:
        client = client_of(url, http_client=http)
        return shown(client.chat.completions.create(model=CHAT, messages=asks("mounted")))


@scenario("openai")
def openai_azure(url: str) -> Any:
    from openai import AzureOpenAI

    client = AzureOpenAI(azure_endpoint=url, api_key=OPENAI_KEY, api_version="2024-10-21", max_retries=0)
    return shown(client.chat.completions.create(model=CHAT, messages=asks("azure")))


@scenario("openai")
def openai_module_level_client(url: str) -> Any:
    import openai

    openai.api_key, openai.base_url = OPENAI_KEY, f"{url}/v1/"
    return shown(openai.chat.completions.create(model=CHAT, messages=asks("module client")))
