"""Everything that goes over REST, as named shapes. The panel is written against them, and ``openapi.json`` is made of
them.

Every answer has ``format``, the version of the shapes. Names in a shape never change their meaning, new ones may come.
All fields are always there. Times are seconds since 1970-01-01 UTC, durations are seconds, what is not known is
``null``. Every text in them may come from a stranger's log: it is text, never HTML.
"""

from __future__ import annotations

from jupyter_durable.server.shapes.asking import (
    Amount,
    Bill,
    BillLine,
    By,
    CancelQuestion,
    DecideQuestion,
    Diff,
    DiffRow,
    Done,
    ForkQuestion,
    ResumeQuestion,
    SettleQuestion,
    SqlAnswer,
    SqlQuestion,
    SwitchQuestion,
)
from jupyter_durable.server.shapes.base import (
    FORMAT,
    Failure,
    NoticeItem,
    Problem,
    RunStatus,
    Shape,
    StepStatus,
    Totals,
    UsageItem,
)
from jupyter_durable.server.shapes.detail import (
    AdoptedFrom,
    AnswerItem,
    AttemptView,
    CompensationItem,
    ErrorView,
    Message,
    ModelCall,
    NotStored,
    OutputView,
    Part,
    Settled,
    StepDetail,
    TableView,
    ValueView,
    WaitPart,
)
from jupyter_durable.server.shapes.runs import (
    About,
    BranchItem,
    ExecutionItem,
    ForkItem,
    Hint,
    OriginItem,
    RunDetail,
    RunItem,
    Runs,
    SampleItem,
    UndoneItem,
    Waiting,
    WaitingStep,
)
from jupyter_durable.server.shapes.steps import Page, ProgressItem, StepRow
from jupyter_durable.server.shapes.waiting import AnswerQuestion, KeptItem, SignalQuestion, WaitItem, Waits

ANSWERS: tuple[type[Shape], ...] = (
    About, Runs, RunDetail, Page, StepDetail, Bill, Diff, SqlAnswer, Waits, Done, Problem,
    Hint,
)  # fmt: skip
"""What is answered; `Hint` comes by the event bus."""

QUESTIONS: tuple[type[Shape], ...] = (
    SqlQuestion, DecideQuestion, SettleQuestion, ForkQuestion, SwitchQuestion, CancelQuestion,
    ResumeQuestion, AnswerQuestion, SignalQuestion,
)  # fmt: skip
"""What is sent."""

__all__ = [
    "ANSWERS",
    "FORMAT",
    "QUESTIONS",
    "About",
    "AdoptedFrom",
    "Amount",
    "AnswerItem",
    "AnswerQuestion",
    "AttemptView",
    "Bill",
    "BillLine",
    "BranchItem",
    "By",
    "CancelQuestion",
    "CompensationItem",
    "DecideQuestion",
    "Diff",
    "DiffRow",
    "Done",
    "ErrorView",
    "ExecutionItem",
    "Failure",
    "ForkItem",
    "ForkQuestion",
    "Hint",
    "KeptItem",
    "Message",
    "ModelCall",
    "NotStored",
    "NoticeItem",
    "OriginItem",
    "OutputView",
    "Page",
    "Part",
    "Problem",
    "ProgressItem",
    "ResumeQuestion",
    "RunDetail",
    "RunItem",
    "RunStatus",
    "Runs",
    "SampleItem",
    "SettleQuestion",
    "Settled",
    "Shape",
    "SignalQuestion",
    "SqlAnswer",
    "SqlQuestion",
    "StepDetail",
    "StepRow",
    "StepStatus",
    "SwitchQuestion",
    "TableView",
    "Totals",
    "UndoneItem",
    "UsageItem",
    "ValueView",
    "WaitItem",
    "WaitPart",
    "Waiting",
    "WaitingStep",
    "Waits",
]
