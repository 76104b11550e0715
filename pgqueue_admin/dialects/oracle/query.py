"""Our statements in the form of python-oracledb: each parameter as :name exactly once, a % unchanged.

A future session has to read the rows that a block returns (``getimplicitresults``), read CLOBs as text, and limit the
wait of a BoundedQuery (``call_timeout``).
"""

from datetime import timedelta
from typing import Any

from pgqueue_admin.dialects.oracle.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.text_composer import composed


class Query(str):
    """A statement from a file with its identifiers in place."""

    __slots__ = ()


class BoundedQuery(Query):
    """A query that waits for a lock no longer than ``wait``."""

    __slots__ = ("wait",)

    wait: timedelta


def compose(text: str, identifiers: dict[str, Any]) -> Query:
    """Fill ``{names}``: an Address as schema.name, a text as one identifier, a number or a Statement unchanged."""
    return Query(composed(text, identifiers, IDENTIFIERS.table, IDENTIFIERS.quote))
