"""Which notebook of a log a path leads to: by path, by what was renamed, by cells; copies and newcomers stay apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.notebooks import Known, Renamed, find_notebook, owners


def ran(at: float, notebook: str, path: str, cell: str = "x", name: str = "", code: str = "c0") -> Known:
    header = ExecutionHeader(
        format=1, execution=f"{at}", run="r", name=name, branch="b", branch_name="main",
        notebook=notebook, path=path, cell=cell, code=code,
    )  # fmt: skip
    return Known(at, header)


def renamed(at: float, before: str, after: str) -> Renamed:
    return Renamed(at=at, before=before, after=after)


def everything(_: str) -> bool:
    return True


def nothing(_: str) -> bool:
    return False


def test_a_notebook_is_known_by_its_path() -> None:
    known = [ran(1, "n1", "/a.ipynb"), ran(2, "n2", "/b.ipynb")]

    assert find_notebook("/a.ipynb", ["new"], known, [], everything) == ("n1", "")


def test_a_notebook_renamed_by_somebody_who_does_not_tell_is_found_by_a_cell_that_it_still_has() -> None:
    known = [ran(1, "n1", "/a.ipynb")]

    assert find_notebook("/b.ipynb", ["x"], known, [], nothing) == ("n1", "/a.ipynb")
    assert find_notebook("/b.ipynb", ["y"], known, [], nothing) == ("", "")


def test_it_is_found_by_a_run_that_is_the_same() -> None:
    known = [ran(1, "n1", "/a.ipynb", name="report", code="c1")]

    def same(header: ExecutionHeader) -> bool:
        return header.name == "report"

    assert find_notebook("/b.ipynb", [], known, [], nothing, same) == ("n1", "/a.ipynb")
    assert find_notebook("/b.ipynb", [], known, [], nothing) == ("", "")


def test_a_copy_is_a_notebook_of_its_own_while_the_original_is_there() -> None:
    """G26: the copy does not take over the original's runs."""
    known = [ran(1, "n1", "/a.ipynb")]

    assert find_notebook("/copy.ipynb", ["x"], known, [], lambda path: path == "/a.ipynb") == ("", "")


def test_a_copy_of_a_renamed_notebook_is_a_notebook_of_its_own() -> None:
    known = [ran(1, "n1", "/a.ipynb")]
    told = [renamed(2, "/a.ipynb", "/b.ipynb")]

    assert find_notebook("/copy.ipynb", ["x"], known, told, lambda path: path == "/b.ipynb") == ("", "")


def test_a_path_belongs_to_the_notebook_that_was_there_last() -> None:
    known = [ran(1, "n1", "/a.ipynb"), ran(2, "n1", "/b.ipynb")]

    assert find_notebook("/a.ipynb", ["z"], known, [], everything) == ("", "")


def test_a_renamed_notebook_is_found_without_any_cell_of_it_having_run_since() -> None:
    known = [ran(1, "n1", "/a.ipynb")]
    told = [renamed(2, "/a.ipynb", "/b.ipynb"), renamed(3, "/b.ipynb", "/c/b.ipynb")]

    assert find_notebook("/c/b.ipynb", [], known, told, everything) == ("n1", "/a.ipynb")


def test_a_notebook_that_is_created_under_the_old_name_of_another_one_is_new() -> None:
    known = [ran(1, "n1", "/a.ipynb")]
    told = [renamed(2, "/a.ipynb", "/b.ipynb")]

    assert find_notebook("/a.ipynb", ["x"], known, told, everything) == ("", "")
    known.append(ran(3, "n2", "/a.ipynb"))
    assert find_notebook("/a.ipynb", [], known, told, everything) == ("n2", "")
    assert find_notebook("/b.ipynb", [], known, told, everything) == ("n1", "/a.ipynb")


def test_a_renamed_folder_takes_its_notebooks_along_and_no_others() -> None:
    known = [ran(1, "n1", "/a/one.ipynb"), ran(2, "n2", "/ab/two.ipynb")]

    assert owners(known, [renamed(3, "/a", "/z")]) == {"/z/one.ipynb": "n1", "/ab/two.ipynb": "n2"}


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.sampled_from("abc"))))
def test_two_notebooks_are_never_in_one_place(story: list[tuple[bool, str, str]]) -> None:
    known, told = [], []
    for at, (runs, one, other) in enumerate(story):
        if runs:
            known.append(ran(at, f"n{one}", f"/{other}"))
        else:
            told.append(renamed(at, f"/{one}", f"/{other}"))

    where = owners(known, told)

    assert len(set(where.values())) == len(where)
    for path, notebook in where.items():
        assert find_notebook(path, [], known, told, nothing)[0] == notebook
