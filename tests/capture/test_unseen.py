"""Model calls that capture cannot record are told about once, and refused where nothing may be spent."""

from __future__ import annotations

import types

import pytest

from jupyter_durable import durable, errors, step
from jupyter_durable.capture import unseen
from jupyter_durable.capture.model_hosts import is_model_host
from tests.capture.loopback import Loopback, QuickLog


@pytest.fixture
def log(tmp_path):
    return QuickLog(tmp_path)


@pytest.fixture
def server():
    with Loopback() as server:
        yield server


def notices(run):
    return [notice for notice in run.execution.stats.notices if "not recorded" in notice]


@pytest.fixture
def realtime(server):
    """Opens a websocket at a path that speaks with models; the server has none, so it is refused after it was asked."""
    client = pytest.importorskip("websockets.sync.client")
    server.routes["/v1/realtime"] = server.routes["/other"] = lambda h: h.send(b"", status=404)

    def connect(path="/v1/realtime"):
        with pytest.raises(Exception, match="HTTP 404"):
            client.connect(server.url.replace("http", "ws") + path)

    return connect


def test_a_websocket_to_a_model_is_told_about_once(realtime, log):
    with durable.run("job", log=log) as run:
        realtime()
        realtime()

    assert len(notices(run)) == 1
    assert "A websocket to 127.0.0.1" in notices(run)[0]
    assert "`@step`" in notices(run)[0]


def test_a_websocket_to_something_else_is_nobodys_business(realtime, log):
    with durable.run("job", log=log) as run:
        realtime("/other")

    assert not notices(run)


def test_inside_of_a_step_nothing_is_said(realtime, log):
    @step
    def talk():
        realtime()

    with durable.run("job", log=log) as run:
        talk()

    assert not notices(run)


def test_under_replay_only_a_websocket_to_a_model_is_refused(realtime, server, log):
    refused = pytest.raises(errors.ReplayOnlyError, match=r"websocket to 127\.0\.0\.1.*`@step`")
    with refused, durable.run("job", log=log, replay_only=True):
        realtime()

    assert not server.seen


async def test_the_asynchronous_client_and_that_of_aiohttp_are_told_about_too(server, log):
    asynchronous = pytest.importorskip("websockets.asyncio.client")
    aiohttp = pytest.importorskip("aiohttp")
    server.routes["/v1/realtime"] = lambda h: h.send(b"", status=404)
    url = server.url.replace("http", "ws") + "/v1/realtime"

    async with durable.run("one", log=log) as run:
        with pytest.raises(Exception, match="HTTP 404"):
            await asynchronous.connect(url)
    async with durable.run("two", log=log) as other, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(url)

    assert len(notices(run)) == len(notices(other)) == 1


def bedrock(server):
    boto3 = pytest.importorskip("boto3")
    from botocore.config import Config

    client = boto3.client(
        "bedrock-runtime", region_name="us-east-1", endpoint_url=server.url, aws_access_key_id="a",
        aws_secret_access_key="b", config=Config(retries={"max_attempts": 0}),
    )  # fmt: skip
    message = {"role": "user", "content": [{"text": "hello"}]}
    try:
        return client.converse(modelId="amazon.nova-lite-v1:0", messages=[message])
    finally:
        client.close()


def answer_of_bedrock(handler):
    text = b'{"output": {"message": {"role": "assistant", "content": [{"text": "one"}]}}, "stopReason": "end_turn"}'
    handler.send(text, content_type="application/json")


# botocore calls a function of datetime that Python means to take away.
@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")
def test_a_call_of_bedrock_is_told_about_and_refused_under_replay_only(server, log):
    path = "/model/amazon.nova-lite-v1%3A0/converse"
    server.routes[path] = answer_of_bedrock

    with durable.run("job", log=log) as run:
        assert bedrock(server)["stopReason"] == "end_turn"
    with pytest.raises(errors.ReplayOnlyError, match="botocore"), durable.run("job", log=log, replay_only=True):
        bedrock(server)

    assert len(notices(run)) == 1
    assert len(server.seen) == 1


def fake_channel():
    """A module built as ``grpc._channel`` is: callables that know their method."""
    module = types.ModuleType("grpc._channel")
    source = (
        "class _UnaryUnaryMultiCallable:\n"
        "    def __init__(self, method): self._method = method\n"
        "    def __call__(self, request): return 'answer'\n"
        "    def with_call(self, request): return 'answer'\n"
        "    def future(self, request): return 'answer'\n"
    )
    exec(source, module.__dict__)
    return module


def test_a_call_of_a_model_over_grpc_is_told_about_and_other_calls_are_not(log):
    module = fake_channel()
    unseen.grpc(module)
    generate = module._UnaryUnaryMultiCallable(b"/google.ai.generativelanguage.v1.GenerativeService/GenerateContent")
    export = module._UnaryUnaryMultiCallable("/opentelemetry.proto.collector.trace.v1.TraceService/Export")

    with durable.run("job", log=log) as run:
        assert generate("request") == generate.with_call("request") == "answer"
        assert export("spans") == "answer"
    with pytest.raises(errors.ReplayOnlyError, match="gRPC"), durable.run("job", log=log, replay_only=True):
        generate.future("request")

    assert len(notices(run)) == 1
    assert "GenerativeService/GenerateContent" in notices(run)[0]


def test_the_real_grpc_has_what_is_looked_at(log):
    grpc = pytest.importorskip("grpc")
    method = "/google.ai.generativelanguage.v1.GenerativeService/GenerateContent"

    with (
        durable.run("job", log=log) as run,
        grpc.insecure_channel("127.0.0.1:1") as channel,
        pytest.raises(grpc.RpcError),
    ):
        channel.unary_unary(method)(b"", timeout=0.1)

    assert len(notices(run)) == 1


@pytest.mark.parametrize("hook", [unseen.websockets, unseen.grpc, unseen.botocore])
def test_a_library_that_is_not_as_it_was_known_is_said_to_be_so(hook):
    with pytest.raises(errors.CannotHook, match="not as it was known"):
        hook(types.ModuleType("other"))


@pytest.mark.parametrize(
    ("host", "models"),
    [
        ("api.openai.com", True),
        ("API.Anthropic.com", True),
        ("bedrock-runtime.eu-west-1.amazonaws.com", True),
        ("s3.amazonaws.com", False),
        ("us-central1-aiplatform.googleapis.com", True),
        ("bigquery.googleapis.com", False),
        ("huggingface.co", False),
        ("router.huggingface.co", True),
        ("corp.openai.azure.com", True),
        ("github.com", False),
        ("127.0.0.1", False),
    ],
)
def test_a_host_of_models_is_told_from_the_rest_of_its_cloud(host, models):
    assert is_model_host(host) is models
