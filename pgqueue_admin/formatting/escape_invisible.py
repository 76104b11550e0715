"""Makes invisible characters visible: broken bytes, NUL, control and bidi characters."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple


# Text in spans of one kind each, ready for a page to render.
class TextSpan(NamedTuple):
    """``kind``: key, text, number, mark (stands for an unprintable character), faint, or empty."""

    text: str
    kind: str = ""


def joined(pieces: Iterable[TextSpan]) -> str:
    return "".join(piece.text for piece in pieces)


def merged(pieces: Iterable[TextSpan]) -> Iterator[TextSpan]:
    """Merge adjacent spans of one kind: fewer nodes on the page."""
    text, kind = "", ""
    for piece in pieces:
        if piece.kind != kind and text:
            yield TextSpan(text, kind)
            text = ""
        text, kind = text + piece.text, piece.kind
    if text:
        yield TextSpan(text, kind)


# CR before LF is a line end and stays. Bidi controls, zero-width characters and the BOM disguise a text;
# lone surrogates cannot be encoded.
_UNSEEN = re.compile(
    "\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def decode(raw: bytes) -> str:
    """UTF-8; each invalid byte becomes a lone surrogate, which ``marked`` shows: nothing is lost."""
    return raw.decode("utf-8", "surrogateescape")


def decode_part(raw: bytes) -> tuple[str, int]:
    """Decode the start of a longer text and return the number of bytes used: a cut character is left for later."""
    cut = _cut_character(raw)
    return decode(raw[: len(raw) - cut]), len(raw) - cut


def marked(text: str, kind: str = "") -> Iterator[TextSpan]:
    """The text with a visible mark for every invisible character."""
    done = 0
    for unseen in _UNSEEN.finditer(text):
        if unseen.start() > done:
            yield TextSpan(text[done : unseen.start()], kind)
        yield TextSpan(mark(unseen[0]), "mark")
        done = unseen.end()
    if done < len(text):
        yield TextSpan(text[done:], kind)


def plain(text: str) -> str:
    """The marked text as one string, for pages and logs that take no spans."""
    return _UNSEEN.sub(lambda unseen: mark(unseen[0]), text)


def in_json(text: str) -> str:
    """Equivalent JSON with invisible characters escaped, for editing in a form field."""
    return _UNSEEN.sub(lambda unseen: f"\\u{ord(unseen[0]):04x}", text)


def has_any(text: str) -> bool:
    """Whether it has an invisible character, which a person editing it would miss."""
    return _UNSEEN.search(text) is not None


def first_line(text: str) -> str:
    """The first line of a database's or driver's message, for pages with room for one line."""
    return plain(text.strip().partition("\n")[0])


def mark(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20:
        return chr(0x2400 + code)  # the control's own picture: ␀, ␍
    return f"‹U+{code:04X}›"


def broken_bytes(text: str) -> int:
    """How many bytes of a decoded text were not UTF-8."""
    return sum("\udc80" <= character <= "\udcff" for character in text)


def _cut_character(raw: bytes) -> int:
    """How many bytes at the end start an incomplete character."""
    for back in range(1, min(4, len(raw)) + 1):
        byte = raw[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if needed > back else 0
        if byte < 0x80:
            return 0
    return 0
