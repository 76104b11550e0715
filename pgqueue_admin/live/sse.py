"""Server-sent events as bytes (HTML standard, section 9.2)."""

import json
from collections.abc import Mapping

HELLO = b"retry: 2000\n: hello\n\n"


def figures(values: Mapping[str, str]) -> bytes:
    """What changed, formatted once for all who follow. JSON keeps it on one line."""
    data = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return f"event: figures\ndata: {data}\n\n".encode()


def beat(may: str) -> bytes:
    """That the stream lives, and the mark of what its person may do; empty while nobody can tell."""
    return f'event: beat\ndata: {{"may":"{may}"}}\n\n'.encode()
