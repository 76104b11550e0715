"""XML re-indented by its tokens. Nothing is resolved: entities, DTDs and faults stay as they came."""

import re
from collections.abc import Iterator

from pgqueue_admin.formatting.indenting import bounded, line
from pgqueue_admin.formatting.text_spans import TextSpan

# Every alternative takes the rest where its end is missing, so that no text is read twice.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
    r"|<(?:[^<>\"']|\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z))*>?|[^<]+",
    re.DOTALL,
)


def indented(text: str) -> list[TextSpan] | None:
    """The text with each element on a line of its own, or None where that would not help: too deep, or far too long.

    Text stays beside its tags, so that no blank is added to what an element says.
    """
    return bounded(_walk(text))


def _walk(text: str) -> Iterator[TextSpan]:
    level, before = 0, "start"
    for token in _tokens(text):
        kind = _kind(token)
        if kind == "close":
            level = max(0, level - 1)
        if _breaks(before, kind):
            yield TextSpan(line(level))
        yield TextSpan(token, {"text": "text", "other": "faint"}.get(kind, "key"))
        level += kind == "open"
        before = kind


def _tokens(text: str) -> Iterator[str]:
    return (token for token in _TOKEN.findall(text) if not token.isspace())


def _kind(token: str) -> str:
    if not token.startswith("<") or token.startswith("<![CDATA["):
        return "text"
    if token[1:2] in {"!", "?"}:
        return "other"
    if token[1:2] == "/":
        return "close"
    return "empty" if token.endswith("/>") else "open"


def _breaks(before: str, kind: str) -> bool:
    """A new line between tags; none beside text, and none in an element that holds nothing."""
    if before == "start" or "text" in {before, kind}:
        return False
    return not (before == "open" and kind == "close")
