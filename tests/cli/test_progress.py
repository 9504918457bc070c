"""``jupyter durable show`` says how far an unfinished step was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_durable import cli
from jupyter_durable.event_data import Beat, Progress
from jupyter_durable.events import Progressed, StepBeat
from jupyter_durable.log import open_log
from tests.log.making import begin, started


def test_a_step_in_doubt_shows_how_far_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = open_log(str(tmp_path / ".durable"))
    writer = begin(log)
    step = writer.append(started(name="load"))
    writer.append(StepBeat(at=5.0, step=step, data=Beat()))
    writer.append(Progressed(at=6.0, step=step, data=Progress(done=3.0, total=10.0, text="rows\x1b[31m")))
    writer.close()
    run = log.executions()[0].header.name

    assert cli.main(["show", run, "--log", str(tmp_path / ".durable")]) == 0
    shown = capsys.readouterr().out
    assert "in doubt 3/10 rows" in shown
    assert "\x1b" not in shown

    cli.main(["show", run, "--log", str(tmp_path / ".durable"), "--json"])
    (row,) = json.loads(capsys.readouterr().out)["steps"]
    assert (row["progress"], row["beat"]) == ("3/10 rows\x1b[31m", 5.0)
