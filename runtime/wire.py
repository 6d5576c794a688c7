"""The bridge's constants, known to both of its ends."""

from __future__ import annotations

PROTOCOL = 1
"""Version of the protocol; checked at Hello, a mismatch ends the stream."""

ATTACH = "/limbeck.bridge.v1.Bridge/Attach"
"""Full name of the one method."""

BRIDGE_SOCKET = "s"
"""The gRPC socket's name in the bridge folder."""

OUTPUT_SOCKET = "o"
"""The printout socket's name in the bridge folder: first connection stdout, second stderr."""

STREAM_PARTS = 4
"""Messages of rows that may be under way, unconsumed, for one streamed result."""

STREAM_PART_BYTES = 256 * 1024
"""A message of rows is closed when it holds so many bytes (one larger row travels alone)."""

MAX_ARGUMENTS = 1024 * 1024
"""Bytes of the arguments of one call."""

MAX_MESSAGE = MAX_ARGUMENTS + 256 * 1024
"""Bytes of one message from a sandbox: the largest call, and its name."""

MAX_ITEMS = 1024
"""Calls, credits and cancels of one message."""

MAX_ANSWER = 32 * 1024 * 1024
"""Bytes of one message to a sandbox."""

MAX_INFLIGHT = 64
"""Calls of one execution that are served at a time; more wait in the stream."""
