"""Values of last month's classes: a kernel dies, the class changes and has a migration, and the cell goes on."""

from __future__ import annotations

from tests.cases.conftest import refused

MONTH_1 = """
from dataclasses import dataclass
@dataclass
class Report:
    title: str
    body: str
"""
MONTH_2 = """
from dataclasses import dataclass
@dataclass
class Report:
    __durable_version__ = 2
    title: str
    sections: list[str]
"""
MIGRATION = """
@durable.migrate(Report, from_version=1)
def report_from_1(fields): return {"title": fields["title"], "sections": [fields["body"]]}
"""
STEPS = """
@step
def write(): hit("write"); return Report("t", "secret body")
@step
def mail(report): hit("mail"); return report.title
@step
def archive(reports): hit("archive"); stand("archive"); return [len(vars(each)) for each in reports]
"""
CELL = "%%durable monthly\nreport = write()\nmailed = mail(report)\nn = archive([report])\nreport, mailed, n"
DONE = ["(Report(title='t', sections=['secret body']), 't', [2])"]


def test_finished_steps_replay_with_migrated_values(case, tmp_path):
    """The class lies in a library, so that no step's own code has changed: nothing is asked."""
    library = tmp_path / "library"
    library.mkdir()
    module = library / "reports.py"
    module.write_text(MONTH_1)
    setup = f"import sys\nsys.path.insert(0, {str(library)!r})\nfrom reports import Report\n{STEPS}"
    case.open(setup, PYTHONDONTWRITEBYTECODE="1")
    case.kill_at("archive", CELL)
    before = case.journals()

    module.write_text(MONTH_2)
    ran = case.rerun(CELL)
    refused(
        ran, "UnloadableValue", "`monthly`", "main", "`write`", "reports.Report, version 1",
        "@durable.migrate(Report, from_version=1)", hidden=("secret",),
    )  # fmt: skip
    assert case.effects.tags() == ["write", "mail", "archive"]
    assert {name: text for name, text in case.journals().items() if name in before} == before

    case.kernel.ok(MIGRATION)
    ran = case.kernel.run(CELL)
    assert ran.results == DONE, ran.errors
    assert ran.summary.startswith("monthly · 3 steps · 2 replayed, 1 new")
    assert case.effects.tags() == ["write", "mail", "archive", "archive"]
    assert b'"v":{"title":"t","body":"secret body"}' in case.stored()
    # Every replay migrates again; the value of the live step was asked for with the same argument.
    assert "3 replayed" in case.kernel.run(CELL).summary
    assert case.effects.tags() == ["write", "mail", "archive", "archive"]


def test_a_step_whose_code_reaches_the_edited_class_is_asked_about_once(case):
    """The class of the notebook is part of what `write` depends on; a person says that its result stays."""
    case.open(MONTH_1 + STEPS)
    case.kill_at("archive", CELL)

    ran = case.rerun(CELL, setup=MONTH_2 + MIGRATION + STEPS)
    refused(ran, "DecisionNeeded", "`monthly`", "`write` (step 1) depends on has changed", hidden=("secret",))
    assert case.effects.tags() == ["write", "mail", "archive"]

    case.kernel.ok("%durable decide monthly reuse")
    ran = case.kernel.run(CELL)
    assert ran.results == DONE, ran.errors
    assert case.kernel.value("type(report) is Report") is True
    assert case.effects.tags() == ["write", "mail", "archive", "archive"]
    # The branch of today's code has the recorded value too, in its recorded form.
    again = case.rerun(CELL, setup=MONTH_2 + MIGRATION + STEPS)
    assert again.results == DONE, again.errors
    assert "3 replayed" in again.summary
