"""JSON as it stands in rows: nearly always without anything around it."""

import json
from typing import Any

_decoder: Any = json.JSONDecoder()  # its scan_once is not in the annotations that mypy has


def decode(text: str) -> Any:
    """As ``json.loads``, which looks for white space on both sides first. Raises ValueError and RecursionError."""
    try:
        found, end = _decoder.scan_once(text, 0)
    except StopIteration:
        return _decoder.decode(text)
    return found if end == len(text) else _decoder.decode(text)
