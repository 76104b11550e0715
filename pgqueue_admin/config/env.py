"""Reads configuration from environment variables, falling back to the embedded servers.

An empty variable is unset. A new variable is read in base_settings, by a parser from here.
"""

import hmac
import os
import re
import sys
from collections.abc import Collection
from email.utils import formataddr, parseaddr
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import environ
from django.core.mail.message import sanitize_address

from pgqueue_admin.dialects import dialect_for
from pgqueue_admin.dialects.database_alias import ALIAS
from pgqueue_admin.dialects.errors import DriverMissing, UrlUnreadable
from pgqueue_admin.dialects.postgresql import search_paths
from pgqueue_admin.dialects.postgresql.connect_options import (
    LOCK_SECONDS,
    LOOK_SECONDS,
    ON_THE_WIRE,
    ONLY_LOOKING,
    OWN_PATH,
    not_understood,
    primary_for_lookers,
    said_by,
    started_with,
)
from pgqueue_admin.embedded import state_file
from pgqueue_admin.formatting.fingerprint import is_prefix

env = environ.Env()
_PACKAGE = Path(__file__).resolve().parent.parent
# templates/ and static/ are at the top of a checkout; a wheel installs them in the package.
INSTALLED = (_PACKAGE / "templates").is_dir()
ROOT = _PACKAGE if INSTALLED else _PACKAGE.parent

COMMAND_LINE = "pgqueue-admin" if INSTALLED else ".venv/bin/python manage.py"


def _own_state() -> Path:
    """Default of PGQUEUE_STATE_DIR: var/ in the checkout, else the account's XDG state folder.

    Independent of the current folder: all programs of an installation have to agree on it.
    """
    if not INSTALLED:
        return ROOT / "var"
    said = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        return (said if said.is_absolute() else Path.home() / ".local" / "state") / "pgqueue-admin"
    except RuntimeError:
        raise SystemExit("PGQUEUE_STATE_DIR must name a folder: this account has no home.") from None


VAR = Path(env("PGQUEUE_STATE_DIR", default="") or _own_state()).resolve()
STATE = state_file.read(VAR)
# Former names of variables, to their present ones. A former name has no effect; `check` reports it.
RENAMED = {
    "ARCHIVE_DAYS": "PGQUEUE_ARCHIVE_RETENTION_DAYS",
    "HISTORY_DAYS": "PGQUEUE_HISTORY_RETENTION_DAYS",
    "HUNG_SECONDS": "PGQUEUE_LIVENESS_TIMEOUT_SECONDS",
    "PGQUEUE_VAR": "PGQUEUE_STATE_DIR",
    "TRENDS_HOUR_DAYS": "PGQUEUE_TRENDS_HOUR_RETENTION_DAYS",
    "TRENDS_MINUTE_DAYS": "PGQUEUE_TRENDS_MINUTE_RETENTION_DAYS",
    "USUAL_ZONE": "PGQUEUE_BASELINE_TIME_ZONE",
    **{
        name: f"PGQUEUE_{name}"
        for name in (
            "ALERT_TO", "ANSWER_SECONDS", "BIND", "CODE_VERSION", "EMAIL_FROM", "ENVIRONMENT_COLOUR", "HANDLER_APPS",
            "HISTORY_BODIES", "HISTORY_DIR", "HISTORY_URL", "INSTALL_HISTORY", "LOG_FORMAT", "LOG_LEVEL",
            "MASKED_HEADERS", "PG_BIN", "QUEUE_SCHEMAS", "SAMPLE_SECONDS",
        )
    },
}  # fmt: skip
CERTIFICATES = {"REQUIRED", "OPTIONAL", "NONE"}


def _program() -> str:
    """The command given to `manage.py` or Celery: `migrate`, `supervise`, `celery worker`; else the program's name."""
    file = Path(sys.argv[0])
    started = (file.parent if file.stem == "__main__" else file).stem
    words = [word for word in sys.argv[1:] if word.isidentifier()]
    if started in {"manage", "pgqueue-admin", "django", "django-admin", "child_bootstrap"}:
        return words[0] if words else started
    return f"celery {words[0]}" if started == "celery" and words else started


PROGRAM = _program()

DATABASE_URL: str = env("DATABASE_URL", default="")
QUEUES_URL: str = env("QUEUES_URL", default="") or DATABASE_URL
# A database given by URL may be production: only the embedded queue database is created and seeded.
EMBEDDED = not QUEUES_URL
# Servers that `manage.py up` starts itself.
OURS = {"console": not DATABASE_URL, "queues": not QUEUES_URL, "broker": not env("CELERY_BROKER_URL", default="")}


def _port() -> int:
    said: str = env("PORT", default="").strip() or "8000"
    if not (said.isascii() and said.isdecimal() and 0 < int(said) < 65_536):
        raise SystemExit(f"PORT must be a number from 1 to 65535; it is {said}.")
    return int(said)


LISTEN: tuple[str, int] = (env("PGQUEUE_BIND", default="") or "127.0.0.1", _port())
_LOOPBACK = "[::1]" if ":" in LISTEN[0] else "127.0.0.1"  # a server on :: does not accept IPv4
PUBLIC_URL: str = (env("PUBLIC_URL", default="") or f"http://{_LOOPBACK}:{LISTEN[1]}").rstrip("/")
_PUBLIC = re.compile(
    r"(?P<origin>https?://(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?)(?P<path>(?:/(?!\.{1,2}(?:/|$))[\w.~-]+)*)", re.A
)


def _public() -> tuple[str, str]:
    """Origin (scheme, host, port) and path prefix of PUBLIC_URL; the prefix is "/" by default, else e.g. "/queues/"."""
    if not (said := _PUBLIC.fullmatch(PUBLIC_URL)):
        raise SystemExit(f"PUBLIC_URL must be https://host or https://host:port/path; it is {PUBLIC_URL}.")
    return said["origin"], f"{said['path']}/"


ORIGIN, BELOW = _public()
_MEANT = {
    "schema": "which schemas are looked at, PGQUEUE_QUEUE_SCHEMAS says",
    "pgbouncer": "sessions have to be one's own: not those of a pooler in transaction mode",
    "ssl": "it is sslmode=verify-full, or sslmode=require for no certificate",
}
_DATABASE = "postgresql://user:password@host:port/database"
_SQL_SERVER = "mssql://user:password@host:1433/catalog, behind which ?ca= or ?trust_server_certificate=yes may stand"
ON_LOOPBACK = not PUBLIC_URL.startswith("https://")


def installation(secret_key: str, public_url: str) -> str:
    """Identifier of an installation, the same in all its processes: two consoles on one host keep names apart by it."""
    return hmac.digest(secret_key.encode(), f"installation {public_url}".encode(), "sha256").hex()[:8]


def unreadable(name: str, form: str, url: str) -> SystemExit:
    """The error for an invalid URL. It shows only the scheme: any other part may belong to the password."""
    scheme, is_url, _ = url.partition("://")
    known = f"it is {scheme}://…" if is_url and scheme.replace("+", "").isalnum() else "it is no URL"
    return SystemExit(f"{name} must be {form}, with %25 for each % in a part, %40 for @ and %2F for /; {known}.")


def database(url: str, name: str) -> dict[str, Any]:
    """A DATABASES entry for ``url``, or for the embedded server (which may not have been started yet).

    URL_OPTIONS and URL_TARGET hold the session settings that the URL itself gives. A DSN made from the entry uses
    only those; a read-only session derives its own target_session_attrs.
    """
    _refuse_parameters(url, name)
    asked = url or STATE.dsn or "postgresql://pgqueue@127.0.0.1:1/pgqueue"
    try:
        if environ.Env.DB_SCHEMES.get(asked.partition("://")[0]) != "django.db.backends.postgresql":
            raise ValueError
        parsed = environ.Env.db_url_config(asked)
    except ValueError:
        raise unreadable(name, _DATABASE, url) from None
    # as libpq writes them: an IPv6 address in brackets, a socket folder as %2Frun
    parsed["HOST"] = unquote(parsed["HOST"]).replace("[", "").replace("]", "")
    own = parsed.get("OPTIONS", {})
    said = own.get("options", "")
    options = {"connect_timeout": 5, **ON_THE_WIRE, **own, "options": started_with(said)}
    from_url = {"URL_OPTIONS": said, "URL_TARGET": own.get("target_session_attrs", "")}
    engine = {"ENGINE": "pgqueue_admin.models.db_backend", "CONN_MAX_AGE": 0}
    return {**parsed, **engine, **from_url, "OPTIONS": options}


def _refuse_parameters(url: str, name: str) -> None:
    """Refuse parameters of other drivers: libpq would fail each connection, saying only that the URL is wrong."""
    if unknown := not_understood(url):
        meant = _MEANT.get(unknown, "libpq's documentation lists those that it has")
        raise SystemExit(f"{name} must be a URL that libpq understands: it knows no parameter “{unknown}”; {meant}.")


def looked_at() -> dict[str, dict[str, Any]]:
    """Databases monitored beside QUEUES_URL, by alias, each with URL, schemas and whether it is writable.

    Variables, e.g. for the alias billing: QUEUES_URL_BILLING; PGQUEUE_QUEUE_SCHEMAS_BILLING, by default the dialect's
    default schema; PGQUEUE_WRITABLE_BILLING, which allows retrying dead messages into it and emptying its error queues.
    """
    found = {}
    schemas_there, writable = named("PGQUEUE_QUEUE_SCHEMAS_"), named("PGQUEUE_WRITABLE_")
    for prefix, given in (("PGQUEUE_QUEUE_SCHEMAS_", schemas_there), ("PGQUEUE_WRITABLE_", writable)):
        if lost := sorted(given.keys() - named("QUEUES_URL_").keys()):
            name = lost[0].upper()
            raise SystemExit(f"{prefix}{name} is of no database: there is no QUEUES_URL_{name}.")
    for alias, url in named("QUEUES_URL_").items():
        name = f"QUEUES_URL_{alias.upper()}"
        if not ALIAS.fullmatch(alias):
            raise SystemExit(f"{name}: an alias is a letter, then at most 29 letters, digits and underscores.")
        default = _schema_of_sql_server(url, name) if url.startswith("mssql://") else _schema_of_postgresql(url, name)
        said = schemas_there.get(alias, default)
        found[alias] = {
            "URL": url,
            "SCHEMAS": _schemas_of(f"PGQUEUE_QUEUE_SCHEMAS_{alias.upper()}", said),
            "WRITABLE": _yes(f"PGQUEUE_WRITABLE_{alias.upper()}", writable.get(alias, "no")),
        }
    return found


def _yes(name: str, said: str) -> bool:
    """Parse yes or no. Any other word is an error: it may have been meant as no."""
    if said.strip() not in ("yes", "no"):
        raise SystemExit(f"{name} must be yes or no; it is {said.strip()}.")
    return said.strip() == "yes"


def _schema_of_postgresql(url: str, name: str) -> str:
    _refuse_parameters(url, name)
    try:
        if not url.startswith(("postgresql://", "postgres://")):
            raise UrlUnreadable
        said_by(url)
    except UrlUnreadable:
        raise unreadable(name, f"{_DATABASE} or {_SQL_SERVER}", url) from None
    return "public"


def _schema_of_sql_server(url: str, name: str) -> str:
    """Default schema of the URL's dialect. The dialect's own error is hidden: it may show a part of the password."""
    try:
        return dialect_for(url).default_schema
    except DriverMissing as error:
        raise SystemExit(f"{name}: {error}") from None
    except ValueError:
        raise unreadable(name, _SQL_SERVER, url) from None


def _schemas_of(name: str, said: str) -> list[str]:
    found = _parts(said)
    if catalog := next((each for each in found if each.startswith("[")), ""):
        raise SystemExit(f"{name}: {catalog} is no schema. Another catalog has a QUEUES_URL_ of its own.")
    return found


def schemas(default: str, aliases: Collection[str]) -> list[str]:
    """Schemas of QUEUES_URL. One written ``alias:schema`` is refused: it would be read as a schema of that alias."""
    found = listed("PGQUEUE_QUEUE_SCHEMAS", default)
    for each in found:
        if each.partition(":")[0] in aliases and ":" in each:
            raise SystemExit(f"The schema {each} in PGQUEUE_QUEUE_SCHEMAS reads as one of QUEUES_URL_… by that name.")
    return found


def standby(name: str) -> str:
    """URL of the database that history is read from, for libpq; empty if unset."""
    url: str = env(name, default="")
    _refuse_parameters(url, name)
    try:
        if url and not url.startswith(("postgresql://", "postgres://")):
            raise UrlUnreadable
        said_by(url)
    except UrlUnreadable:
        raise unreadable(name, _DATABASE, url) from None
    return url


def broker(name: str) -> str:
    """Broker URL, or several separated by semicolons; by default that of `make run`."""
    url: str = env(name, default="")
    for each in url.split(";") if url else []:
        try:
            if not urlsplit(each).scheme or "://" not in each:
                raise ValueError
            _ = urlsplit(each).port
        except ValueError:
            raise unreadable(name, "redis://:password@host:port/0", url) from None
    return ";".join(map(_verified, url.split(";"))) if url else STATE.broker_url


def _verified(url: str) -> str:
    """Require certificate verification: with plain ``rediss://`` kombu accepts any certificate."""
    if not url.startswith("rediss://"):
        return url
    parts = urlsplit(url)
    (said,) = parse_qs(parts.query).get("ssl_cert_reqs", [""])[:1]
    if said and said.upper().removeprefix("CERT_") not in CERTIFICATES:
        raise SystemExit(f"ssl_cert_reqs in CELERY_BROKER_URL must be required, optional or none; it is {said}.")
    return url if said else parts._replace(query=f"{parts.query}&ssl_cert_reqs=required".lstrip("&")).geturl()


def broker_tls(url: str) -> dict[str, Any] | None:
    """TLS options that make ``amqps://`` check the host name of the certificate: its URL cannot say so.

    Not for several hosts: kombu applies the first host's name to all. Their certificates are verified, not their names.
    """
    return {"server_hostname": None} if url.startswith("amqps://") and ";" not in url else None


def mail_server() -> dict[str, Any]:
    """Django's EMAIL settings from EMAIL_URL; empty if unset."""
    url: str = env("EMAIL_URL", default="")
    try:
        if url and url.partition("://")[0] not in environ.Env.EMAIL_SCHEMES:
            raise ValueError
        return environ.Env.email_url_config(url) if url else {}
    except ValueError:
        raise unreadable("EMAIL_URL", "smtp+tls://user:password@host:587 or smtp://host:25", url) from None


_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_FULL_NAME = re.compile(rf"(?=.{{4,253}}$)(?:{_LABEL}\.)+(?=[a-z0-9-]*[a-z]){_LABEL}", re.IGNORECASE | re.ASCII)
_LITERAL = re.compile(r"\[(?:\d{1,3}(?:\.\d{1,3}){3}|IPv6:[0-9a-fA-F:.]+)\]", re.A)


def greeting(sender: str) -> str:
    """Name for SMTP EHLO: a full host name, which strict servers demand; empty: our address in brackets."""
    said: str = env("PGQUEUE_EMAIL_HELO", default="").strip()
    if said and not (_FULL_NAME.fullmatch(said) or _LITERAL.fullmatch(said)):
        form = "a full host name such as queues.example.org, or an address such as [192.0.2.1]"
        raise SystemExit(f"PGQUEUE_EMAIL_HELO must be {form}; it is {said}.")
    known = (urlsplit(PUBLIC_URL).hostname or "", parseaddr(sender)[1].rpartition("@")[2])
    return said or next((name for each in known if (name := _ascii(each))), "")


def _ascii(name: str) -> str:
    """The name in its IDNA form; empty if it is no full host name, e.g. an IP address or localhost."""
    try:
        spelt = name.encode("idna").decode()
    except UnicodeError:
        return ""
    return spelt if _FULL_NAME.fullmatch(spelt) else ""


def for_looking(entry: dict[str, Any]) -> dict[str, Any]:
    """Make Django's sessions on the queue database read-only, with short timeouts; acts use sessions of their own."""
    limits = f"{_at_most(LOOK_SECONDS)} -c lock_timeout={LOCK_SECONDS * 1000:.0f}"
    begun = _beginning_with(entry, f"{ONLY_LOOKING} {limits} {OWN_PATH}")
    whereto = primary_for_lookers(entry["OPTIONS"])
    return {**begun, "OPTIONS": {**begun["OPTIONS"], **whereto, "application_name": "pgqueue-admin models"}}


def for_console(entry: dict[str, Any]) -> dict[str, Any]:
    """Pin search_path to schemas where no other role may create objects, whatever the URL sets."""
    return called(PROGRAM, _beginning_with(entry, "-c search_path=" + search_paths.CONSOLE.replace(" ", r"\ ")))


def called(program: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Set application_name, so that database administrators can tell whose sessions these are."""
    return {**entry, "OPTIONS": {**entry["OPTIONS"], "application_name": f"pgqueue-admin {program}"}}


def limited(entry: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Set statement_timeout, unless the URL sets it. Not for migrations or history, which may take hours."""
    said = entry.get("URL_OPTIONS", "")
    return entry if "statement_timeout" in said else _beginning_with(entry, _at_most(seconds))


def _at_most(seconds: float) -> str:
    return f"-c statement_timeout={seconds * 1000:.0f}"


def _beginning_with(entry: dict[str, Any], ours: str) -> dict[str, Any]:
    """Append session settings: the last one wins."""
    return {**entry, "OPTIONS": {**entry["OPTIONS"], "options": f"{entry['OPTIONS'].get('options', '')} {ours}"}}


def one_of(name: str, *words: str) -> str:
    """Read a variable that is one of ``words``; the first is the default."""
    said: str = env(name, default="") or words[0]
    if said not in words:
        raise SystemExit(f"{name} must be {' or '.join(words)}; it is {said}.")
    return said


def days(name: str, default: int) -> int:
    """Read a retention time in days; 0 means for ever."""
    said: str = env(name, default="").strip() or str(default)
    if not (said.isascii() and said.isdecimal()):
        raise SystemExit(f"{name} must be a number of days, or 0 for ever; it is {said}.")
    return int(said)


def above_zero(name: str, default: int, unit: str) -> int:
    said: str = env(name, default="").strip() or str(default)
    if not (said.isascii() and said.isdecimal() and len(said) < 7 and int(said)):
        raise SystemExit(f"{name} must be a number of {unit} above 0; it is {said}.")
    return int(said)


def seconds(name: str, default: float, or_never: bool = False) -> float:
    """Read an interval or timeout in seconds; ``or_never`` allows 0."""
    said: str = env(name, default="") or str(default)
    try:
        found = float(said)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf") or not (found or or_never):
        meant = "a number of seconds, or 0 for never" if or_never else "a number of seconds above 0"
        raise SystemExit(f"{name} must be {meant}; it is {said}.")
    return found


def memory(name: str, least: int) -> str:
    """Read a memory size in Java's form, e.g. 512m or 2g. ``least``, in MB, is the minimum and the default."""
    said: str = env(name, default="").strip().lower() or f"{least}m"
    number, unit = said[:-1], said[-1:]
    if not (
        number.isascii() and number.isdecimal() and unit in "mg" and int(number) * (1024 if unit == "g" else 1) >= least
    ):
        raise SystemExit(f"{name} must be MB or GB of memory, such as 1g, and {least}m at least; it is {said}.")
    return said


def zone(name: str) -> str:
    """Check the name of a time zone, e.g. Europe/Berlin, against this machine's zones."""
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError):
        raise SystemExit(
            f"PGQUEUE_BASELINE_TIME_ZONE must be a time zone such as Europe/Berlin; it is {name}."
        ) from None


def listed(name: str, default: str = "") -> list[str]:
    """Read a comma-separated variable, without blanks and empty entries."""
    return _parts(os.environ.get(name, "").strip() or default)


def _parts(said: str) -> list[str]:
    return [part.strip() for part in said.split(",") if part.strip()]


def named(prefix: str) -> dict[str, str]:
    """Variables with this prefix, by the rest of their names in lower case; empty ones count as unset."""
    return {
        name.removeprefix(prefix).lower(): said
        for name, said in sorted(os.environ.items())
        if name.startswith(prefix) and said.strip()
    }


def own_code(name: str) -> tuple[str, ...]:
    """Read comma-separated prefixes of namespaces and modules."""
    said = tuple(listed(name))
    if wrong := next((each for each in said if not is_prefix(each)), ""):
        raise SystemExit(f"{name} must be beginnings of namespaces or modules, such as Shop.Billing; one is {wrong}.")
    return said


def addresses(name: str) -> list[str]:
    """Read mail recipients. Checked now: Django would fail only when sending, and that warning would reach nobody."""
    said = listed(name)
    for each in said:
        try:
            sanitize_address(each, "utf-8")
        except ValueError:
            rule = f"{name} must be addresses separated by commas, such as ana@example.org,oncall@example.org"
            raise SystemExit(f"{rule}; it has {each}.") from None
    return said


def address(name: str, default: str) -> str:
    """Read one mail address, with or without a display name."""
    said: str = env(name, default="") or default
    try:
        sanitize_address(said, "utf-8")
        formataddr(parseaddr(said))
    except ValueError:
        raise SystemExit(
            f"{name} must be one address, such as pgqueue@example.org or Queues <pgqueue@example.org>; it is {said}."
        ) from None
    return said
