"""Our statements as python-oracledb is to take them: by :name, each of which it wants exactly once, and a % as it is.

What a session has to do when there is a driver: read the rows that a block returns (``getimplicitresults``), CLOBs as
text, and bound the wait of a BoundedQuery (``call_timeout``).
"""

from datetime import timedelta
from typing import Any

from pgqueue_admin.dialects.oracle.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.text_composer import composed


class Query(str):
    """A statement from a file with its identifiers in place."""

    __slots__ = ()


class BoundedQuery(Query):
    """One that waits for a lock no longer than ``wait``."""

    __slots__ = ("wait",)

    wait: timedelta


def compose(text: str, identifiers: dict[str, Any]) -> Query:
    """Fill ``{names}``: an Address as schema.name, a text as one identifier, a number or a Statement as it stands."""
    return Query(composed(text, identifiers, IDENTIFIERS.table, IDENTIFIERS.quote))
