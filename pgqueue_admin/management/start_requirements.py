"""What a program insists on before it begins."""

from django.core.management.base import CommandError

from pgqueue_admin.models import pooler_check


def insist_on_own_sessions() -> None:
    """Raises CommandError. A database that does not answer is not waited for: the program does that itself."""
    if said := pooler_check.refusals(["default", "queues"]):
        raise CommandError(" ".join(said))
