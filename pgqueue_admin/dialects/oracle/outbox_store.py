"""An outbox table on Oracle (contract: dialects.outbox_store.OutboxStore). Tested as text only: no server has run it.

It needs 12.1.0.2 or newer: a block returns rows (``dbms_sql.return_result``), and lists are passed as JSON.
"""

import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

from pgqueue_admin import __version__
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.errors import AlreadyExists
from pgqueue_admin.dialects.oracle.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.oracle.query import BoundedQuery
from pgqueue_admin.dialects.outbox_store import Isolation, OutboxRecord, OutboxWork
from pgqueue_admin.dialects.outbox_table import OutboxTable
from pgqueue_admin.dialects.table_fault import TableFault

# Values are sent, and CLOBs stored, in the database's character set, which replaces a character that it lacks: two ids
# could become one, and a message count as handled.
_BEYOND, _BEYOND_OR_BACKSLASH = re.compile(r"[^\x00-\x7f]"), re.compile(r"[^\x00-\x5b\x5d-\x7f]")


class OracleOutbox(OutboxTable):
    column_types = {
        "MessageId": ("nvarchar2(200)",),
        "Dispatched": ("number(1,0)",),
        "DispatchedAt": ("timestamp(6)",),
        "PersistenceVersion": ("varchar2(23)",),
        "Operations": ("clob",),
    }
    indexed = ("Dispatched",)  # followed by DispatchedAt

    def __init__(self, sql: Any, address: Address):
        named = {"owner": address.schema, "name": address.table}
        super().__init__(sql, address, IDENTIFIERS.table(address), named)
        self._store = self._sql.store(table=address)
        self._complete = self._sql.complete(table=address)
        self._spelt = {name.upper(): name for name in (*self.column_types, "CreatedAt")}

    def create(self, session: Session) -> None:
        """Create what is missing. Each statement commits the open transaction; safe for concurrent callers."""
        missing = [] if self._columns(session) else [self._creation()]
        for statement in [*missing, *self._missing_indexes(session)]:
            with suppress(AlreadyExists):
                session.run(statement)

    def _creation(self) -> Any:
        return self._sql.create(table=self.address, key=f"{self.address.table}_PK")

    def _index(self, column: str) -> Any:
        named = self.address._replace(table=f"{self.address.table}_IX")
        return self._sql.create_index(table=self.address, index=named)

    def _spelling(self, column: str) -> str:
        return self._spelt.get(column, column)

    def faults(self, session: Session, isolation: Isolation = "read_committed") -> Iterator[TableFault]:
        yield from super().faults(session, isolation)
        if name := session.value(self._sql.may_not_lead()):
            said = f"{name} may not execute dbms_lock: nobody leads, so {self._name} is neither cleaned up nor relayed."
            grantee = IDENTIFIERS.quote(name, IDENTIFIERS.longest_schema)
            yield TableFault(said, f"grant execute on sys.dbms_lock to {grantee}")

    def finding(self, message_id: str) -> Command:
        return self._find, {"id": for_unistr(message_id)}

    def storing(self, message_id: str, operations: str, wait: timedelta) -> Command:
        query = BoundedQuery(self._store)
        query.wait = wait
        return query, {"version": __version__, **_record(message_id, operations)}

    def completing(self, message_id: str, operations: str) -> Command:
        return self._complete, _record(message_id, operations)

    def marking(self, message_id: str) -> Command:
        return self._mark, {"id": for_unistr(message_id)}

    def work(self, session: Session, keep: timedelta, grace: timedelta) -> OutboxWork:
        query = self._sql.work(table=self.address, is_over=self._is_over(session))
        asked = {"keep": _microseconds(keep), "grace": _microseconds(grace), **self._named}
        leads, purge, relay = session.all(query, asked)[0]
        return OutboxWork(bool(leads), bool(purge), bool(relay))

    def purge(self, session: Session, keep: timedelta, most: int) -> int:
        query = self._sql.purge(table=self.address, most=most)
        return int(session.value(query, {"keep": _microseconds(keep)}))

    def pending(self, session: Session, grace: timedelta, most: int, without: Collection[str]) -> list[OutboxRecord]:
        query = self._sql.pending(table=self.address, is_over=self._is_over(session), most=most)
        seen = json.dumps([for_unistr(each) for each in without])
        rows = session.all(query, {"grace": _microseconds(grace), "without": seen})
        return [OutboxRecord(row.id, bool(row.dispatched), row.operations) for row in rows]


def _record(message_id: str, operations: str) -> dict[str, str]:
    return {"id": for_unistr(message_id), "operations": for_json(operations)}


def _microseconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def for_unistr(text: str) -> str:
    r"""Escape a text for SQL's ``unistr``: ``\00e4``."""
    return _BEYOND_OR_BACKSLASH.sub(lambda letter: _units(letter[0], "\\"), text)


def for_json(text: str) -> str:
    r"""Escape JSON to ASCII: ``\u00e4``. Other characters occur in its strings only."""
    return _BEYOND.sub(lambda letter: _units(letter[0], "\\u"), text)


def _units(letter: str, mark: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(mark + units[start : start + 4] for start in range(0, len(units), 4))
