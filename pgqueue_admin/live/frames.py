"""Server-sent events as bytes (HTML standard, section 9.2)."""

import json
from collections.abc import Mapping

BEAT = b"event: beat\ndata: {}\n\n"
HELLO = b"retry: 2000\n: hello\n\n"


def figures(values: Mapping[str, str]) -> bytes:
    """What changed, formatted once for all who follow. JSON keeps it on one line."""
    data = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return f"event: figures\ndata: {data}\n\n".encode()
