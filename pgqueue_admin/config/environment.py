"""What the environment says, and the embedded servers where it is silent. A variable set to nothing says nothing."""

import os
from email.utils import formataddr, parseaddr
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import environ
from django.core.mail.message import sanitize_address

from pgqueue_admin.dialects.postgresql.opening import LOOK_SECONDS, ON_THE_WIRE, started_with
from pgqueue_admin.embedded import state

ROOT = Path(__file__).resolve().parent.parent.parent
env = environ.Env()
VAR = Path(env("PGQUEUE_VAR", default="") or ROOT / "var").resolve()
STATE = state.read(VAR)

DATABASE_URL: str = env("DATABASE_URL", default="")
QUEUES_URL: str = env("QUEUES_URL", default="") or DATABASE_URL
# A database given by URL is somebody's production: only a queue database of our own is ever seeded or created.
EMBEDDED = not QUEUES_URL
# Which servers `manage.py up` starts, rather than uses.
OURS = {"console": not DATABASE_URL, "queues": not QUEUES_URL, "broker": not env("CELERY_BROKER_URL", default="")}
BROKER_URL: str = env("CELERY_BROKER_URL", default="") or STATE.broker_url
LISTEN: tuple[str, int] = (env("BIND", default="") or "127.0.0.1", int(env("PORT", default="") or 8000))
PUBLIC_URL: str = (env("PUBLIC_URL", default="") or f"http://127.0.0.1:{LISTEN[1]}").rstrip("/")
ON_LOOPBACK = not PUBLIC_URL.startswith("https://")


def database(url: str, name: str) -> dict[str, Any]:
    """A DATABASES entry for ``url``, or for the embedded server (which may not have been started yet).

    Who makes an address of it takes of the session settings those alone that the URL itself says: URL_OPTIONS.
    """
    parsed = environ.Env.db_url_config(url or STATE.dsn or "postgresql://pgqueue@127.0.0.1:1/pgqueue")
    if parsed.get("ENGINE") != "django.db.backends.postgresql":
        raise SystemExit(f"{name} must be postgresql://user:password@host:port/database; it is {url.split(':')[0]}://…")
    own = parsed.get("OPTIONS", {})
    said = own.get("options", "")
    options = {"connect_timeout": 5, **ON_THE_WIRE, **own, "options": started_with(said)}
    return {**parsed, "CONN_MAX_AGE": 0, "URL_OPTIONS": said, "OPTIONS": options}


def mail_server() -> dict[str, Any]:
    """What EMAIL_URL says, as Django's EMAIL settings; empty without one."""
    url: str = env("EMAIL_URL", default="")
    scheme = url.partition(":")[0]
    if url and scheme not in environ.Env.EMAIL_SCHEMES:
        raise SystemExit(f"EMAIL_URL must be smtp+tls://user:password@host:587 or smtp://host:25; it is {scheme}:…")
    return environ.Env.email_url_config(url) if url else {}


def for_looking(entry: dict[str, Any]) -> dict[str, Any]:
    """Through Django the queues are only looked at, and never for long a statement; acts use the source."""
    only = f"-c default_transaction_read_only=on -c statement_timeout={LOOK_SECONDS * 1000:.0f}"
    return {**entry, "OPTIONS": {**entry["OPTIONS"], "options": started_with(entry["URL_OPTIONS"], only)}}


def one_of(name: str, *words: str) -> str:
    """A variable that may be one of a few words, of which the first is meant without it."""
    said: str = env(name, default="") or words[0]
    if said not in words:
        raise SystemExit(f"{name} must be {' or '.join(words)}; it is {said}.")
    return said


def days(name: str, default: int) -> int:
    """How long something is kept."""
    said: str = env(name, default="").strip() or str(default)
    if not (said.isascii() and said.isdecimal()):
        raise SystemExit(f"{name} must be a number of days, or 0 for ever; it is {said}.")
    return int(said)


def seconds(name: str, default: float) -> float:
    """How often, or after how long."""
    said: str = env(name, default="") or str(default)
    try:
        found = float(said)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise SystemExit(f"{name} must be a number of seconds above 0; it is {said}.")
    return found


def zone(name: str) -> str:
    """One that this machine knows, as Europe/Berlin."""
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError):
        raise SystemExit(f"USUAL_ZONE must be a time zone such as Europe/Berlin; it is {name}.") from None


def listed(name: str, default: str = "") -> list[str]:
    """A comma-separated variable, without blanks and empty entries."""
    said = os.environ.get(name, "").strip() or default
    return [part.strip() for part in said.split(",") if part.strip()]


def addresses(name: str) -> list[str]:
    """Whom to mail. What Django cannot read when it sends would be found out by a warning that nobody gets."""
    said = listed(name)
    for each in said:
        try:
            sanitize_address(each, "utf-8")
        except ValueError:
            rule = f"{name} must be addresses separated by commas, such as ana@example.org,oncall@example.org"
            raise SystemExit(f"{rule}; it has {each}.") from None
    return said


def address(name: str, default: str) -> str:
    """One, with a name before it or without."""
    said: str = env(name, default="") or default
    try:
        sanitize_address(said, "utf-8")
        formataddr(parseaddr(said))
    except ValueError:
        raise SystemExit(
            f"{name} must be one address, such as pgqueue@example.org or Queues <pgqueue@example.org>; it is {said}."
        ) from None
    return said
