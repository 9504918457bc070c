"""What was paid for is saved in a plainer form when it cannot be stored; saving never fails."""

from __future__ import annotations

import dataclasses
import json
import threading

import numpy as np
import openai
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable.values import salvage


class Model(pydantic.BaseModel, arbitrary_types_allowed=True):
    text: str
    lock: object = None


@dataclasses.dataclass
class Data:
    a: int
    lock: object


class Hostile:
    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __repr__(self):
        raise RuntimeError


class Plain:
    def __init__(self):
        self.answer = 42
        self._client = threading.Lock()


def saved(value):
    return json.loads(salvage(value).text)


def test_what_is_plain_is_kept_and_the_rest_is_named():
    value = {"id": 31, "client": openai.OpenAI(api_key="sk-live-8842-zzz"), "rows": [(1, {2})]}

    assert saved(value) == {"id": 31, "client": {"$": "omitted", "type": "openai.OpenAI"}, "rows": [[1, [2]]]}


def test_models_dataclasses_arrays_and_objects_show_what_they_hold():
    lock = {"$": "omitted", "type": "_thread.lock"}

    assert saved(Model(text="t")) == {"text": "t", "lock": None}
    assert saved(Data(1, threading.Lock())) == {"a": 1, "lock": lock}
    assert saved(np.arange(3)) == [0, 1, 2]
    assert saved(Plain()) == {"answer": 42}
    assert saved({1: float("nan"), "e": ValueError("m")}) == {"1": "nan", "e": {"type": "ValueError", "message": "m"}}


def test_secrets_are_taken_out():
    text = salvage({"api_key": "anything", "log": "used sk-live-8842-zzz", "lock": threading.Lock()}).text

    assert b"anything" not in text
    assert b"8842" not in text


@pytest.mark.parametrize("place", range(5))
def test_it_never_raises(place):
    values = [Hostile(), [Hostile()], {Hostile: 1}, threading.Lock(), (x for x in [])]

    assert salvage(values[place]).text


def test_size_depth_and_cycles_are_capped():
    cycle: dict[str, object] = {"a": 1}
    cycle["self"] = cycle
    deep: list[object] = []
    for _ in range(1000):
        deep = [deep]

    assert saved(cycle)["self"] == {"$": "omitted", "type": "dict"}
    assert len(salvage(["x" * 1000] * 5000).text) <= 1_100_000
    assert len(salvage(["é" * 1000] * 5000).text) <= 1_100_000
    assert b"omitted" in salvage(deep).text


def test_a_placeholder_is_never_taken_for_a_dict_of_the_users():
    assert salvage([threading.Lock()]).codec == "tagged"
    assert salvage([1]).codec == "json"


@given(st.recursive(st.text() | st.floats() | st.binary() | st.integers(), st.lists))
def test_every_salvage_is_valid_json(value):
    json.loads(salvage([value, threading.Lock()]).text)
