"""Texts with bars in the place of what regular expressions match."""

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pgqueue_admin.services.masking.rule import Rule

PATIENCE = 2.0  # seconds for one text: each match is linear, and there may be as many as characters


class TooSlow(Exception):
    """So many matches that the rest is not looked for: then nothing of the text may be shown."""


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
    """What their expressions match, in order; what overlaps is one. Raises TooSlow."""
    spans = []
    whole = text.encode("utf-8", "replace").decode()  # a half character is none for RE2, and counts as one here
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
    """Never raises: what would take too long is hidden as a whole."""
    try:
        return replaced(text, found(text, rules, MaskingDeadline()))
    except TooSlow:
        return next(rule.bar for rule in rules if rule.regex is not None)


def replaced(text: str, spans: Sequence[HiddenSpan]) -> str:
    """``spans``: in order, none within another."""
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
