"""One job after the other, in a main thread that may be interrupted at any line of it.

A thread, an alarm or a signal's handler that a script left behind may raise anything here. So each
step may be taken again, and what is done is noted where no call lies between the doing and the note
that matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import printout
from .between import silence_alarms
from .channel import Channel
from .codec import Job
from .errors import BridgeClosed

Outcome = tuple[int, dict[str, Any] | None]

TRIES = 10_000
"""However often one job's steps are interrupted."""

_INTERRUPTED: Outcome = (
    1,
    {
        "code": "exception",
        "type": "KeyboardInterrupt",
        "message": "what an earlier script of the session left running interrupted this one",
    },
)


class Jobs:
    """Runs, reports and waits, until the stream ends."""

    def __init__(
        self,
        channel: Channel,
        first: Job,
        run: Callable[[Job], Outcome],
        put_right: Callable[[], object],
    ) -> None:
        """`run` is called once a job, `put_right` between two of them, perhaps several times."""
        self._channel = channel
        self._run = run
        self._put_right = put_right
        self._job = first
        self._is_begun = self._is_reported = False
        self._outcome: Outcome | None = None
        self._interrupted = 0

    def serve(self) -> None:
        """Serve jobs for ever. Raises BridgeClosed when the host has ended the stream."""
        while True:
            # Twice: an interrupt may come between a handler's end and the next try.
            try:
                self._serve()
            except BridgeClosed:
                raise
            except BaseException:
                if self._interrupted > TRIES:
                    raise

    def _serve(self) -> None:
        while True:
            try:
                self._go_on()
            except BridgeClosed:
                raise
            except BaseException:
                self._interrupted += 1
                if self._interrupted > TRIES:
                    raise

    def _go_on(self) -> None:
        """What is still to be done of the job; then the next one is there."""
        if not self._is_begun:
            self._is_begun = True
            self._outcome = self._run(self._job)
        if not self._is_reported:
            silence_alarms()
            printout.flush()
            self._channel.done(*(self._outcome or _INTERRUPTED), self._job.number)
            self._is_reported = True
        # Until the host kills the sandbox, or stops it, threads may go on.
        job = self._channel.wait_for_job(last=self._job)
        self._put_right()
        self._job, self._outcome, self._interrupted = job, None, 0
        self._is_begun = self._is_reported = False
