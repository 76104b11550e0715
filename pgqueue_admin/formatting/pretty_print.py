"""JSON and XML re-indented by tokens. Nothing is parsed: numbers, key order and errors stay as written."""

import re
from collections.abc import Iterable, Iterator

from pgqueue_admin.formatting import json_tokens
from pgqueue_admin.formatting.escape_invisible import TextSpan

MAX_LEVELS = 200
_MAX_CHARACTERS = 500_000
_ON_ONE_LINE = 72

# An alternative without its end takes the rest, so that no text is scanned twice.
_XML_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
    r"|<(?:[^<>\"']|\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z))*>?|[^<]+",
    re.DOTALL,
)


def indented_json(text: str) -> list[TextSpan] | None:
    """The text indented by its structure, or None if too deep or far too long."""
    return _bounded(_walk_json(json_tokens.TOKEN.findall(text)))


def indented_xml(text: str) -> list[TextSpan] | None:
    """The text with each element on its own line, or None if too deep or far too long.

    Text stays beside its tags, so that no whitespace is added to an element's content.
    """
    return _bounded(_walk_xml(text))


def _walk_json(tokens: list[str]) -> Iterator[TextSpan]:
    level, at = 0, 0
    while at < len(tokens):
        token, ends = tokens[at], at
        if token in "{[":
            ends = _ends_on_this_line(tokens, at, top=level == 0)
            level += not ends
            yield from (_short(tokens[at : ends + 1]) if ends else [TextSpan(token + _line(level))])
        elif token in "}]":
            level = max(0, level - 1)
            yield TextSpan(_line(level) + token)
        else:
            yield TextSpan("," + _line(level)) if token == "," else _inline(tokens, at)
        at = max(ends, at) + 1


def _ends_on_this_line(tokens: list[str], at: int, top: bool) -> int:
    """End of a short list or object without nesting; 0 if it is the root, long, nested or unterminated."""
    room = _ON_ONE_LINE
    for end in range(at + 1, min(len(tokens), at + _ON_ONE_LINE)):
        if tokens[end] in "}]" and (not top or end == at + 1):
            return end
        room -= len(tokens[end]) + 1
        if top or tokens[end] in "{[" or room < 0:
            return 0
    return 0


def _short(tokens: list[str]) -> Iterator[TextSpan]:
    inside = tokens[1:-1]
    yield TextSpan(tokens[0] + " " * bool(inside))
    for at, token in enumerate(inside):
        yield TextSpan(", ") if token == "," else _inline(inside, at)
    yield TextSpan(" " * bool(inside) + tokens[-1])


def _inline(tokens: list[str], at: int) -> TextSpan:
    token = tokens[at]
    if token == ":":
        return TextSpan(": ")
    if token.startswith('"'):
        return TextSpan(token, "key" if tokens[at + 1 : at + 2] == [":"] else "text")
    # two adjacent words are invalid JSON; keep the blank between them
    return TextSpan(" " * _follows_word(tokens, at) + token, "number")


def _follows_word(tokens: list[str], at: int) -> bool:
    return at > 0 and tokens[at - 1][0] not in '{}[]:,"'


def _walk_xml(text: str) -> Iterator[TextSpan]:
    level, before = 0, "start"
    for token in _xml_tokens(text):
        kind = _kind_of_tag(token)
        if kind == "close":
            level = max(0, level - 1)
        if _breaks(before, kind):
            yield TextSpan(_line(level))
        yield TextSpan(token, {"text": "text", "other": "faint"}.get(kind, "key"))
        level += kind == "open"
        before = kind


def _xml_tokens(text: str) -> Iterator[str]:
    return (token for token in _XML_TOKEN.findall(text) if not token.isspace())


def _kind_of_tag(token: str) -> str:
    if not token.startswith("<") or token.startswith("<![CDATA["):
        return "text"
    if token[1:2] in {"!", "?"}:
        return "other"
    if token[1:2] == "/":
        return "close"
    return "empty" if token.endswith("/>") else "open"


def _breaks(before: str, kind: str) -> bool:
    """A line break between tags; none beside text, and none in an empty element."""
    if before == "start" or "text" in {before, kind}:
        return False
    return not (before == "open" and kind == "close")


class NotIndentable(Exception):
    """More levels than a person reads, or more indentation than a page holds."""


def _line(level: int) -> str:
    if level > MAX_LEVELS:
        raise NotIndentable
    return "\n" + "  " * level


def _bounded(pieces: Iterable[TextSpan]) -> list[TextSpan] | None:
    """All spans, or None if the text is better left unchanged."""
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
