"""How sessions are opened: what the wire is told, and what a session starts with."""

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

LOOK_SECONDS = 5.0  # longer no statement of a page may take, nor all looks of one
LOCK_SECONDS = 1.0  # longer no look waits for a table that somebody has locked
# What a session that only looks starts with: a policy of a table's owner, which would run as who reads it, is refused.
# Constraint exclusion is at its default: with "on" the checks of a table would be asked, which may call functions of
# theirs. To compile a look takes longer than the look: half of the preview of a retry into ten thousand queues.
ONLY_LOOKING = "-c default_transaction_read_only=on -c row_security=off -c constraint_exclusion=partition -c jit=off"
# A wire that is cut without a word: the kernel alone would wait for a quarter of an hour.
ON_THE_WIRE: dict[str, Any] = {
    **{"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 15_000},
    "client_encoding": "UTF8",  # whatever the database has: headers are UTF-8 on the wire
}
# The same for the server, which would keep the session and all that it has locked for two hours.
_WIRE_OF_SERVER = (
    "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c tcp_user_timeout=15000"
)
# PostgreSQL prefers an exact match of types to the place in the path: whoever may create in a schema of it would have
# what he made there run by our statements. Tables of others are named in full.
OWN_PATH = "-c search_path=pg_catalog,pg_temp"
_MEANT = r"-c default_transaction_isolation=read\ committed"  # whatever a database has it at: others refuse receives


def started_with(said: str, *ours: str) -> str:
    """Options of a session. What the address says holds: of the server's wire against ours, else beside ours, which
    come last and win.
    """
    return " ".join(filter(None, [_WIRE_OF_SERVER, said, _MEANT, *ours]))


def primary_for_lookers(said: Mapping[str, Any]) -> dict[str, Any]:
    """Where a session that only looks goes, if its address says ``read-write``: that asks whether the session may
    write, which none of these may. ``primary`` asks the server.
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
    """Session settings, sent with the start-up packet: no extra round trip, and none forgotten on reconnect.

    Who may write says nothing of it: a role or database that is read-only by default was made so by somebody.
    """
    settings = ["-c timezone=UTC"] + [ONLY_LOOKING] * read_only + [OWN_PATH] * (not for_handlers)
    if statement_timeout is not None:
        limit = round(statement_timeout * 1000)  # also for a process that stops answering inside a transaction
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
    """The first parameter behind the ``?`` that libpq does not know; empty if it knows all of them.

    Where an ``@`` comes after it, what looks like parameters may be a password.
    """
    _, _, asked = url.partition("?")
    known = {each.keyword.decode() for each in psycopg.pq.Conninfo.get_defaults()}
    names = [] if "@" in asked else [name for name, _ in parse_qsl(asked, keep_blank_values=True)]
    return next((name for name in names if name not in known), "")


def said_by(dsn: str) -> dict[str, Any]:
    """What the address itself says. Raises UrlUnreadable: in the driver's own words its password may stand."""
    try:
        said = conninfo_to_dict(dsn)
    except psycopg.Error:
        raise UrlUnreadable from None
    if not all(port.isdigit() for port in str(said.get("port") or 0).split(",") if port):
        raise UrlUnreadable  # a password with a / in it: what is before that is read as the port
    if any("@" in host and host[0] not in "/@" for host in str(said.get("host") or "").split(",")):
        raise UrlUnreadable  # a password with an @ in it: what is behind that is read as the host
    return said


def address(said: Mapping[str, Any]) -> str:
    """The URL that says this, by libpq's names, which may be of several hosts: each with its own port, or all with one.

    Settings stand behind it as libpq reads them: a ``+`` is no blank there.
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
    """What the address itself says of these holds."""
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
