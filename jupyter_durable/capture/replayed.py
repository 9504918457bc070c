"""An answer from history, as a hook hands it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jupyter_durable.capture.answers import CANCELLED, Recorded, body_of, chunks_of
from jupyter_durable.engine.cancelling import cancelled_again
from jupyter_durable.errors import RunStopped, StreamNotRecorded


class Replayed:
    """An answer from history, for a hook to hand out.

    Args:
        kept: as it lies in the log.
        secrets: the keys of the request that asks now.
        too_short: makes the error of reading on where the recorded program had left.

    Attributes:
        status: HTTP status.
        headers: pairs of name and value.
    """

    def __init__(self, kept: Recorded, secrets: tuple[str, ...], too_short: Callable[[], StreamNotRecorded]) -> None:
        self.status = kept.status
        # What was refused for good then is so on replay: the SDK need not try again, nor wait before it does.
        refusal = (("x-should-retry", "false"),) if kept.status >= 400 else ()
        self.headers = [*(pair for pair in kept.headers if pair[0] != "x-should-retry" or not refusal), *refusal]
        self._kept = kept
        self._secrets = secrets
        self._too_short = too_short

    async def cancelled_again(self) -> None:
        """After the body: if the program cancelled its reader there, wait until it does so again."""
        if self._kept.broken is not None and self._kept.broken[0] == CANCELLED:
            await cancelled_again()

    def broken_by(self) -> tuple[str, str] | None:
        """Type and message of the error of the connection that ended the body, if one did."""
        return self._kept.broken

    def chunks(self) -> Iterator[bytes]:
        """The body as it was read.

        Raises:
            RunStopped: more is asked for than was read when it was recorded.
        """
        body = body_of(self._kept, self._secrets)
        yield from chunks_of(self._kept, body)
        if not self._kept.complete and self._kept.broken is None:
            raise RunStopped(self._too_short())
