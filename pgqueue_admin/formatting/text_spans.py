"""Text cut into pieces of one kind each, for a page to draw and nothing else to parse."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class TextSpan(NamedTuple):
    """``kind``: key, text, number, mark (our stand-in for what cannot be shown), faint, or empty."""

    text: str
    kind: str = ""


def joined(pieces: Iterable[TextSpan]) -> str:
    return "".join(piece.text for piece in pieces)


def merged(pieces: Iterable[TextSpan]) -> Iterator[TextSpan]:
    """Neighbours of one kind become one piece: fewer nodes on the page."""
    text, kind = "", ""
    for piece in pieces:
        if piece.kind != kind and text:
            yield TextSpan(text, kind)
            text = ""
        text, kind = text + piece.text, piece.kind
    if text:
        yield TextSpan(text, kind)
