"""Rows that the dump contains on purpose: their table, their number and what a reader should see of them."""

from dataclasses import asdict, dataclass
from typing import Any

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql.addressing import canonical

TAG = "Wire.Case"  # a header of every message of a case, which retries and error queues keep


@dataclass(frozen=True, slots=True)
class Case:
    """``rows`` of ``table`` whose header text is like ``headers_like``."""

    name: str
    table: Address
    rows: int
    why: str
    endpoint: str  # what a real endpoint or the platform does with them
    like: str = ""

    @property
    def headers_like(self) -> str:
        return self.like or f'%"{TAG}":"{self.name}"%'

    def found(self, connection: Connection) -> int:
        """Count the rows of this case."""
        query = f"select count(*) from {canonical(self.table)} where headers like %(like)s"
        return int(connection.value(query, {"like": self.headers_like}))

    def said(self) -> dict[str, Any]:
        said = asdict(self)
        said.pop("like")
        return said | {"table": canonical(self.table), "headers_like": self.headers_like}
