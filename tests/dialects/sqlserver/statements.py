"""Every statement of SQL Server with names filled in, as a store composes it or as the console's reads do."""

from collections.abc import Iterator
from typing import Any

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.sqlserver.dialect import SQLServer
from pgqueue_admin.dialects.sqlserver.query import Catalog, Query

LOOKING = ["monitor", "browse"]
NOUNS = [
    "crossing",
    "waiting",
    "operation",
    "queue",
    "delayed",
    "subscription",
    "table_repair",
    "outbox",
    "session",
    "archive",
]
NOUNS += LOOKING
SALES, DELAYED = Address("dbo", "Sales"), Address("dbo", "Sales.Delayed")
OF_CROSSINGS = ("create", "mark", "commit_outcome", "forget")  # in a table of ours
TABLES = {
    "delayed": DELAYED,
    "subscription": Address("dbo", "SubscriptionRouting"),
    "outbox": Address("dbo", "Sales_OutboxData"),
}


def looking() -> Any:
    """The dialect of a database that is read as billing."""
    return SQLServer("shop").aliased("billing")


def _looking(noun: str) -> Iterator[tuple[str, str, str]]:
    dialect = looking()
    delayed = Address("billing:dbo", "Sales.Delayed")
    filled = {
        **{"sent": dialect.monitor.sent, "sequence": Address("billing:dbo", "Sales"), "increment": 1},
        **{"cap": 10_000, "probes": 192, "step": 50, "few": 5, "window": 1_000, "steps": 96, "reach": 20_000},
        **{"bytes": dialect.monitor.heap_bytes, "most": 20, "pages": 200},
        "has_conversation": dialect.archive.has_conversation,
    }
    for each in getattr(dialect, noun):
        is_delayed = each.name.startswith(("delayed", "due", "numbered"))
        table = delayed if is_delayed else Address("billing:dbo", "Sales")
        columns = dialect.browse.delayed_columns if is_delayed else dialect.browse.columns
        yield each.name, each.why, each(**filled, table=table, columns=columns)


def composed(noun: str) -> Iterator[tuple[str, str, str]]:
    """Name, reason and text of each."""
    if noun in (*LOOKING, "archive", "operation"):
        yield from _looking(noun)
        return
    dialect = SQLServer("shop")
    statements = getattr(dialect, noun)
    filled: dict[str, Any] = {
        "table": TABLES.get(noun, SALES),
        "queue": SALES,
        "catalog": Catalog(""),
        "is_over": dialect.outbox.is_over,
        **{"most": 10, "batch": 100, "place": 0, "wait": 10_000, "lock_ms": 25_000, "id": 4711, "dispatched": 0},
        **{"name": "pgqueue_1", "index": "Index_Dispatched", "column": "Dispatched"},
        **{"kind": Query("nonclustered"), "keys": Query("[Expires]"), "rest": Query(" include ([Id])")},
        **{"target": Address("dbo", "Billing"), "limit": 200, "unfilled": Query(" and [Tenant] is null")},
        **{"key": Query("primary key nonclustered"), "definition": Query("(newid())")},
    }
    filled |= _lists(statements, noun) | ({"column": "Tenant"} if noun == "waiting" else {})
    own = {"table": Address("dbo", "PgqueueCrossing")}
    for each in statements:
        filled |= {} if noun != "crossing" else own if each.name in OF_CROSSINGS else {"table": SALES, "limit": 200}
        yield each.name, each.why, each(**filled)


def _lists(statements: Any, noun: str) -> dict[str, Query]:
    if noun == "subscription":
        return {"topics": Query(", ".join(statements.topic(place=place) for place in range(2)))}
    if noun in ("queue", "delayed"):
        return {"rows": Query(", ".join(statements.row(place=place) for place in range(2)))}
    return {}
