"""What a database would tell of those who only said they looked: every row's version, every lock."""

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import addressing, postgresql

_TABLES = """
select n.nspname as schema, c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r' and n.nspname not like 'pg\\_%%' and n.nspname <> 'information_schema' order by 1, 2
"""
_LOCKS = """
select distinct l.mode from pg_locks l join pg_stat_activity a using (pid)
where a.usename = %(name)s and l.locktype not in ('virtualxid', 'transactionid')
  and not (l.locktype = 'object' and l.classid = 'pg_database'::regclass)  -- every session's, while it starts
"""


def tables(connection: Connection) -> list[Address]:
    return [Address(*row) for row in connection.all(_TABLES, {})]


def versions(connection: Connection, *but: str) -> dict[str, str]:
    """Of each table: place, writer and locker of every row. Also a row lock shows here, long after it is gone."""
    found = {}
    for address in tables(connection):
        if address.table not in but:
            name = postgresql().canonical(address)
            rows = "count(*) || md5(coalesce(string_agg(ctid::text || xmin || xmax, ',' order by ctid), ''))"
            found[name] = connection.value(f"select {rows} from {name}")
    drawn = connection.all("select schemaname, sequencename, last_value from pg_sequences")
    return found | {f"sequence {row.schemaname}.{row.sequencename}": str(row.last_value) for row in drawn}


@contextmanager
def nothing_but_select(owner: Connection, schemas: list[str]) -> Iterator[dict[str, str]]:
    """A role that may SELECT and nothing else, as USER and PASSWORD of Django's queue database."""
    name, password = f"reader_{secrets.token_hex(4)}", secrets.token_hex(8)
    owner.run(f"create role {name} login password '{password}'")
    for schema in schemas:
        owner.run(f"grant usage on schema {addressing.quote(schema)} to {name}")
        owner.run(f"grant select on all tables in schema {addressing.quote(schema)} to {name}")
    try:
        yield {"USER": name, "PASSWORD": password}
    finally:
        owner.run(f"drop owned by {name}")
        owner.run(f"drop role {name}")


@contextmanager
def only_access_share(connection: Connection) -> Iterator[None]:
    """EXCLUSIVE on every table: it lets ACCESS SHARE pass, and whoever asks for more waits until it times out."""
    with connection.transaction():
        for address in tables(connection):
            connection.run(f"lock table {postgresql().canonical(address)} in exclusive mode")
        yield


@contextmanager
def locks_of(connection: Connection, name: str) -> Iterator[set[str]]:
    """The modes of all locks that a role's sessions were seen to hold, or to wait for, while the block ran.

    Under ``only_access_share`` whoever asks for more waits until its lock_timeout: a look every 20 ms sees it.
    """
    over, seen = threading.Event(), set[str]()

    def look() -> None:
        while not over.wait(0.02):
            seen.update(row.mode for row in connection.all(_LOCKS, {"name": name}))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
