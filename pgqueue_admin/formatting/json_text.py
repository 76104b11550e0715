"""JSON re-indented by its tokens. Never parsed: numbers, key order, duplicate keys and faults stay as they came."""

import re
from collections.abc import Iterator

from pgqueue_admin.formatting.indenting import bounded, line
from pgqueue_admin.formatting.text_spans import TextSpan

_ON_ONE_LINE = 72

# A string that never ends takes the rest; whatever is no token of JSON is a word and stays a word.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)


def indented(text: str) -> list[TextSpan] | None:
    """The text on lines of its own structure, or None where that would not help: too deep, or far too long."""
    return bounded(_walk(_TOKEN.findall(text)))


def _walk(tokens: list[str]) -> Iterator[TextSpan]:
    level, at = 0, 0
    while at < len(tokens):
        token, ends = tokens[at], at
        if token in "{[":
            ends = _ends_on_this_line(tokens, at, top=level == 0)
            level += not ends
            yield from (_short(tokens[at : ends + 1]) if ends else [TextSpan(token + line(level))])
        elif token in "}]":
            level = max(0, level - 1)
            yield TextSpan(line(level) + token)
        else:
            yield TextSpan("," + line(level)) if token == "," else _inline(tokens, at)
        at = max(ends, at) + 1


def _ends_on_this_line(tokens: list[str], at: int, top: bool) -> int:
    """Where a short list or object without another inside ends; 0 when it is the whole, long, nested or unended."""
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
    # two words side by side are no JSON, and the blank between them must not be lost
    return TextSpan(" " * _follows_word(tokens, at) + token, "number")


def _follows_word(tokens: list[str], at: int) -> bool:
    return at > 0 and tokens[at - 1][0] not in '{}[]:,"'
