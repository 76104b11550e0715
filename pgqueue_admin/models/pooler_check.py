"""Whether database addresses lead to sessions of their own, as locks, LISTEN and settings need, or to a pooler."""

from concurrent.futures import ThreadPoolExecutor

from django.conf import settings

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models.queue_database import console_dsn, looked_at, queue_database


def refusals(aliases: list[str]) -> list[str]:
    """A sentence for each pooled database, except embedded ones and those that do not answer.

    ``aliases``: Django's, and ``history``, the URL that history is read from. ``queues`` includes monitored databases.
    """
    asked = _asked(aliases)
    with ThreadPoolExecutor(max(1, len(asked))) as pool:  # a database that does not answer takes until its timeout
        shared = pool.map(_is_shared, asked)
        return [sentence(name) for name, is_shared in zip(asked.values(), shared, strict=True) if is_shared]


def insist(*beside: str, refusal: type[BaseException] = SystemExit) -> None:
    """Raises ``refusal``. Does not wait for a database that is down: pages report it, programs wait for it themselves.

    ``beside``: aliases beside Django's own.
    """
    if said := refusals(["default", "queues", *beside]):
        raise refusal(" ".join(said))


def _asked(aliases: list[str]) -> dict[str, str]:
    """DSN to environment variable, for the databases to check."""
    named = {"default": ("DATABASE_URL", console_dsn()), "queues": ("QUEUES_URL", queue_database().dsn)}
    asked = {dsn: name for alias, (name, dsn) in reversed(named.items()) if alias in aliases and not _is_ours(alias)}
    others = {each.dsn: f"QUEUES_URL_{each.alias.upper()}" for each in looked_at() if each.dialect.supports_notify}
    history = settings.PGQUEUE["HISTORY_URL"]
    return {
        **({history: "PGQUEUE_HISTORY_URL"} if history and "history" in aliases else {}),
        **(others if "queues" in aliases else {}),
        **asked,
    }


def _is_shared(dsn: str) -> bool:
    try:
        return postgresql().shares_sessions(dsn)
    except DatabaseError:
        return False


def sentence(name: str) -> str:
    return (
        f"{name} leads to a pooler in transaction mode, where sessions are not one's own: locks, LISTEN and session"
        " settings do not hold there. Use its session mode, or the server's own port."
    )


def _is_ours(alias: str) -> bool:
    return bool(settings.PGQUEUE["OURS"]["console" if alias == "default" else alias])
