"""What a call does to the world: the word that decides how much is asked before it happens."""

from __future__ import annotations

from enum import StrEnum


class Effect(StrEnum):
    """Three classes; a tool that does not say is destructive."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"
