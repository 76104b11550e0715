"""What a program insists on before it begins."""

from django.core.management.base import CommandError

from pgqueue_admin.records import own_sessions


def insist_on_own_sessions() -> None:
    """Raises CommandError. A database that does not answer is not waited for: the program does that itself."""
    if said := own_sessions.refusals(["default", "queues"]):
        raise CommandError(" ".join(said))
