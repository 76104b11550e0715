"""Queue tables as endpoints create them, and rows in them."""

from collections.abc import Callable
from typing import Any

from psycopg import sql

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql.dialect import compose
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.queue_table import QueueTable

HEADERS = '{"NServiceBus.EnclosedMessageTypes":"Shop.PlaceOrder, Shop"}'
_COLUMNS = "id uuid primary key, expires timestamp, headers text not null, body bytea, seq serial unique not null"


def make(connection: Connection, table: str = "Q", schema: str = "public") -> Address:
    connection.run(compose(f"create table {{table}} ({_COLUMNS})", {"table": Address(schema, table)}))
    return Address(schema, table)


def many(connection: Connection, count: int) -> None:
    """Create that many queues in one round trip."""
    made = f"execute format('create table %I ({_COLUMNS})', 'Q' || i);"
    connection.run(f"do $$ begin for i in 1..{count} loop {made} end loop; end $$")


def fill(connection: Connection, address: Address, count: int = 1, **columns: Any) -> None:
    """Insert rows; ``columns`` are SQL expressions, in which ``i`` counts from 1."""
    values = {"id": "gen_random_uuid()", "headers": f"'{HEADERS}'", "body": "'\\x7b7d'", **columns}
    names, expressions = ", ".join(values), ", ".join(values.values())
    rows = f"select {expressions} from generate_series(1, {count}) as i".replace("{", "{{").replace("}", "}}")
    connection.run(compose(f"insert into {{table}} ({names}) {rows.replace('%', '%%')}", {"table": address}))


def found(connection: Connection, address: Address) -> QueueTable:
    table = discovery.find_one(connection, address)
    assert table is not None
    return table


def made(connection: Connection, count: int = 0, table: str = "Q") -> QueueTable:
    address = make(connection, table)
    if count:
        fill(connection, address, count)
    return found(connection, address)


def out_of_sight(connection: Connection, address: Address) -> None:
    """With a cap of 1,000: so many expired rows are at the head that no ready one is reached."""
    fill(connection, address, 1_200, expires="now() at time zone 'utc' - interval '1 hour'")
    fill(connection, address, 1_800)


def take(connection: Connection, table: QueueTable, count: int) -> None:
    """Receive as an endpoint does, in the open transaction."""
    locked = "select id from {table} order by seq for update skip locked limit {count}"
    taking = compose(f"delete from {{table}} where id in ({locked})", {"table": table.address, "count": count})
    assert connection.run(taking) == count


def cut_sessions(connection: Connection, application_name: str = "%") -> None:
    """Terminate all other sessions of this database, or those with this application name."""
    connection.run(
        "select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = current_database()"
        " and pid <> pg_backend_pid() and application_name like %(name)s",
        {"name": application_name},
    )


def looking_as(role: str, connect: Callable[..., Connection], database: str) -> Connection:
    """A read-only session with the rights of ``role``."""
    looker = connect(database, read_only=True)
    looker.run(sql.SQL("set role {}").format(sql.Identifier(role)))
    return looker
