"""Oracle: an outbox's statements as text. No driver and no session, so no DSN leads here (dialects.dialect_for)."""

from pathlib import Path
from typing import Any

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.oracle.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.oracle.outbox_store import OracleOutbox
from pgqueue_admin.dialects.oracle.query import compose
from pgqueue_admin.dialects.statements import StatementFolder


class Oracle(StatementFolder):
    """The part of a Dialect (dialects.base) that an outbox table uses."""

    default_schema = IDENTIFIERS.default_schema

    def __init__(self) -> None:
        super().__init__("oracle", Path(__file__).parent, compose)

    def outbox_store(self, address: Address) -> OracleOutbox:
        return OracleOutbox(self, address)

    def outbox_address(self, endpoint: str, schema: str, prefix: str | None = None) -> Address:
        return Address(schema, IDENTIFIERS.outbox_table(endpoint, prefix))

    def written(self, query: Any) -> str:
        return str(query)
