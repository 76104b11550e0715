"""Replaces matches of regular expressions in a text by bars."""

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pgqueue_admin.services.masking.rule import Rule

PATIENCE = 2.0  # seconds for one text: each match is linear, but every character may match


class TooSlow(Exception):
    """The search was stopped for too many matches: nothing of the text may be shown."""


class HiddenSpan(NamedTuple):
    start: int
    end: int
    bar: str


class MaskingDeadline:
    def __init__(self, seconds: float = PATIENCE):
        self._until = time.monotonic() + seconds

    def check(self) -> None:
        if time.monotonic() > self._until:
            raise TooSlow


def found(text: str, rules: Iterable[Rule], patience: MaskingDeadline) -> list[HiddenSpan]:
    """Return the matches of the rules in order, overlapping ones merged. Raises TooSlow."""
    spans = []
    whole = text.encode("utf-8", "replace").decode()  # RE2 rejects a lone surrogate, a character here
    for rule in rules:
        if rule.regex is None:
            continue
        patience.check()
        for match in rule.regex.finditer(whole):
            patience.check()
            start, end = match.span()
            if start < end:
                spans.append(HiddenSpan(start, end, rule.bar))
    return _merged(spans)


def masked(text: str, rules: Sequence[Rule]) -> str:
    """Return the masked text. Never raises: a text that would take too long is hidden as a whole."""
    try:
        return replaced(text, found(text, rules, MaskingDeadline()))
    except TooSlow:
        return next(rule.bar for rule in rules if rule.regex is not None)


def replaced(text: str, spans: Sequence[HiddenSpan]) -> str:
    """``spans``: in order, without overlaps."""
    pieces, at = [], 0
    for start, end, bar in spans:
        pieces += [text[at:start], bar]
        at = end
    return "".join([*pieces, text[at:]])


def _merged(spans: list[HiddenSpan]) -> list[HiddenSpan]:
    kept: list[HiddenSpan] = []
    for span in sorted(spans):
        if kept and span.start < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(kept[-1].end, span.end))
        else:
            kept.append(span)
    return kept
