"""What is wrong with a table, and the statement that mends it."""

from typing import NamedTuple


class TableFault(NamedTuple):
    """``stops``: nothing can be received so. ``cure``: SQL for whoever owns the table; it keeps the rows."""

    said: str
    cure: str
    stops: bool = False

    def __str__(self) -> str:
        return f"{self.said}\n\tHINT: {self.cure}"
