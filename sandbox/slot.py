"""A sandbox's way through the warm pool.

CREATING -> WARM -> LEASED -> DEAD
    |        |
    v        v
  FAILED    DEAD        (too old, found dead, no answer to a ping, or of no use any more)
"""

from __future__ import annotations

from enum import StrEnum


class SlotState(StrEnum):
    """Where a sandbox of the pool is."""

    CREATING = "creating"
    WARM = "warm"
    LEASED = "leased"
    DEAD = "dead"
    FAILED = "failed"


MOVES = {
    SlotState.CREATING: frozenset({SlotState.WARM, SlotState.FAILED}),
    SlotState.WARM: frozenset({SlotState.LEASED, SlotState.DEAD}),
    SlotState.LEASED: frozenset({SlotState.DEAD}),
    SlotState.DEAD: frozenset(),
    SlotState.FAILED: frozenset(),
}
"""The whole table: what is not here is a fault of ours."""


class Slot:
    """One sandbox's state; an illegal move raises."""

    def __init__(self) -> None:
        self.state = SlotState.CREATING

    def move(self, state: SlotState) -> None:
        """Go on. Raises ValueError for a move that is not in the table."""
        if state not in MOVES[self.state]:
            raise ValueError(f"a sandbox cannot go from {self.state} to {state}")
        self.state = state
