"""LangChain and LangGraph, over OpenAI's and Anthropic's SDKs."""

from __future__ import annotations

from typing import Any, TypedDict

from tests.capture.scenarios import ANTHROPIC_KEY, CHAT, CLAUDE, OPENAI_KEY, RESPONSES_MODEL, scenario
from tests.capture.with_openai import city_type


def _openai(url: str, model: str = CHAT, **more: Any) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=model, base_url=f"{url}/v1", api_key=OPENAI_KEY, max_retries=0, **more)


def _anthropic(url: str, **more: Any) -> Any:
    from langchain_anthropic import ChatAnthropic

    return ChatAnthropic(
        model=CLAUDE, base_url=url, api_key=ANTHROPIC_KEY, max_tokens=64, max_retries=0, **more
    )  # fmt: skip


def _seen(message: Any) -> Any:
    value = message.model_dump(mode="json")
    if "run-" in str(value["id"]) or "lc_" in str(value["id"]):
        del value["id"]  # made up by LangChain for each run
    return {"type": type(message).__name__, "value": value}


def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


def _agent(model: Any) -> Any:
    from langchain.agents import create_agent

    return create_agent(model, tools=[weather])


QUESTION = {"messages": [{"role": "user", "content": "the weather?"}]}


def _of_agent(state: Any) -> Any:
    """Every message of an agent; those that LangChain made have random ids."""
    told = []
    for message in state["messages"]:
        calls = getattr(message, "tool_calls", None)
        told.append([type(message).__name__, message.content, calls, getattr(message, "usage_metadata", None)])
    return told


@scenario("langchain")
def langchain_openai_invoke(url: str) -> Any:
    return _seen(_openai(url).invoke("invoke"))


@scenario("langchain")
def langchain_openai_responses(url: str) -> Any:
    return _seen(_openai(url, RESPONSES_MODEL, use_responses_api=True).invoke("responses"))


@scenario("langchain")
def langchain_openai_stream(url: str) -> Any:
    return [_seen(chunk) for chunk in _openai(url).stream("stream")]


@scenario("langchain", 6, one_by_one=False)
def langchain_openai_batch_in_threads(url: str) -> Any:
    return [_seen(message) for message in _openai(url).batch([f"batch {at}" for at in range(6)])]


@scenario("langchain")
def langchain_openai_structured(url: str) -> Any:
    return _openai(url).with_structured_output(city_type()).invoke("structured").model_dump()


@scenario("langchain")
def langchain_openai_structured_by_tool(url: str) -> Any:
    model = _openai(url).with_structured_output(city_type(), method="function_calling")
    return model.invoke("structured").model_dump()


@scenario("langchain", 2)
def langchain_same_prompt_twice(url: str) -> Any:
    model = _openai(url)
    return [model.invoke("the same").content, model.invoke("the same").content]


@scenario("langchain", 2)
def langchain_openai_agent(url: str) -> Any:
    return _of_agent(_agent(_openai(url)).invoke(QUESTION))


@scenario("langchain", 2)
def langchain_openai_agent_stream(url: str) -> Any:
    told = []
    for update in _agent(_openai(url)).stream(QUESTION, stream_mode="updates"):
        for node, state in update.items():
            told.append([node, _of_agent(state)])
    return told


@scenario("langchain")
def langchain_anthropic_invoke(url: str) -> Any:
    return _seen(_anthropic(url).invoke("invoke"))


@scenario("langchain")
def langchain_anthropic_stream(url: str) -> Any:
    return [_seen(chunk) for chunk in _anthropic(url).stream("stream")]


@scenario("langchain", 2)
def langchain_anthropic_agent(url: str) -> Any:
    return _of_agent(_agent(_anthropic(url)).invoke(QUESTION))


@scenario("langchain")
def langchain_embeddings(url: str) -> Any:
    from langchain_openai import OpenAIEmbeddings

    embeddings = OpenAIEmbeddings(
        model="text-embedding-3-small",
        base_url=f"{url}/v1",
        api_key=OPENAI_KEY,
        check_embedding_ctx_length=False,  # else a tokenizer is fetched from the network
    )
    return embeddings.embed_query("embed me")


class Story(TypedDict, total=False):
    """The state of the graphs."""

    topic: str
    draft: str
    review: str


def _graph(url: str) -> Any:
    from langgraph.graph import END, START, StateGraph

    model = _openai(url)

    def write(state: Story) -> Story:
        return {"draft": str(model.invoke(f"write about {state['topic']}").content)}

    def review(state: Story) -> Story:
        return {"review": str(model.invoke(f"review {state['draft']}").content)}

    graph = StateGraph(Story)
    graph.add_node("write", write)
    graph.add_node("judge", review)
    graph.add_edge(START, "write")
    graph.add_edge("write", "judge")
    graph.add_edge("judge", END)
    return graph.compile()


@scenario("langchain", 2)
def langgraph_two_model_nodes(url: str) -> Any:
    return _graph(url).invoke({"topic": "logs"})


@scenario("langchain", 2)
async def langgraph_async_two_model_nodes(url: str) -> Any:
    return await _graph(url).ainvoke({"topic": "async logs"})


@scenario("langchain")
async def langchain_openai_ainvoke(url: str) -> Any:
    return _seen(await _openai(url).ainvoke("ainvoke"))


@scenario("langchain")
async def langchain_openai_astream(url: str) -> Any:
    return [_seen(chunk) async for chunk in _openai(url).astream("astream")]


@scenario("langchain", 6, one_by_one=False)
async def langchain_openai_abatch(url: str) -> Any:
    return [_seen(message) for message in await _openai(url).abatch([f"abatch {at}" for at in range(6)])]


@scenario("langchain", 2)
async def langchain_openai_async_agent(url: str) -> Any:
    return _of_agent(await _agent(_openai(url)).ainvoke(QUESTION))


@scenario("langchain")
async def langchain_anthropic_ainvoke(url: str) -> Any:
    return _seen(await _anthropic(url).ainvoke("ainvoke"))


@scenario("langchain", 2)
async def langchain_anthropic_async_agent(url: str) -> Any:
    return _of_agent(await _agent(_anthropic(url)).ainvoke(QUESTION))
