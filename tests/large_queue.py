"""A million rows of each kind, within seconds: indexes are created after the rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.delayed.table import DelayedTable
from pgqueue_admin.transport.tables.table_queue import TableQueue
from tests.databases import Databases

ROWS, DEAD = 1_000_000, 200_000
DUE = 300  # of the delayed
QUEUE = Address("public", "Q")

_FILL = """
insert into "Q" (id, headers, body)
select md5(i::text)::uuid, '{}', '\\x7b7d' from generate_series(1, %(rows)s) i
"""
_FILL_DELAYED = """
insert into "Q.Delayed" (id, headers, body, due)
select md5(i::text)::uuid, '{}', '', now() + (i - %(due)s) * interval '1 minute' from generate_series(1, %(rows)s) i
"""
_FILL_ARCHIVE = """
insert into messages.message_archive (
    created_at, message, result, handled_by, kind, queue, exception_type, target_schema, target_table, died_at)
select now(), '{}', case when i %% 10 = 0 then 'failed' else 'success' end::public.message_status, 'Q', 'transport',
    '"public"."Q' || i %% 20 || '"', case when i %% 10 = 0 then 'Shop.Failed' || i %% 7 end, 'public', 'Q',
    now() - (%(rows)s - i) * interval '1 second'
from generate_series(1, %(rows)s) i
"""
_FILL_ARCHIVED_LEASES = """
insert into messages.message_archive (
    created_at, message, result, handled_by, kind, queue, message_id, message_type, attempts, sent_at, died_at)
select now() at time zone 'utc', jsonb_build_object('kind', 'render', 'n', i),
    case when i %% 10 = 0 then 'failed' else 'success' end::public.message_status, 'thumbs', 'lease',
    case when i %% 11 <> 0 then '"messages"."message"' end, case when i %% 11 <> 0 then i::text end,
    concat('render', i %% 3), 1, now() - (%(rows)s - i) * interval '10 milliseconds',
    now() - (%(rows)s - i) * interval '10 milliseconds'
from generate_series(1, %(rows)s) i
"""

LEASES = Address("messages", "message")
_FILL_LEASES = """
insert into messages.message (message, available_at, lock_expires_at, token_expires_at, lock_token)
select jsonb_build_object('n', i), now() + case when i <= %(aside)s then interval '1 day' else interval '0' end,
    locked_until, locked_until, case when locked_until is not null then md5(i::text)::uuid end
from generate_series(1, %(rows)s + 2 * %(aside)s) i, lateral (
    select case when i > %(aside)s and i <= 2 * %(aside)s
        then (now() at time zone 'utc') + interval '1 hour' end as locked_until
) as lock
"""


@dataclass(frozen=True, slots=True)
class Large:
    dsn: str
    address: Address = QUEUE


@contextmanager
def queue(databases: Databases) -> Iterator[Large]:
    """A million live rows after 200,000 dead ones, which an old snapshot keeps from being vacuumed."""
    with (
        databases.clone("empty") as dsn,
        postgresql().connect(dsn, for_handlers=True) as connection,
        postgresql().connect(dsn, for_handlers=True) as old,
    ):
        TableQueue(postgresql(), QUEUE).create(connection)
        connection.run('alter table "Q" set unlogged, drop constraint "Q_pkey", drop constraint "Q_seq_key"')
        connection.run(_FILL, {"rows": ROWS + DEAD})
        old.run("begin isolation level repeatable read")
        old.value("select 1")
        connection.run(f'delete from "Q" where seq <= {DEAD}')
        connection.run('alter table "Q" add primary key (id), add unique (seq)')
        connection.run("analyze")
        yield Large(dsn)
        old.run("rollback")


@contextmanager
def delayed(databases: Databases, rows: int = ROWS, due: int = DUE) -> Iterator[Large]:
    """A million delayed messages, 300 of them due; or as many as asked for."""
    with databases.clone("empty") as dsn, postgresql().connect(dsn, for_handlers=True) as connection:
        TableQueue(postgresql(), QUEUE).create(connection)
        DelayedTable(postgresql(), QUEUE).create(connection)
        connection.run('drop index "Q.Delayed_Due"')
        connection.run('alter table "Q.Delayed" set unlogged, drop constraint "Q.Delayed_pkey"')
        connection.run(_FILL_DELAYED, {"rows": rows, "due": due})
        connection.run('alter table "Q.Delayed" add primary key (id)')
        connection.run('create index "Q.Delayed_Due" on "Q.Delayed" (due)')
        connection.run("analyze")
        yield Large(dsn)


@contextmanager
def archive(databases: Databases) -> Iterator[Large]:
    """A million archived messages of twenty queues, every tenth of them dead."""
    with databases.clone("engine") as dsn, postgresql().connect(dsn, for_handlers=True) as connection:
        made_again = _drop_indexes(connection)
        connection.run("alter table messages.message_archive disable trigger user, set unlogged")
        connection.run(_FILL_ARCHIVE, {"rows": ROWS})
        for statement in made_again:
            connection.run(statement)
        connection.run("vacuum analyze messages.message_archive")
        yield Large(dsn)


@contextmanager
def archived_leases(databases: Databases, rows: int = ROWS) -> Iterator[Large]:
    """A million archived lease messages, every tenth dead; every eleventh is of an original client."""
    with databases.clone("engine") as dsn, postgresql().connect(dsn, for_handlers=True) as connection:
        made_again = _drop_indexes(connection)
        connection.run("alter table messages.message_archive disable trigger user, set unlogged")
        connection.run(_FILL_ARCHIVED_LEASES, {"rows": rows})
        for statement in made_again:
            connection.run(statement)
        connection.run("vacuum analyze messages.message_archive")
        yield Large(dsn, LEASES)


def _drop_indexes(connection: Connection) -> list[str]:
    """Drop all indexes but the primary key's; return the statements that create them again."""
    found = connection.all(
        "select indexname, indexdef from pg_indexes where schemaname = 'messages' and tablename = 'message_archive'"
        " and indexname <> 'message_archive_pkey'"
    )
    for index in found:
        connection.run(f"drop index messages.{index.indexname}")
    return [index.indexdef for index in found]


@contextmanager
def leases(databases: Databases) -> Iterator[Large]:
    """A million waiting lease messages, 100,000 delayed ones and 100,000 locked ones."""
    with databases.clone("engine") as dsn, postgresql().connect(dsn, for_handlers=True) as connection:
        connection.run("alter table messages.message disable trigger user, set unlogged")
        connection.run(_FILL_LEASES, {"rows": ROWS, "aside": ROWS // 10})
        connection.run("alter table messages.message enable trigger user")
        yield Large(dsn)
