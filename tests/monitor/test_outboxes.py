"""Reading a foreign outbox table runs no code of its owner."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import outboxes

TABLE = Address("public", "Mallory_OutboxData")
MAKER = """create sequence public.ran; grant all on sequence public.ran to public;
grant create on schema public to mallory;
alter table "Mallory_OutboxData" owner to mallory"""
TYPE = """create type public.flag as (is_set boolean);
create function public.as_boolean(public.flag) returns boolean language plpgsql as
    'begin perform pg_catalog.nextval(''public.ran''); return false; end';
create cast (public.flag as boolean) with function public.as_boolean(public.flag) as implicit;
alter table "Mallory_OutboxData" alter column "Dispatched" drop default,
    alter column "Dispatched" type public.flag using row("Dispatched")::public.flag;
create index on "Mallory_OutboxData" ("Dispatched");
insert into "Mallory_OutboxData" ("MessageId", "Dispatched", "Operations") values ('one', row(false), '[]')"""
INDEX = """create function public.one() returns integer immutable language plpgsql as
    'begin perform pg_catalog.nextval(''public.ran''); return 1; end';
create index on "Mallory_OutboxData" (("MessageId" || public.one()::text)) where public.one() = 1"""


@pytest.fixture
def mallory(connection: Connection, database: str) -> Iterator[str]:
    """The address of a role that may create anything in public."""
    connection.run("create role mallory login password 'mallory'")
    at = urlsplit(database)
    yield at._replace(netloc=f"mallory:mallory@{at.hostname}:{at.port}").geturl()
    connection.run("drop owned by mallory cascade; drop role mallory")


@pytest.mark.parametrize(("trap", "seen"), [(TYPE, []), (INDEX, [True])], ids=["type", "index"])
def test_a_look_runs_nothing_of_its_owners(mallory: str, connection: Connection, trap: str, seen: list[bool]) -> None:
    postgresql().outbox_store(TABLE).create(connection)
    for statement in MAKER.split(";"):
        connection.run(statement)
    with psycopg.connect(mallory, autocommit=True) as raw:
        for statement in trap.split(";\n"):
            raw.execute(statement)
    ran = connection.value("select last_value from ran"), connection.value("select is_called from ran")
    unread = [outboxes.measure(connection, table).unread for table in outboxes.find(connection, [])]
    assert ["of somebody's" in each for each in unread] == seen, "of another type it is no outbox"
    assert (connection.value("select last_value from ran"), connection.value("select is_called from ran")) == ran
