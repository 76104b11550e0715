"""Opens sessions: TCP options and initial session settings."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import namedtuple_row

from pgqueue_admin.dialects.errors import UrlUnreadable
from pgqueue_admin.dialects.postgresql import answer_limit, encodings, liveness, session_settings
from pgqueue_admin.dialects.postgresql.answer_limit import PatientConnection
from pgqueue_admin.dialects.postgresql.session import translated

LOOK_SECONDS = 5.0  # time limit for each statement of a page, and for all its queries together
LOCK_SECONDS = 1.0  # lock timeout of monitoring queries
# Initial settings of read-only sessions. Row policies are refused: the owner's policy would run with the reader's
# rights. Constraint exclusion is the default: "on" would evaluate a table's checks, which may call the owner's
# functions. JIT is off: compiling takes longer than the query, half of a preview of a retry into ten thousand queues.
ONLY_LOOKING = "-c default_transaction_read_only=on -c row_security=off -c constraint_exclusion=partition -c jit=off"
# Detects a silently lost connection: by default, the kernel would wait for a quarter of an hour.
ON_THE_WIRE: dict[str, Any] = {
    **{"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 15_000},
    "client_encoding": "UTF8",  # whatever the database has: headers are UTF-8 on the wire
}
# The same on the server, which would keep the session and its locks for two hours.
_WIRE_OF_SERVER = (
    "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c tcp_user_timeout=15000"
)
# PostgreSQL prefers an exact match of types to the order of the path: anyone who can create functions in a schema of
# the path could run code in our statements. We qualify other tables.
OWN_PATH = "-c search_path=pg_catalog,pg_temp"
_MEANT = r"-c default_transaction_isolation=read\ committed"  # whatever the database's default: others fail receives


def started_with(said: str, *ours: str) -> str:
    """Options of a session. Those of the DSN override our TCP settings of the server; ``ours`` come last and override
    the DSN.
    """
    return " ".join(filter(None, [_WIRE_OF_SERVER, said, _MEANT, *ours]))


def primary_for_lookers(said: Mapping[str, Any]) -> dict[str, Any]:
    """Replace ``read-write`` by ``primary`` for a read-only session: ``read-write`` tests whether the session can
    write, which this one cannot; ``primary`` tests the server.
    """
    asks_to_write = said.get("target_session_attrs") == "read-write"
    return {"target_session_attrs": "primary"} if asks_to_write else {}


def options(
    dsn: str,
    application_name: str,
    read_only: bool,
    statement_timeout: float | None,
    lock_timeout: float | None = None,
    for_handlers: bool = False,
) -> dict[str, Any]:
    """Session settings, sent with the start-up packet: no extra round trip, and none lost on reconnect.

    A session that may write leaves the read-only default alone: an administrator may have set it on role or database.
    """
    settings = ["-c timezone=UTC"] + [ONLY_LOOKING] * read_only + [OWN_PATH] * (not for_handlers)
    if statement_timeout is not None:
        limit = round(statement_timeout * 1000)  # the second one covers a process that hangs inside a transaction
        settings += [f"-c statement_timeout={limit}", f"-c idle_in_transaction_session_timeout={limit}"]
    if lock_timeout is not None:
        settings.append(f"-c lock_timeout={round(lock_timeout * 1000)}")
    said = said_by(dsn)
    whereto = primary_for_lookers(said) if read_only else {}
    return {
        "options": started_with(said.get("options") or "", *settings),
        "application_name": application_name,
        **whereto,
    }


def not_understood(url: str) -> str:
    """The first parameter after the ``?`` that libpq does not know; empty if it knows all.

    Empty also if an ``@`` follows the ``?``: the seeming parameters may be part of a password.
    """
    _, _, asked = url.partition("?")
    known = {each.keyword.decode() for each in psycopg.pq.Conninfo.get_defaults()}
    names = [] if "@" in asked else [name for name, _ in parse_qsl(asked, keep_blank_values=True)]
    return next((name for name in names if name not in known), "")


def said_by(dsn: str) -> dict[str, Any]:
    """Parse the DSN. Raises UrlUnreadable instead of the driver's error, which may show the password."""
    try:
        said = conninfo_to_dict(dsn)
    except psycopg.Error:
        raise UrlUnreadable from None
    if not all(port.isdigit() for port in str(said.get("port") or 0).split(",") if port):
        raise UrlUnreadable  # a password with / in it: the part before it was parsed as the port
    if any("@" in host and host[0] not in "/@" for host in str(said.get("host") or "").split(",")):
        raise UrlUnreadable  # a password with @ in it: the part after it was parsed as the host
    return said


def address(said: Mapping[str, Any]) -> str:
    """Make a URL of libpq's parameters. Several hosts have a port each, or share one.

    Parameters are encoded for libpq, which does not read a ``+`` as a blank.
    """
    more = {name: value for name, value in said.items() if value not in ("", None)}
    user, password, hosts, ports, name = (
        str(more.pop(each, "")) for each in ("user", "password", "host", "port", "dbname")
    )
    person = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    every = ports.split(",") if "," in ports else [ports] * (hosts.count(",") + 1)
    places = ",".join(map(_place, hosts.split(","), every))
    asked = f"?{urlencode(more, quote_via=quote)}" if more else ""
    return f"postgresql://{person}{'@' if person else ''}{places}/{quote(name, safe='')}{asked}"


def _place(host: str, port: str) -> str:
    quoted = quote(host, safe=":")
    return (f"[{quoted}]" if ":" in host else quoted) + (f":{port}" if port else "")


def on_the_wire(dsn: str) -> dict[str, Any]:
    """Our TCP options, except those set in the DSN."""
    said = said_by(dsn)
    return {name: value for name, value in ON_THE_WIRE.items() if name not in said}


def open_raw(
    dsn: str,
    *,
    application_name: str = "pgqueue-admin",
    read_only: bool = False,
    statement_timeout: float | None = None,
    connect_timeout: float = 5,
    prepared_statements: int = 100,
    fail_fast: bool = False,
    for_handlers: bool = False,
    answer_seconds: float | None = None,
) -> PatientConnection:
    with translated:
        raw = PatientConnection.connect(
            dsn,
            autocommit=True,
            row_factory=namedtuple_row,
            connect_timeout=max(2, round(connect_timeout)),  # libpq rounds 1 up to 2
            **on_the_wire(dsn),
            **options(dsn, application_name, read_only, statement_timeout, for_handlers=for_handlers),
        )
        answer_limit.limit(raw, answer_seconds)
        encodings.fit(session_settings.fit(liveness.first(raw) if fail_fast else raw))
        begun = session_settings.anew if for_handlers else session_settings.alone
        begun(raw)
        if read_only:
            session_settings.only_looking(raw)
    raw.prepared_max = prepared_statements
    return raw
