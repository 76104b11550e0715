"""How a statement was executed: which tables it reached by which kind of scan, and how many blocks it touched."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from psycopg import sql

from pgqueue_admin.dialects import Connection

BY_INDEX = {"Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Tid Scan"}
_EXPLAIN = sql.SQL("explain (analyze, buffers, timing off, format json) ")


class Plan(NamedTuple):
    scans: set[tuple[str, str]]  # (table, kind of scan)
    indexes: set[str]
    blocks: int  # in memory or on disk; seconds prove nothing on a busy machine

    def reads(self, table: str) -> set[str]:
        return {kind for name, kind in self.scans if name == table}


def executed(connection: Connection, query: Any, params: Any = None) -> Plan:
    """Execute the statement, then roll it back."""
    with connection.raw.transaction(force_rollback=True):
        top = connection.value(_EXPLAIN + query, params)[0]["Plan"]
    scans = {
        (node["Relation Name"], node["Node Type"])
        for node in _nodes(top)
        if "Scan" in node["Node Type"] and "Relation Name" in node
    }
    indexes = {node["Index Name"] for node in _nodes(top) if "Index Name" in node}
    return Plan(scans, indexes, top["Shared Hit Blocks"] + top["Shared Read Blocks"])


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", []):
        yield from _nodes(child)
