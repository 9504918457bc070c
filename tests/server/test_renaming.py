"""A notebook gets another path through the server: its history goes along, and its kernel is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_durable.log import renames
from jupyter_durable.log.local import LocalLog
from jupyter_durable.server import renaming
from jupyter_durable.server.renaming import Renaming, tell

NOTEBOOK: dict[str, Any] = {
    "cells": [{"cell_type": "code", "id": "aaaa0001", "source": "", "metadata": {}, "outputs": []}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.fixture
def contents(jp_asyncio_loop: Any, jp_fetch: Any, jp_serverapp: Any) -> Callable[..., None]:
    """Asks the contents API, as a front end does, and waits until those who listen have been told."""
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_durable"]

    def contents(method: str, path: str, body: Any = None) -> None:
        async def fetch() -> None:
            more = {} if body is None else {"body": json.dumps(body)}
            await jp_fetch("api", "contents", *path.split("/"), method=method, **more)
            await app.desk.renaming.done()

        jp_asyncio_loop.run_until_complete(fetch())

    return contents


@pytest.fixture
def planned(root: Path, begin: Any) -> Path:
    """A notebook with one run in the log."""
    path = root / "plan.ipynb"
    path.write_text(json.dumps(NOTEBOOK))
    begin(notebook="n1", path=str(path), cell="aaaa0001").close()
    return path


def here(ask: Any, notebook: str) -> list[bool]:
    """Whether each run of the log that a notebook has is one of its own."""
    return [each["here"] for each in ask("runs", notebook=notebook).json["runs"]]


def test_the_runs_of_a_renamed_notebook_are_shown_before_anything_ran_again(
    ask: Any, contents: Any, planned: Path
) -> None:
    contents("PATCH", "plan.ipynb", {"path": "plan-v2.ipynb"})

    assert here(ask, "plan-v2.ipynb") == [True]


def test_a_notebook_under_the_old_name_and_a_copy_have_no_runs(ask: Any, contents: Any, planned: Path) -> None:
    """G26: nobody takes over the runs of the one that was renamed."""
    contents("PATCH", "plan.ipynb", {"path": "plan-v2.ipynb"})
    planned.write_text(json.dumps(NOTEBOOK))
    (planned.parent / "copy.ipynb").write_text(json.dumps(NOTEBOOK))

    assert here(ask, "plan.ipynb") == [False]
    assert here(ask, "copy.ipynb") == [False]
    assert here(ask, "plan-v2.ipynb") == [True]


def test_a_rename_that_nobody_told_is_found_by_the_cells(ask: Any, planned: Path) -> None:
    planned.rename(planned.with_name("moved by hand.ipynb"))

    assert here(ask, "moved by hand.ipynb") == [True]


def test_a_moved_notebook_is_shown_with_the_log_of_its_old_folder(
    ask: Any, contents: Any, planned: Path, root: Path, log: Path
) -> None:
    (root / "archive").mkdir()
    contents("PATCH", "plan.ipynb", {"path": "archive/plan.ipynb"})

    assert here(ask, "archive/plan.ipynb") == [True]
    about = ask("about", notebook="archive/plan.ipynb").json
    assert (about["log"], about["elsewhere"]) == (str(log), True)
    # A neighbour in the new folder has the log of that folder.
    assert not ask("about", notebook="archive/other.ipynb").json["elsewhere"]

    contents("PATCH", "archive/plan.ipynb", {"path": "archive/again.ipynb"})
    assert here(ask, "archive/again.ipynb") == [True]
    contents("PATCH", "archive/again.ipynb", {"path": "home.ipynb"})
    assert here(ask, "home.ipynb") == [True]
    assert not ask("about", notebook="home.ipynb").json["elsewhere"]
    assert json.loads((root / "archive" / ".durable" / renames.ELSEWHERE).read_text()) == {}


def test_a_notebook_without_history_leaves_nothing_behind_when_it_is_moved(
    contents: Any, planned: Path, root: Path
) -> None:
    (root / "archive").mkdir()
    (root / "plain.ipynb").write_text(json.dumps(NOTEBOOK))
    contents("PATCH", "plain.ipynb", {"path": "archive/plain.ipynb"})
    contents("PATCH", "archive/plain.ipynb", {"path": "archive/other.ipynb"})

    assert not (root / "archive" / ".durable").exists()
    assert not (root / ".durable" / renames.RENAMES).exists()


def test_a_renamed_folder_takes_its_log_along(ask: Any, contents: Any, begin: Any, root: Path) -> None:
    folder = root / "one"
    folder.mkdir()
    (folder / "plan.ipynb").write_text(json.dumps({**NOTEBOOK, "cells": []}))
    begin(where=folder / ".durable", notebook="n1", path=str(folder / "plan.ipynb"), cell="bbbb0001").close()
    contents("PATCH", "one", {"path": "two"})

    assert here(ask, "two/plan.ipynb") == [True]


def test_a_log_that_is_gone_is_told_in_words(ask: Any, contents: Any, planned: Path, root: Path, log: Path) -> None:
    (root / "archive").mkdir()
    contents("PATCH", "plan.ipynb", {"path": "archive/plan.ipynb"})
    log.rename(root / "away")

    said = ask("runs", notebook="archive/plan.ipynb")

    assert said.status == 503
    assert "its history stayed in" in said.problem.message
    assert "which is not there any more" in said.problem.message


def test_a_log_outside_of_the_root_is_not_followed(ask: Any, root: Path, tmp_path: Path) -> None:
    LocalLog(tmp_path / "outside" / ".durable")
    LocalLog(root / ".durable")
    renames.set_elsewhere(root / "plan.ipynb", tmp_path / "outside" / ".durable")

    said = ask("runs", notebook="plan.ipynb")

    assert said.status == 404
    assert "outside of the folders of this server" in said.problem.message


def test_a_deleted_notebook_leaves_its_name_free(contents: Any, planned: Path, root: Path) -> None:
    (root / "archive").mkdir()
    contents("PATCH", "plan.ipynb", {"path": "archive/plan.ipynb"})
    contents("DELETE", "archive/plan.ipynb")

    assert renames.elsewhere(root / "archive" / "plan.ipynb") is None


def test_lines_that_cannot_be_read_lose_no_others(tmp_path: Path) -> None:
    one = renames.Renamed(at=1.0, before="/a", after="/b")
    LocalLog(tmp_path)
    renames.add(tmp_path, one)
    with (tmp_path / renames.RENAMES).open("ab") as file:
        file.write(b'{"at": 2, "befo')
    renames.add(tmp_path, one)

    assert renames.read(tmp_path) == [one, one]


# Telling kernels ----------------------------------------------------------------------------------------------------


class Sessions:
    """What is used of a session manager."""

    def __init__(self, connection: Path) -> None:
        self.kernel_manager = self
        self.connection_file = str(connection)
        self.path = "plan.ipynb"

    def get_kernel(self, _: str) -> Any:
        return self

    async def get_session(self, session_id: str) -> Any:
        return {"id": session_id, "type": "notebook", "path": self.path, "kernel": {"id": "k"}}

    async def update_session(self, _: str, **changes: Any) -> None:
        self.path = changes.get("path", self.path)


async def test_a_kernel_is_told_the_new_path_of_its_session(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path / "kernel-k.json")
    Renaming(None, lambda: "/root").follow(sessions)  # type: ignore[arg-type]
    await sessions.update_session("s", path="b/plan.ipynb")
    await sessions.update_session("s", name="plan.ipynb")

    notes = (tmp_path / renaming.NOTES / "kernel-k.jsonl").read_text().splitlines()
    assert [json.loads(each) for each in notes] == [{"before": "/root/plan.ipynb", "after": "/root/b/plan.ipynb"}]
    assert sessions.path == "b/plan.ipynb"


async def test_a_kernel_that_cannot_be_told_does_not_keep_the_session_from_its_path(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = Sessions(tmp_path / "gone" / "kernel-k.json")
    Renaming(None, lambda: "/root").follow(sessions)  # type: ignore[arg-type]
    await sessions.update_session("s", path="b.ipynb")

    assert sessions.path == "b.ipynb"
    assert "could not tell a kernel" in caplog.text


def test_notes_for_kernels_that_have_ended_are_cleared_away(tmp_path: Path) -> None:
    for name in ("kernel-a", "kernel-b"):
        (tmp_path / f"{name}.json").touch()
        tell(tmp_path / f"{name}.json", Path("/a"), Path("/b"))
    (tmp_path / "kernel-a.json").unlink()
    tell(tmp_path / "kernel-b.json", Path("/b"), Path("/c"))

    assert [path.name for path in (tmp_path / renaming.NOTES).iterdir()] == ["kernel-b.jsonl"]
