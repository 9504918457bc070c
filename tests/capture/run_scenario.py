"""Run scenarios in this process: ``python run_scenario.py --url URL --log DIR --run NAME SCENARIO...``.

Each scenario is a durable run of its own, ``NAME-SCENARIO``; synchronous ones first, then all others on one event
loop, as in a notebook. One JSON line tells what came of them: for each its output, or the error's type and message.

``--plain`` runs them without the product. ``--plain-first`` runs them so and then durably, in that order, so that the
SDKs are imported before the product; the line then holds both. In all other cases the product comes first.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if __package__ in {None, ""}:
    sys.path[0] = str(ROOT)

from tests.capture.scenarios import ANTHROPIC_KEY, GOOGLE_KEY, OPENAI_KEY, Scenario, at_desk, scenarios  # noqa: E402

KEYS = {"OPENAI_API_KEY": OPENAI_KEY, "ANTHROPIC_API_KEY": ANTHROPIC_KEY, "GOOGLE_API_KEY": GOOGLE_KEY}


class Program:
    """What is run, and what came of it."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.url: str = arguments.url
        self.log: str = arguments.log
        self.run: str = arguments.run
        known = scenarios()
        self.folds: bool = not arguments.keep_journals
        self.chosen = [known[name] for name in arguments.scenarios]
        self.passes = ["plain"] if arguments.plain else ["plain", "durable"] if arguments.plain_first else ["durable"]
        self.results: dict[str, dict[str, Any]] = {kind: {} for kind in self.passes}
        self.prepared: dict[str, tuple[Any, ...]] = {}
        self.opened: list[Any] = []

    def main(self) -> dict[str, dict[str, Any]]:
        """Run everything."""
        self._prepare()
        if self.passes == ["durable"]:
            self._open_log()  # before any SDK is imported, where no scenario had something to prepare
        for kind in self.passes:
            for one in self.chosen:
                if not one.is_async:
                    self._run(one, kind)
        if any(one.is_async for one in self.chosen):
            asyncio.run(self._run_all_async())
        if self.opened and self.folds:
            self.opened[0].take_in()
        return self.results

    def _open_log(self) -> Any:
        """The log. It is folded once, at the end: a fold after each of forty small runs would take most of the time."""
        if not self.opened:
            from jupyter_durable.log.local import LocalLog

            class FoldedAtTheEnd(LocalLog):
                def fold(self) -> Any:
                    """Not now."""

                def take_in(self) -> Any:
                    """Now."""
                    return super().fold()

            self.opened.append(FoldedAtTheEnd(Path(self.log)))
        return self.opened[0]

    def _prepare(self) -> None:
        for one in self.chosen:
            if one.prepare:
                at_desk(self.url, "begin", chapter="prepare")
                self.prepared[one.name] = (one.prepare(self.url),)

    def _durably(self, one: Scenario, kind: str) -> Any:
        if kind == "plain":
            return contextlib.nullcontext()
        from jupyter_durable import durable

        return durable.run(f"{self.run}-{one.name}", log=self._open_log())

    def _run(self, one: Scenario, kind: str) -> None:
        at_desk(self.url, "begin", chapter=f"{kind}-{one.name}")
        try:
            with self._durably(one, kind):
                output = one.run(self.url, *self.prepared.get(one.name, ()))
            self.results[kind][one.name] = {"output": output}
        except Exception as error:
            self._failed(one, kind, error)

    async def _run_all_async(self) -> None:
        for kind in self.passes:
            for one in self.chosen:
                if one.is_async:
                    await self._run_async(one, kind)

    async def _run_async(self, one: Scenario, kind: str) -> None:
        at_desk(self.url, "begin", chapter=f"{kind}-{one.name}")
        try:
            async with self._durably(one, kind):
                output = await one.run(self.url, *self.prepared.get(one.name, ()))
            self.results[kind][one.name] = {"output": output}
        except Exception as error:
            self._failed(one, kind, error)

    def _failed(self, one: Scenario, kind: str, error: Exception) -> None:
        traceback.print_exc()
        self.results[kind][one.name] = {"error": {"type": type(error).__name__, "message": str(error)}}


def main() -> None:
    """Read the arguments, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--url", required=True, help="of the fake provider")
    parser.add_argument("--log", default=".durable", help="directory of the log")
    parser.add_argument("--run", default="matrix", help="how the runs' names begin")
    parser.add_argument("--plain", action="store_true", help="without the product")
    parser.add_argument("--plain-first", action="store_true", help="plainly, then durably")
    parser.add_argument("--keep-journals", action="store_true", help="leave the log as it was written: do not fold it")
    parser.add_argument("scenarios", nargs="+")
    os.environ.update(KEYS, ANONYMIZED_TELEMETRY="false", LITELLM_LOCAL_MODEL_COST_MAP="True")
    warnings.simplefilter("ignore")  # the SDKs' own; what the product warns of goes through logging
    print(json.dumps(Program(parser.parse_args()).main()), flush=True)


if __name__ == "__main__":
    main()
