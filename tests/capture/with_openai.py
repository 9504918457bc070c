"""The OpenAI SDK, synchronous: chat completions and responses."""

from __future__ import annotations

from typing import Any

from tests.capture.scenarios import CHAT, OPENAI_KEY, RESPONSES_MODEL, asks, at_desk, scenario, shown

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def client_of(url: str, **more: Any) -> Any:
    """A client of the test's own."""
    from openai import OpenAI

    return OpenAI(base_url=f"{url}/v1", api_key=OPENAI_KEY, **{"max_retries": 0, **more})


def city_type() -> Any:
    """A type that answers are parsed into."""
    from pydantic import BaseModel

    class City(BaseModel):
        name: str
        people: int

    return City


@scenario("openai")
def openai_plain(url: str) -> Any:
    return shown(client_of(url).chat.completions.create(model=CHAT, messages=asks("plain")))


@scenario("openai", 2)
def openai_two_equal_calls(url: str) -> Any:
    client = client_of(url)
    return [client.chat.completions.create(model=CHAT, messages=asks("twice")).id for _ in range(2)]


@scenario("openai", 2)
def openai_tool_call_and_its_result(url: str) -> Any:
    client = client_of(url)
    messages: list[Any] = asks("the weather?")
    tools = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER}}]
    first = client.chat.completions.create(model=CHAT, messages=messages, tools=tools)
    call = first.choices[0].message.tool_calls[0]
    messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    return [shown(first), shown(client.chat.completions.create(model=CHAT, messages=messages, tools=tools))]


@scenario("openai")
def openai_json_object(url: str) -> Any:
    wanted = {"type": "json_object"}
    return shown(client_of(url).chat.completions.create(model=CHAT, messages=asks("json"), response_format=wanted))


@scenario("openai")
def openai_stream(url: str) -> Any:
    stream = client_of(url).chat.completions.create(model=CHAT, messages=asks("stream"), stream=True)
    # Every chunk has a choice, if usage was not asked for: programs rely on it.
    return [type(stream).__name__, [[chunk.choices[0].delta.content, shown(chunk)] for chunk in stream]]


@scenario("openai")
def openai_stream_with_usage(url: str) -> Any:
    client = client_of(url)
    options = {"include_usage": True}
    with client.chat.completions.create(
        model=CHAT, messages=asks("stream with usage"), stream=True, stream_options=options
    ) as stream:
        return [shown(chunk) for chunk in stream]


@scenario("openai")
def openai_stream_left_by_break(url: str) -> Any:
    seen = []
    for chunk in client_of(url).chat.completions.create(model=CHAT, messages=asks("left early"), stream=True):
        seen.append(shown(chunk))
        if len(seen) == 2:
            break
    return seen


@scenario("openai")
def openai_stream_read_to_its_last_choice(url: str) -> Any:
    texts = []
    stream = client_of(url).chat.completions.create(model=CHAT, messages=asks("read to the stop"), stream=True)
    for chunk in stream:
        texts.append(chunk.choices[0].delta.content)
        if chunk.choices[0].finish_reason:
            break
    stream.close()
    return texts


@scenario("openai")
def openai_stream_helper(url: str) -> Any:
    with client_of(url).chat.completions.stream(model=CHAT, messages=asks("stream helper")) as stream:
        events = [event.type for event in stream]
        return [type(stream).__name__, events, shown(stream.get_final_completion())]


@scenario("openai")
def openai_parse(url: str) -> Any:
    made = client_of(url).chat.completions.parse(model=CHAT, messages=asks("parse"), response_format=city_type())
    return [shown(made), shown(made.choices[0].message.parsed)]


@scenario("openai")
def openai_with_raw_response(url: str) -> Any:
    raw = client_of(url).chat.completions.with_raw_response.create(model=CHAT, messages=asks("raw"))
    headers = [raw.headers["x-request-id"], raw.headers["content-type"], raw.request_id]
    http = [raw.http_response.status_code, type(raw.http_response).__name__, str(raw.http_response.request.method)]
    return [type(raw).__name__, headers, http, raw.status_code, shown(raw.parse()), raw.http_response.json()]


@scenario("openai")
def openai_with_streaming_response(url: str) -> Any:
    completions = client_of(url).chat.completions.with_streaming_response
    with completions.create(model=CHAT, messages=asks("streaming response")) as raw:
        return [type(raw).__name__, raw.headers["x-request-id"], raw.status_code, shown(raw.parse())]


@scenario("openai")
def openai_with_streaming_response_by_lines(url: str) -> Any:
    completions = client_of(url).chat.completions.with_streaming_response
    with completions.create(model=CHAT, messages=asks("lines"), stream=True) as raw:
        return list(raw.iter_lines())


@scenario("openai")
def openai_responses(url: str) -> Any:
    made = client_of(url).responses.create(model=RESPONSES_MODEL, input="responses", instructions="Be brief.")
    return [shown(made), made.output_text]


@scenario("openai")
def openai_responses_stream(url: str) -> Any:
    stream = client_of(url).responses.create(model=RESPONSES_MODEL, input="responses stream", stream=True)
    return [[event.type, shown(event)] for event in stream]


@scenario("openai")
def openai_responses_stream_helper(url: str) -> Any:
    with client_of(url).responses.stream(model=RESPONSES_MODEL, input="responses helper") as stream:
        return [[event.type for event in stream], shown(stream.get_final_response())]


@scenario("openai")
def openai_responses_parse(url: str) -> Any:
    made = client_of(url).responses.parse(model=RESPONSES_MODEL, input="responses parse", text_format=city_type())
    return [type(made).__name__, shown(made.output_parsed), made.usage.model_dump()]


@scenario("openai", 2)
def openai_responses_tool_call_and_its_result(url: str) -> Any:
    client = client_of(url)
    tools = [{"type": "function", "name": "weather", "parameters": WEATHER, "strict": True}]
    given: list[Any] = asks("the weather?")
    first = client.responses.create(model=RESPONSES_MODEL, input=given, tools=tools)
    call = first.output[0]
    given += [call.model_dump(exclude_none=True)]
    given += [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    second = client.responses.create(model=RESPONSES_MODEL, input=given, tools=tools)
    return [shown(first), shown(second)]


@scenario("openai", 2, faulty=True)
def openai_retried_after_500(url: str) -> Any:
    at_desk(url, "fail_next", status=500, retry_after_ms="1")
    return shown(client_of(url, max_retries=2).chat.completions.create(model=CHAT, messages=asks("retried")))


@scenario("openai", 4, faulty=True)
def openai_retried_after_429_between_equal_calls(url: str) -> Any:
    client = client_of(url, max_retries=2)

    def ask() -> str:
        return client.chat.completions.create(model=CHAT, messages=asks("equal")).id

    first = ask()
    at_desk(url, "fail_next", status=429, retry_after_ms="1")
    return [first, ask(), ask()]


@scenario("openai", 2, faulty=True)
def openai_error_that_the_program_catches(url: str) -> Any:
    import openai

    client = client_of(url)
    at_desk(url, "fail_next", status=400)
    try:
        client.chat.completions.create(model=CHAT, messages=asks("refused"))
    except openai.BadRequestError as error:
        caught = [type(error).__name__, error.status_code]
    return [caught, shown(client.chat.completions.create(model=CHAT, messages=asks("plan b")))]


@scenario("openai", 2, faulty=True)
def openai_retried_after_a_hang_up(url: str) -> Any:
    at_desk(url, "hang_up_next")
    return shown(client_of(url, max_retries=2).chat.completions.create(model=CHAT, messages=asks("hang up")))


@scenario("openai", 2, faulty=True)
def openai_stream_that_was_cut_and_asked_again(url: str) -> Any:
    client = client_of(url)

    def read() -> list[Any]:
        got: list[Any] = []
        try:
            got.extend(map(shown, client.chat.completions.create(model=CHAT, messages=asks("cut"), stream=True)))
        except Exception as error:
            got.append(type(error).__name__)
        return got

    at_desk(url, "cut_next", after=3)
    return [read(), read()]
