"""Permissions: every act checks them here, on the server, and gets a sentence if refused."""

from typing import Any, NamedTuple

from pgqueue_admin.models import Operation, database_role

PERMISSIONS = {
    "retry": "pgqueue.retry_message",
    "try": "pgqueue.retry_message",
    "discard": "pgqueue.discard_message",
    "restore": "pgqueue.discard_message",
    "call back": "pgqueue.retry_message",
    "decide": "pgqueue.retry_message",
    "purge": "pgqueue.discard_message",
    "move_out": "pgqueue.discard_message",
    "move": "pgqueue.retry_message",
    "run_now": "pgqueue.retry_message",
    "cancel": "pgqueue.discard_message",
    "send": "pgqueue.retry_message",
    "unsubscribe": "pgqueue.change_settings",
    "publish": "pgqueue.retry_message",
    "release": "pgqueue.retry_message",
    "end": "pgqueue.discard_message",
    "dispatch": "pgqueue.retry_message",
    "run": "pgqueue.run_endpoint",
    "set": "pgqueue.change_settings",
    "acknowledge": "pgqueue.change_settings",
    "log": "pgqueue.run_endpoint",
    "schedule": "pgqueue.change_schedule",
    "export": "pgqueue.change_settings",
    "share": "pgqueue.change_settings",
    "read": "pgqueue.read_message",
    "reveal": "pgqueue.reveal_masked",
}
_NAMES: dict[str, str] = dict(Operation._meta.permissions)  # as Django admin lists them
_NOT_ON_ONE_QUEUE = frozenset({"schedule", "log", "export", "share", "read", "reveal"})
ON_QUEUES = frozenset(PERMISSIONS) - {"run", "set", "acknowledge", "log", "export", "share", "read", "reveal"}


class Refusal(NamedTuple):
    """Why an act is not allowed: ``if refusal := refusal_for(…)`` reads well, and so does ``str(refusal)``."""

    sentence: str

    def __str__(self) -> str:
        return self.sentence


def refusal_for(person: Any, verb: str) -> Refusal | None:
    """None if ``person`` may. A name instead of a user is a user of the command line: they may, and are audited.
    ``refused_here``: this person may only look at the queue of the requested page, whatever their rights.
    """
    if isinstance(person, str):
        return None
    if not person.has_perm(PERMISSIONS[verb]):
        return missing(verb)
    return None if verb in _NOT_ON_ONE_QUEUE else getattr(person, "refused_here", None)


def missing(verb: str) -> Refusal:
    right = _NAMES[PERMISSIONS[verb].removeprefix("pgqueue.")]
    return Refusal(f"needs the right “{right}”, which an administrator gives in Django admin")


def database_lets(verb: str) -> Refusal | None:
    """None if the role that reads the queues may act; a role that can only SELECT disables every act on queues."""
    known = database_role.current() if verb in ON_QUEUES else None
    return Refusal(known.refusal) if known and known.refusal else None


def name_of(person: Any) -> str:
    return person if isinstance(person, str) else str(person.get_username())
