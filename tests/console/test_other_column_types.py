"""Queue tables of other programs with other column types are counted, and read only where that works."""

import json
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import LatestSample
from pgqueue_admin.transport.wire import headers as h
from tests.console.pages import Connect, shown
from tests.console.sampled import sample

ROW = {"id": "gen_random_uuid()", "expires": "now()", "headers": "%(headers)s", "body": "'x'", "seq": "7"}
TYPES = {"id": "uuid", "expires": "timestamp", "headers": "text", "body": "bytea", "seq": "integer"}


@pytest.fixture
def root(console_database: str) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def made(connection: Connection, column: str, kind: str, value: str) -> str:
    """Create table Theirs with this column's type; return the row's id."""
    columns = ", ".join(f"{name} {kind if name == column else of}" for name, of in TYPES.items())
    connection.run(f'create table "Theirs" ({columns}, primary key (id), unique (seq))')
    values = ", ".join(value if name == column else given for name, given in ROW.items())
    said = {"headers": json.dumps({h.MESSAGE_ID: "m"})}
    return str(connection.value(f'insert into "Theirs" values ({values}) returning id::text', said))


@pytest.mark.parametrize(
    ("column", "kind", "value"),
    [
        ("id", "text", "'x'"),
        ("id", "bigint", "5"),
        ("expires", "timestamptz", "now()"),
        ("expires", "date", "now()"),
        ("body", "text", "'x'"),
        ("body", "jsonb", "'{}'"),
        ("seq", "text", "'x'"),
        ("seq", "numeric", "12345678901234567890123.5"),
        ("headers", "jsonb", "%(headers)s"),
    ],
)
def test_table_with_other_column_types_lists_no_messages(
    root: Client, console_database: str, connect: Connect, column: str, kind: str, value: str
) -> None:
    row = made(connect(console_database), column, kind, value)
    sample()
    asked = ["", "?order=newest", "?q=is:expired", "?q=seq:>5", "?cols=bodyline"]
    for page in (f"/queues/public/Theirs/messages/{each}" for each in asked):
        said = shown(root, page)
        assert "Theirs holds no messages to browse" in said
        assert f"but {column} is {kind}".replace("timestamptz", "timestamp with time zone") in said
    shown(root, "/queues/public/Theirs/")
    assert f"but {column} is" in shown(root, "/queues/public/Theirs/ends/")
    row_id = row if len(row) == 36 else UUID(int=7)
    for page in ("", "body/"):
        assert root.get(f"/queues/public/Theirs/messages/{row_id}/{page}").status_code == 404
    assert "Queues without a key: Theirs." in root.get(f"/messages/{row_id}/").content.decode()


@pytest.mark.parametrize(("column", "kind"), [("headers", "varchar(5000)"), ("seq", "smallint")])
def test_table_with_compatible_column_types_lists_its_messages(
    root: Client, console_database: str, connect: Connect, column: str, kind: str
) -> None:
    row = made(connect(console_database), column, kind, ROW[column])
    assert row in shown(root, "/queues/public/Theirs/messages/")
    shown(root, f"/queues/public/Theirs/messages/{row}/")


def test_table_with_other_column_types_is_counted(console_database: str, connect: Connect) -> None:
    made(connect(console_database), "expires", "timestamptz", "now()")
    sample()
    assert LatestSample.objects.get().depth == 1
