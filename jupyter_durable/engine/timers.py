"""``asyncio.sleep`` in the glue code of a durable cell: its order is recorded, and a recorded one is not waited for.

It is never a key, never a difference, and needs no flush. Inside step bodies, and outside of durable runs, it is the
ordinary one.
"""

from __future__ import annotations

import asyncio
import asyncio.tasks
from typing import Any

from jupyter_durable.engine.context import current
from jupyter_durable.keys import TimerKey

plain_sleep = asyncio.tasks.sleep
"""The ordinary one, for waits that are no business of a history."""


async def sleep(delay: float, result: Any = None) -> Any:
    """``asyncio.sleep`` that keeps its place in the order of a run."""
    frame = current()
    if frame is None or frame.step is not None or delay <= 0 or frame.execution.ended:
        return await plain_sleep(delay, result)
    execution, place = frame.execution, frame.place
    scope = place.bound if place.bound is not None else place.path
    key = TimerKey(scope, place.occurrence("asyncio.sleep", ""))
    if execution.order.timer_is_recorded(key):
        await execution.order.turnstile.turn(key)
        return result
    await plain_sleep(delay)
    execution.timer_fired(key)
    if execution.group.returning:
        await execution.group.return_in_order(flush=False)
    return result


def install() -> None:
    """Put it in the place of the ordinary one."""
    asyncio.sleep = asyncio.tasks.sleep = sleep


def uninstall() -> None:
    """Put the ordinary one back, if nobody else has replaced ours."""
    if asyncio.sleep is sleep:
        asyncio.sleep = asyncio.tasks.sleep = plain_sleep
