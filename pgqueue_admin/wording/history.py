"""How it is said that history stands still, or never began."""

from pgqueue_admin.wording.durations import duration, plain
from pgqueue_admin.wording.warnings import Said


def stalled(age: float, threshold: float, table: str, why: str) -> Said:
    said = f"{why.rstrip('.')}. " if why else ""
    return Said(
        f"History of {table} stands still: complete up to {duration(age)} ago, the limit is {plain(threshold)}",
        duration(age),
        plain(threshold),
        f"{said}Nothing is lost, Trends end there. See Pipeline for its last batch, and the log of its process.",
    )


def unbegun(age: float, threshold: float, table: str, why: str) -> Said:
    said = f"{why.rstrip('.')}. " if why else ""
    return Said(
        f"History of {table} has not begun: messages lie there for {duration(age)}, the limit is {plain(threshold)}",
        duration(age),
        plain(threshold),
        f"{said}Nothing is lost, Trends show none of them. See Pipeline for its process, and the log of that.",
    )
