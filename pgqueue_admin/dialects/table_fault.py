"""A defect of a table, and the statement that repairs it."""

from typing import NamedTuple


class TableFault(NamedTuple):
    """``stops``: receiving is impossible. ``cure``: SQL for the table's owner; it keeps the rows."""

    said: str
    cure: str
    stops: bool = False

    def __str__(self) -> str:
        return f"{self.said}\n\tHINT: {self.cure}"
