"""The differences between a message and its edited copy, line by line."""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

AROUND = 2  # unchanged lines beside a change
MOST_LINES = 2_000  # compared; more would cost too much
_LONGEST = 300  # characters of a line that is shown


class ChangedLine(NamedTuple):
    """``mark``: − for removed, + for added, empty for unchanged."""

    mark: str
    text: str


def of_lines(before: Sequence[str], after: Sequence[str]) -> list[ChangedLine] | None:
    """None if the texts are too long to compare."""
    if max(len(before), len(after)) > MOST_LINES:
        return None
    head, tail = _alike(before, after)
    if head == len(before) == len(after):
        return []
    found = _marked("", before[max(0, head - AROUND) : head])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(AROUND):
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                found += _marked("", old[start:end])
                continue
            found += _marked("−", old[start:end]) + _marked("+", new[new_start:new_end])
    return found + _marked("", before[len(before) - tail :][:AROUND])


def _alike(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """How many lines both start with, and how many of the rest both end with."""
    most = min(len(before), len(after))
    head = next((each for each in range(most) if before[each] != after[each]), most)
    return head, next((each for each in range(most - head) if before[-1 - each] != after[-1 - each]), most - head)


def _marked(mark: str, lines: Sequence[str]) -> list[ChangedLine]:
    return [ChangedLine(mark, line[:_LONGEST]) for line in lines]


def of_headers(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> list[ChangedLine]:
    """Compare by name, in the order before the edit."""
    found: list[ChangedLine] = []
    for name in [*before, *(each for each in after if each not in before)]:
        if name in before and name in after and before[name] == after[name]:
            continue
        if name in before:
            found.append(ChangedLine("−", f"{name}: {before[name]}"[:_LONGEST]))
        if name in after:
            found.append(ChangedLine("+", f"{name}: {after[name]}"[:_LONGEST]))
    return found
