"""``--replay-only`` spends nothing: neither through a child process nor past the hooks."""

from __future__ import annotations

import asyncio
import ctypes.util
import multiprocessing
import os
import platform
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest

from jupyter_durable import durable, errors, step
from tests.capture.loopback import ASK, Loopback, QuickLog, json_answer

NOTHING = [sys.executable, "-c", "pass"]


@pytest.fixture
def log(tmp_path):
    return QuickLog(tmp_path)


@pytest.fixture
def server():
    with Loopback() as server:
        server.on_chat(json_answer)
        yield server


def _nothing():
    pass


STARTS = {
    "subprocess.run": lambda: subprocess.run(NOTHING, check=True),
    "subprocess_shell": lambda: subprocess.check_output("true", shell=True),
    "os.system": lambda: os.system("true"),
    "os.popen": lambda: os.popen("true").close(),
    "os.fork": lambda: os.fork() or os._exit(0),
    "os.posix_spawn": lambda: os.posix_spawn(NOTHING[0], NOTHING, {}),
    "os.execv": lambda: os.execv(NOTHING[0], NOTHING),
    "multiprocessing_fork": lambda: multiprocessing.get_context("fork").Process(target=_nothing).start(),
    "multiprocessing_spawn": lambda: multiprocessing.get_context("spawn").Process(target=_nothing).start(),
    "multiprocessing_forkserver": lambda: multiprocessing.get_context("forkserver").Process(target=_nothing).start(),
    "pool": lambda: multiprocessing.get_context("spawn").Pool(1),
}


@pytest.mark.parametrize("start", [pytest.param(start, id=name) for name, start in STARTS.items()])
def test_a_child_process_is_refused_before_it_is_started(log, start):
    refused = pytest.raises(errors.ReplayOnlyError, match=r"starting .* was refused.*`@step`")
    with refused, durable.run("job", log=log, replay_only=True):
        start()


async def test_a_child_process_of_asyncio_is_refused(log):
    with pytest.raises(errors.ReplayOnlyError, match="was refused"):
        async with durable.run("job", log=log, replay_only=True):
            await asyncio.create_subprocess_exec(*NOTHING)


def test_a_child_process_started_in_a_thread_of_the_run_is_refused(log):
    caught = []

    def work():
        try:
            subprocess.run(NOTHING, check=True)
        except errors.RunStopped as stopped:
            caught.append(stopped.error)

    with durable.run("job", log=log, replay_only=True):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert [type(error) for error in caught] == [errors.ReplayOnlyError]


def test_the_message_names_the_program_and_never_its_arguments(log):
    with pytest.raises(errors.ReplayOnlyError) as caught, durable.run("job", log=log, replay_only=True):
        subprocess.run(["curl", "-H", "Authorization: Bearer sk-secret"], check=False)

    assert "`curl`" in str(caught.value)
    assert "sk-secret" not in str(caught.value)
    assert caught.value.facts["run"] == "job"


def test_a_recorded_step_that_started_a_child_is_replayed(log, effects):
    @step
    def work():
        effects.hit("work")
        return subprocess.check_output([sys.executable, "-c", "print(7)"], text=True)

    with durable.run("job", log=log):
        first = work()
    with durable.run("job", log=log, replay_only=True):
        assert work() == first == "7\n"

    assert effects.count("work") == 1


def test_a_run_that_may_spend_and_code_outside_of_the_run_start_what_they_like(log):
    codes = []

    with durable.run("job", log=log):
        codes.append(subprocess.run(NOTHING, check=False).returncode)
    started = threading.Event()

    def other():
        assert started.wait(20)
        codes.append(subprocess.run(NOTHING, check=False).returncode)

    outside = threading.Thread(target=other)
    outside.start()
    with durable.run("job", log=log, replay_only=True):
        started.set()
        while outside.is_alive():
            outside.join(1)
    codes.append(subprocess.run(NOTHING, check=False).returncode)

    assert codes == [0, 0, 0]


def test_what_libraries_ask_the_machine_about_itself_is_let_through(log):
    with durable.run("job", log=log, replay_only=True):
        platform.platform()
        ctypes.util.find_library("c")
        subprocess.run(["uname", "-p"], check=True, capture_output=True)


def test_a_model_that_is_asked_past_the_hooks_is_refused_before_its_name_is_looked_up(log):
    refused = pytest.raises(errors.ReplayOnlyError, match=r"about to connect to api\.openai\.com")
    with refused, durable.run("job", log=log, replay_only=True):
        urllib.request.urlopen("https://api.openai.com/v1/chat/completions", data=b"{}", timeout=5)
    with pytest.raises(errors.ReplayOnlyError), durable.run("job", log=log, replay_only=True):
        socket.gethostbyname("api.anthropic.com")


def test_other_hosts_are_connected_to_as_always(log, server):
    server.routes["/plain"] = json_answer

    url = f"{server.url}/plain"
    with durable.run("job", log=log, replay_only=True), urllib.request.urlopen(url, timeout=5) as response:
        assert response.status == 200


@pytest.mark.parametrize("library", ["httpx", "requests"])
def test_a_request_to_a_models_host_that_is_no_model_call_goes_through_the_hooks(log, monkeypatch, library):
    http = pytest.importorskip(library)
    looked_up = []

    def getaddrinfo(host, *_args, **_kwargs):
        sys.audit("socket.getaddrinfo", host, 443, 0, 0, 0)
        looked_up.append(host)
        raise socket.gaierror(8, "no network in tests")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    refused = http.ConnectError if library == "httpx" else http.ConnectionError
    with durable.run("job", log=log, replay_only=True), pytest.raises(refused):
        http.get("https://api.openai.com/v1/models")

    assert set(looked_up) == {"api.openai.com"}


async def test_the_same_through_aiohttp_which_looks_names_up_in_a_pool(log, monkeypatch):
    aiohttp = pytest.importorskip("aiohttp")
    looked_up = []

    def getaddrinfo(host, *_args, **_kwargs):
        sys.audit("socket.getaddrinfo", host, 443, 0, 0, 0)
        looked_up.append(host)
        raise socket.gaierror(8, "no network in tests")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    connector = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver())
    async with durable.run("job", log=log, replay_only=True), aiohttp.ClientSession(connector=connector) as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get("https://api.openai.com/v1/models")

    assert set(looked_up) == {"api.openai.com"}


@pytest.mark.parametrize("library", ["httpx", "requests"])
def test_a_recorded_model_call_is_replayed_and_a_new_one_refused(log, server, library):
    http = pytest.importorskip(library)

    with durable.run("job", log=log):
        first = http.post(server.chat, json=ASK, timeout=20).json()
    with durable.run("job", log=log, replay_only=True):
        assert http.post(server.chat, json=ASK, timeout=20).json() == first
    with pytest.raises(errors.ReplayOnlyError), durable.run("job", log=log, replay_only=True):
        http.post(server.chat, json=ASK, timeout=20)
        http.post(server.chat, json={**ASK, "model": "other"}, timeout=20)

    assert len(server.seen) == 1
