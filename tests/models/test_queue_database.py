"""Options in the URL of the queues hold for its sessions, beside the console's own."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connections
from psycopg.conninfo import conninfo_to_dict

from pgqueue_admin.config import env
from pgqueue_admin.console.settings.inventory import without_password
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import connect_options
from pgqueue_admin.dialects.postgresql.connect_options import said_by
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.history.sources.read_sessions import for_looking
from pgqueue_admin.models.queue_database import console_dsn, queue_database
from tests.console.sampled import elsewhere
from tests.history.standby import following, there


def test_options_of_the_url_are_honoured_and_ours_win(console_database: str) -> None:
    said = quote("-c work_mem=7MB -c timezone=Asia/Tokyo -c statement_timeout=1")
    entry = env.for_looking(env.database(f"{console_database}?options={said}", "QUEUES_URL"))
    assert "default_transaction_read_only=on" in entry["OPTIONS"]["options"], "Django's own sessions only look"
    shown = {}
    with elsewhere("queues", **entry):
        for name, session in (
            ("reading", queue_database().read_session()),
            ("writing", queue_database().write_session()),
        ):
            with session as connection:
                asked = ("work_mem", "timezone", "statement_timeout", "default_transaction_read_only")
                shown[name] = [connection.value(f"show {each}") for each in asked]
    assert shown == {"reading": ["7MB", "UTC", "5s", "on"], "writing": ["7MB", "UTC", "5min", "off"]}


def test_url_that_requires_a_primary_opens_read_only_sessions(
    server: PostgreSQL, console_database: str, connect: Callable[[str], Connection]
) -> None:
    """Read sessions write nothing, so a standby must not refuse them. This test uses a real standby."""
    with following(server) as follower:
        url = connect_options.address(_behind(there(follower, console_database), console_database))
        found = {}
        with elsewhere("queues", **env.for_looking(env.database(url, "QUEUES_URL"))):
            for name, session in (
                ("reading", queue_database().read_session()),
                ("writing", queue_database().write_session()),
            ):
                with session as connection:
                    found[name] = _seen(connection.value)
            with connections["queues"].cursor() as cursor:
                found["django"] = _seen(lambda query: (cursor.execute(query), cursor.fetchone()[0])[1])
            assert said_by(queue_database().dsn)["target_session_attrs"] == "read-write", (
                "whoever writes asks as the URL does"
            )
            addresses = {"history": for_looking(queue_database().dsn), "a standby's": for_looking(url)}
        for name, dsn in addresses.items():
            with connect(dsn) as connection:
                found[name] = _seen(connection.value)
    looks = (False, "on")
    assert found == {**dict.fromkeys(("reading", "django", *addresses), looks), "writing": (False, "off")}


def _behind(first: str, second: str) -> dict[str, Any]:
    said, other = said_by(first), said_by(second)
    both = {name: f"{said[name]},{other[name]}" for name in ("host", "port")}
    return {**other, **both, "target_session_attrs": "read-write"}


def _seen(value: Callable[[str], Any]) -> tuple[bool, str]:
    return value("select pg_is_in_recovery()"), value("show transaction_read_only")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@[::1]:5432/db",
        "postgresql://u:p@[2001:db8::1]/db",
        "postgresql://u@[fe80::1%25eth0]:5432/db",
        "postgresql://u:p@h1:5432,h2:5433/db?target_session_attrs=read-write",
        "postgresql://u:p@[::1]:5432,h2:5433/db",
        "postgresql://u:p@[::1]:5432,[::2]:5433/db",
        "postgresql://u:p%40s%2F%3F%23%25%3A@h/db",
        "postgresql://u%40corp:p%C3%A4ss+word@h/d%20b",
        "postgresql:///db?host=/var/run/postgresql",
        "postgresql://%2Fvar%2Frun%2Fpostgresql/db",
        "postgresql://u@h/db?sslmode=verify-full&sslrootcert=/a/b%20c.pem&passfile=/etc/pg%2Bpass",
        "postgresql://u@h:5432/db?sslmode=disable&options=-c%20search_path%3Dapp",
    ],
)
def test_everybody_goes_where_the_url_says(url: str) -> None:
    said = conninfo_to_dict(url)
    place = {name: value for name, value in said.items() if name in ("host", "port", "user", "password", "dbname")}
    with elsewhere("default", **env.database(url, "DATABASE_URL")):
        django = {name: str(value) for name, value in connections["default"].get_connection_params().items()}
        assert place.items() <= django.items()
        assert said.items() <= conninfo_to_dict(console_dsn()).items()
        assert place.items() <= conninfo_to_dict(for_looking(console_dsn())).items(), "history's driver"
        assert f":{quote(str(said.get('password')))}@" not in without_password(console_dsn())
    assert place.items() <= conninfo_to_dict(for_looking(url)).items(), "a standby's URL is taken as it was given"


@pytest.mark.parametrize(("port", "ports"), [("", {}), ("5433", {"port": "5433,5433"})])
def test_several_hosts_may_have_one_port_or_none(port: str, ports: dict[str, str]) -> None:
    entry = {**env.database("postgresql://u@h1,h2/db", "DATABASE_URL"), "PORT": port}
    with elsewhere("default", **entry):
        said = conninfo_to_dict(console_dsn())
    assert {name: said[name] for name in ("host", "port") if said.get(name, ",") != ","} == {"host": "h1,h2", **ports}


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://u:p@[::1]:5432/db?sslmode=disable", "postgresql://u@[::1]:5432/db"),
        ("postgresql://u:p@h1:5432,h2:5433/db", "postgresql://u@h1:5432,h2:5433/db"),
        ("postgresql:///db?host=/var/run/postgresql", "postgresql://local socket/db"),
        ("postgresql:///db", "postgresql://local socket/db"),
    ],
)
def test_settings_show_where_a_server_is(dsn: str, shown: str) -> None:
    assert without_password(dsn) == shown
