"""Every statement of SQL Server's stores, with names in place: as a store composes it."""

from collections.abc import Iterator
from typing import Any

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.sqlserver.dialect import SQLServer
from pgqueue_admin.dialects.sqlserver.query import Catalog, Query

NOUNS = ["queue", "delayed", "subscription", "table_repair", "outbox", "session"]
SALES, DELAYED = Address("dbo", "Sales"), Address("dbo", "Sales.Delayed")
TABLES = {
    "delayed": DELAYED,
    "subscription": Address("dbo", "SubscriptionRouting"),
    "outbox": Address("dbo", "Sales_OutboxData"),
}


def composed(noun: str) -> Iterator[tuple[str, str, str]]:
    """Name, reason and text of each."""
    dialect = SQLServer("shop")
    statements = getattr(dialect, noun)
    filled: dict[str, Any] = {
        "table": TABLES.get(noun, SALES),
        "queue": SALES,
        "catalog": Catalog(""),
        "is_over": dialect.outbox.is_over,
        **{"most": 10, "batch": 100, "place": 0, "wait": 10_000, "lock_ms": 25_000, "id": 4711, "dispatched": 0},
        **{"name": "pgqueue_1", "index": "Index_Dispatched", "column": "Dispatched"},
    }
    filled |= _lists(statements, noun)
    for each in statements:
        yield each.name, each.why, each(**filled)


def _lists(statements: Any, noun: str) -> dict[str, Query]:
    if noun == "subscription":
        return {"topics": Query(", ".join(statements.topic(place=place) for place in range(2)))}
    if noun in ("queue", "delayed"):
        return {"rows": Query(", ".join(statements.row(place=place) for place in range(2)))}
    return {}
