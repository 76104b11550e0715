"""What JSON and XML share when they are re-indented: a new line at a level, and when it would not help."""

from collections.abc import Iterable

from pgqueue_admin.formatting.text_spans import TextSpan

MAX_LEVELS = 200
_MAX_CHARACTERS = 500_000


class NotIndentable(Exception):
    """More levels than anybody reads, or more indentation than a page holds."""


def line(level: int) -> str:
    if level > MAX_LEVELS:
        raise NotIndentable
    return "\n" + "  " * level


def bounded(pieces: Iterable[TextSpan]) -> list[TextSpan] | None:
    """All the pieces, or None where the text is better left as it is."""
    kept: list[TextSpan] = []
    room = _MAX_CHARACTERS
    try:
        for piece in pieces:
            room -= len(piece.text)
            if room < 0:
                return None
            kept.append(piece)
    except NotIndentable:
        return None
    return kept
