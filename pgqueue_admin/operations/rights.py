"""Who may do what. Reading needs a sign-in and nothing more; every act asks here, on the server, with a sentence."""

from typing import Any, NamedTuple

from pgqueue_admin.dialects import Address

PERMISSIONS = {
    "retry": "pgqueue.retry_message",
    "discard": "pgqueue.discard_message",
    "restore": "pgqueue.discard_message",
    "move_out": "pgqueue.discard_message",
    "run": "pgqueue.run_endpoint",
    "set": "pgqueue.change_settings",
    "acknowledge": "pgqueue.change_settings",
    "log": "pgqueue.run_endpoint",
}


class Refusal(NamedTuple):
    """Why an act is not allowed: ``if refusal := may(…)`` reads well, and so does ``str(refusal)``."""

    sentence: str

    def __str__(self) -> str:
        return self.sentence


def may(person: Any, verb: str, address: Address | None = None) -> Refusal | None:
    """None if ``person`` may. A name instead of a user is somebody with a shell here: they may, and are audited."""
    if isinstance(person, str) or person.has_perm(PERMISSIONS[verb]):
        return None
    where = f" on {address.table}" if address else ""
    return Refusal(f"needs operator{where}; you are viewer")


def name_of(person: Any) -> str:
    return person if isinstance(person, str) else str(person.get_username())
