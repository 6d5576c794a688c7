"""Waiting for something, or for a cancel, whichever comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Cancelled(Exception):
    """The execution was cancelled before anything of it ran."""


async def unless(cancel: asyncio.Event, step: Awaitable[T]) -> T:
    """The value of a step; Cancelled at once when `cancel` is set first, and the step is ended."""
    waiting = asyncio.ensure_future(step)
    cancelled = asyncio.ensure_future(cancel.wait())
    try:
        await asyncio.wait([waiting, cancelled], return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            return waiting.result()
        raise Cancelled
    finally:
        cancelled.cancel()
        if not waiting.done():
            waiting.cancel()
            await asyncio.wait([waiting])
