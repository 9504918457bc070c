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


GIVE_WAY = 64
"""Turns of the loop, at most, for which something that is over gives way to others; some never stop."""


def is_settled(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether nothing but the running task can go on right now. What a loop does not tell counts as yes."""
    return not getattr(loop, "_ready", ())


async def give_way(loop: asyncio.AbstractEventLoop) -> None:
    """Let everything else come to its queue, its lock or its step.

    Ends are handed out one at a time, each when nothing else can go on, on the first run as on a replay. Else it would
    be for the turns of the loop to say who of two consumers is the first at a queue, and they are in no history.
    """
    for _ in range(GIVE_WAY):
        if is_settled(loop):
            return
        await plain_sleep(0)


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
    if execution.group.returning or not is_settled(asyncio.get_running_loop()):
        await execution.group.return_in_order(flush=False)
    return result


def install() -> None:
    """Put it in the place of the ordinary one."""
    asyncio.sleep = asyncio.tasks.sleep = sleep


def uninstall() -> None:
    """Put the ordinary one back, if nobody else has replaced ours."""
    if asyncio.sleep is sleep:
        asyncio.sleep = asyncio.tasks.sleep = plain_sleep
