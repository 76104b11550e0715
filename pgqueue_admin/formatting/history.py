"""Warnings that history has stalled, or never began."""

import re

from pgqueue_admin.formatting.durations import duration, plain
from pgqueue_admin.formatting.warnings import WarningText


def stalled(age: float, threshold: float, table: str, why: str) -> WarningText:
    return _said(
        f"History of {table} stands still: complete up to {duration(age)} ago",
        age,
        threshold,
        why,
        "Trends end there. See History for its last batch, and the log of its process.",
    )


def unfinished(age: float, threshold: float, table: str, why: str) -> WarningText:
    """Nothing is complete before the first full read."""
    return _said(
        f"History of {table} was never read to its end, and no batch of it has ended for {duration(age)}",
        age,
        threshold,
        why,
        "Trends do not have all of it. See History for its last batch, and the log of its process.",
    )


def unbegun(age: float, threshold: float, table: str, why: str) -> WarningText:
    return _said(
        f"History of {table} has not begun: its messages have waited for {duration(age)}",
        age,
        threshold,
        why,
        "Trends show none of them. See History for its process, and the log of that.",
    )


def history_reader_stale(age: float, threshold: float, name: str, reader: str) -> WarningText:
    """For another console on the same archive, or for this one."""
    return WarningText(
        f"A console that keeps history of this archive ({name or 'unnamed'}) has been silent for {duration(age)}",
        duration(age),
        plain(threshold),
        "The archive is pruned without waiting for it: messages that it has not read by then are missing in its"
        " history. If it is to go on, see that its Celery worker runs. If it is gone, run this on the database with the"
        f" queues: delete from messages.history_reader where reader = '{reader}';",
    )


def statement(why: str) -> str:
    """The SQL statement that ``why`` asks a person to run; empty: none."""
    found = re.search(r"update pgqueue_console\.\w+ .*?;", why)
    return found[0] if found else ""


def _said(fact: str, age: float, threshold: float, why: str, then: str) -> WarningText:
    cause = f"{why.rstrip('.')}. " if why else ""
    limit = plain(threshold)
    return WarningText(f"{fact}, the limit is {limit}", duration(age), limit, f"{cause}Nothing is lost, {then}")
