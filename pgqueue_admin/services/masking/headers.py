"""Decides which parts of headers and exception messages may be read: by the right to read, and by rules."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from pgqueue_admin.archive import long_headers
from pgqueue_admin.services.masking import text as texts
from pgqueue_admin.services.masking.message_types import types_of
from pgqueue_admin.services.masking.rule import Rule, of_types
from pgqueue_admin.transport.wire import headers as h

HIDDEN = "•••"  # stands for the value of a header
# Their values are figures, types, times or names by which messages are found. All other headers may carry content.
FIGURES = frozenset(
    {
        h.MESSAGE_ID, h.CORRELATION_ID, h.CONVERSATION_ID, h.RELATED_TO, h.MESSAGE_INTENT, h.ENCLOSED_MESSAGE_TYPES,
        h.CONTENT_TYPE, h.REPLY_TO_ADDRESS, h.ORIGINATING_ENDPOINT, h.ORIGINATING_MACHINE, h.TIME_SENT, h.DELIVER_AT,
        h.TIME_TO_BE_RECEIVED, h.VERSION, h.CONTROL_MESSAGE, h.RETRIES, h.RETRIES_TIMESTAMP, h.FL_RETRIES, h.FAILED_Q,
        h.TIME_OF_FAILURE, h.EXCEPTION_TYPE, h.PROCESSING_STARTED, h.PROCESSING_ENDED, h.PROCESSING_ENDPOINT,
        h.PROCESSING_MACHINE, h.FORWARD_DESTINATION, "NServiceBus.IsSagaTimeoutMessage", "Pgqueue.EditOf",
    }
)  # fmt: skip
UNREADABLE = '"not shown"'  # unparsable as headers, like the text that it replaces
# placeholders of varying parts in a failure's message, with adjoining characters up to a blank
_FOLDED = re.compile(r"\S*<(?:n|id|text)>\S*")


def looks_into(rules: Iterable[Rule]) -> bool:
    """Whether a rule may hide a header or an exception message."""
    return any(rule.path is None for rule in rules)


def masked(headers: Mapping[str, str | None], rules: Sequence[Rule], types: Collection[str] | None = None) -> h.Headers:
    """``types``: the message's types; None: those named in the headers."""
    of = types_of(headers.get(h.ENCLOSED_MESSAGE_TYPES)) if types is None else types
    return {name: value(name, text, rules, of) for name, text in headers.items()}


def value(name: str, text: str | None, rules: Sequence[Rule], types: Collection[str]) -> str | None:
    if text is None or name in FIGURES:
        return text
    rules = of_types(rules, types)
    found = named(rules, name)
    return found.bar if found else texts.masked(text, rules)


def error(
    name: str,
    text: str | None,
    rules: Sequence[Rule],
    types: Collection[str],
    *,
    is_folded: bool = False,
    is_cut: bool = False,
) -> str | None:
    """Mask an exception text, also of a column of its own. A cut text is hidden whole: it may end within a
    hidden part.
    """
    rules = of_types(rules, types)
    if not text or not rules:
        return text
    if found := named(rules, name):
        return found.bar
    looking = next((rule for rule in rules if rule.regex is not None), None)
    if looking is None:
        return text
    return looking.bar if is_cut else texts.masked(_FOLDED.sub("<…>", text) if is_folded else text, rules)


def masked_text(text: str | None, length: int | None, rules: Sequence[Rule]) -> str | None:
    """Mask stored headers. ``length``: of the whole, if ``text`` may be its start."""
    if not looks_into(rules) or not text:
        return text
    found, trouble = long_headers.read(text, length)
    if trouble:
        return UNREADABLE
    if long_headers.is_cut(text, length) and found:
        found = dict(list(found.items())[:-1])  # the last may be cut within a hidden part
    return written(found, text, rules, is_whole=not long_headers.is_cut(text, length))


def written(found: h.Headers, text: str | None, rules: Sequence[Rule], *, is_whole: bool = True) -> str | None:
    """Always serialize anew: a repeated name is read only once, its last value, but the text holds them all."""
    return h.dump(masked(found, rules)) if found or not is_whole else text


def hides_in(text: str | None, length: int | None, rules: Sequence[Rule]) -> bool:
    """Whether a part of these headers is hidden, so their text must not be exported. ``length``: of all headers."""
    if not looks_into(rules) or not text:
        return False
    found, trouble = long_headers.read(text, length)
    if trouble or long_headers.is_cut(text, length):
        return True
    return masked(found, rules) != found or not _is_all_of(text, found)


def without_content(text: str | None) -> str | None:
    """Return headers with all names, but only the values of FIGURES."""
    try:
        found = h.parse(text)
    except h.HeadersUnreadable:
        return UNREADABLE
    return h.dump(hidden(found)) if found else text


def hidden(headers: h.Headers) -> h.Headers:
    return {name: value if name in FIGURES or value is None else HIDDEN for name, value in headers.items()}


def _is_all_of(text: str, headers: h.Headers) -> bool:
    """Whether no name repeats in the text: only its last value has been read."""
    try:
        return bool(json.loads(text, object_pairs_hook=list) == list(headers.items()))
    except (ValueError, RecursionError):
        return False


def named(rules: Iterable[Rule], name: str) -> Rule | None:
    """Return the rule that hides this header. A stack trace begins with its exception's message: that rule
    counts too.
    """
    names = (name, h.EXCEPTION_MESSAGE) if name == h.EXCEPTION_STACK_TRACE else (name,)
    return next((rule for rule in rules if rule.header and any(map(rule.header.fullmatch, names))), None)
