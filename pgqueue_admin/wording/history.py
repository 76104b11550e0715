"""How it is said that history stands still, or never began."""

import re

from pgqueue_admin.wording.durations import duration, plain
from pgqueue_admin.wording.warnings import Said


def stalled(age: float, threshold: float, table: str, why: str) -> Said:
    return _said(
        f"History of {table} stands still: complete up to {duration(age)} ago",
        age,
        threshold,
        why,
        "Trends end there. See Pipeline for its last batch, and the log of its process.",
    )


def unbegun(age: float, threshold: float, table: str, why: str) -> Said:
    return _said(
        f"History of {table} has not begun: messages lie there for {duration(age)}",
        age,
        threshold,
        why,
        "Trends show none of them. See Pipeline for its process, and the log of that.",
    )


def statement(why: str) -> str:
    """What somebody is asked to run, as ``why`` has it; empty: nothing."""
    found = re.search(r"update pgqueue_\w+ .*?;", why)
    return found[0] if found else ""


def _said(fact: str, age: float, threshold: float, why: str, then: str) -> Said:
    cause = f"{why.rstrip('.')}. " if why else ""
    limit = plain(threshold)
    return Said(f"{fact}, the limit is {limit}", duration(age), limit, f"{cause}Nothing is lost, {then}")
