"""Library functions that open files or walk folders, for the script's own folders."""

from __future__ import annotations

import gzip
import shutil
import xml.etree.ElementTree as ElementTree
from typing import Any

from .files import guarded_open

_ENTITY = "<!ENTITY"


def gzip_open(filename: Any, mode: Any = "rb", *args: Any, **options: Any) -> Any:
    """gzip.open; a path is opened as `open` opens it."""
    if hasattr(filename, "read") or hasattr(filename, "write"):
        return gzip.open(filename, mode, *args, **options)
    raw = str(mode).replace("t", "").replace("b", "") + "b"
    file = guarded_open(filename, raw)
    opened: Any = gzip.open(file, mode, *args, **options)  # noqa: SIM115 - it is the caller's
    # Closed with the archive, as a file that gzip opened itself.
    getattr(opened, "buffer", opened).myfileobj = file
    return opened


def remove_tree(path: Any, ignore_errors: bool = False) -> None:
    """shutil.rmtree, without the callbacks: they are handed functions of the system."""
    shutil.rmtree(path, ignore_errors=ignore_errors)


def parse_xml(text: Any, parser: None = None) -> Any:
    """ElementTree.fromstring and XML, without declarations of entities."""
    _check_entities(text)
    return ElementTree.fromstring(text)  # noqa: S314 - without entities, in a sandbox


def parse_xml_parts(parts: Any, parser: None = None) -> Any:
    """ElementTree.fromstringlist."""
    parts = list(parts)
    return parse_xml(type(parts[0])().join(parts) if parts else "")


def parse_xml_file(source: Any, parser: None = None) -> Any:
    """ElementTree.parse: a path is opened as `open` opens it."""
    if hasattr(source, "read"):
        return ElementTree.ElementTree(parse_xml(source.read()))
    with guarded_open(source, "rb") as file:
        return ElementTree.ElementTree(parse_xml(file.read()))


def _check_entities(text: Any) -> None:
    # SAFETY: entities grow without bound. Other encodings than these two are read by nobody here.
    kept = bytes(text).replace(b"\0", b"") if isinstance(text, bytes | bytearray) else str(text)
    if (_ENTITY.encode() if isinstance(kept, bytes) else _ENTITY) in kept:  # type: ignore[operator]
        raise ValueError("XML that declares entities is not read here; write the text out")
