"""Masks a body; a body to which rules cannot be applied is hidden as a whole."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote_plus

from pgqueue_admin.formatting.json_tokens import NotJson
from pgqueue_admin.services.masking import json_text
from pgqueue_admin.services.masking import text as texts
from pgqueue_admin.services.masking.rule import Rule
from pgqueue_admin.services.masking.text import HiddenSpan, MaskingDeadline, TooSlow

MOST = 500_000  # bytes that are searched
_BOM = b"\xef\xbb\xbf"
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f]")
_CHARSET = re.compile(r"""\bcharset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
# Markup that an XML parser drops from a text. Unclosed markup extends to the end, so each character is read once.
_MARKUP = re.compile(r"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<!\[CDATA\[|\]\]>", re.DOTALL)
_PERCENT = re.compile("%[0-9a-fA-F]{2}")
_BLANK = re.compile(r"\s")
_UTF8 = {"utf-8", "utf8", "us-ascii", "ascii"}


@dataclass(frozen=True, slots=True)
class MaskedBody:
    """``content``: what may be shown; None: nothing, and ``hidden`` says why."""

    content: bytes | None
    hidden: str = ""


def masked(raw: bytes, content_type: str | None, rules: Sequence[Rule]) -> MaskedBody | None:
    """Return the masked body; None if no rule hides anything. ``raw``: all of it, or one byte more than MOST."""
    rules = [rule for rule in rules if rule.header is None]
    if not rules or not raw:
        return None
    if len(raw) > MOST:
        return _whole(rules, f"it has more than {MOST:,} bytes")
    text = _text(raw, content_type)
    if text is None:
        return _whole(rules, "it is no UTF-8 text")
    try:
        spans = _spans(text, rules)
    except TooSlow:
        return _whole(rules, "looking for all hidden parts would take too long")
    if isinstance(spans, str):
        return _whole(rules, spans)
    return MaskedBody(texts.replaced(text, spans).encode("utf-8", "replace")) if spans else None


def _spans(text: str, rules: Sequence[Rule]) -> list[HiddenSpan] | str:
    """Return the hidden spans, or why they cannot be determined."""
    patience = MaskingDeadline()
    try:
        return json_text.hidden(text, rules, patience)
    except NotJson:
        if any(rule.path for rule in rules):
            return "it is no JSON, so its fields are unknown"
    spans = texts.found(text, rules, patience)
    if any(texts.found(spelled, rules, patience) for spelled in _spelled(text)):
        return "a hidden part may be written with entities or escapes"
    return spans


def _spelled(text: str) -> set[str]:
    """Return other readings of the text, by a parser of XML, of forms or of escapes, that differ from it."""
    plain = _MARKUP.sub("", text)
    forms = {plain, html.unescape(text), html.unescape(plain), _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)}
    if _PERCENT.search(text) or ("+" in text and not _BLANK.search(text)):
        forms.add(unquote_plus(text))
    return forms - {text}


def _text(raw: bytes, content_type: str | None) -> str | None:
    said = _CHARSET.search(content_type or "")
    if said and said[1].lower() not in _UTF8:
        return None
    try:
        text = raw.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if _NO_TEXT.search(text) else text


def of_a_part(rules: Sequence[Rule]) -> MaskedBody:
    """Hide a cut body: without its rest, a hidden part may not be recognized."""
    return _whole(rules, "only a part of it is kept")


def _whole(rules: Sequence[Rule], why: str) -> MaskedBody:
    names = ", ".join(f"“{rule.name}”" for rule in rules[:3]) + (" and others" if len(rules) > 3 else "")
    return MaskedBody(None, f"Hidden as a whole: {why}, and the masking of {names} may not miss anything.")
