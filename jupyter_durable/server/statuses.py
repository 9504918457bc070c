"""From class of error to HTTP status: the only place where that is decided."""

from __future__ import annotations

from http import HTTPStatus

from jupyter_durable import errors
from jupyter_durable.server.asking import TookTooLong
from jupyter_durable.server.place import NotHere
from jupyter_durable.server.shapes import Problem

STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (NotHere, 404),
    (TookTooLong, 422),
    (errors.UsageError, 400),
    (errors.LogUnusable, 503),
    (errors.LogError, 409),
    (errors.ReplayError, 409),
    (errors.ValueBoundaryError, 422),
    (errors.DurableError, 500),
)
"""The first that fits counts. 403 is left to the server: front ends take it for the end of a login."""

_FACTS = 20
_TEXT = 1000


def status_of(error: BaseException) -> int:
    """The HTTP status of an error; 500 for one that nobody expected."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def problem(error: errors.DurableError) -> Problem:
    """An error as the body of an answer."""
    kept = {
        name: value[:_TEXT] if isinstance(value, str) else value
        for name, value in list(error.facts.items())[:_FACTS]
        if value is None or isinstance(value, str | int | float)
    }
    return Problem(
        message=str(error),
        reason=HTTPStatus(status_of(error)).phrase,
        error=type(error).__name__,
        facts=kept,
    )
