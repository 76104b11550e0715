"""What every command prints if a database refuses or does not answer."""

from django.conf import settings

from pgqueue_admin.dialects.errors import DatabaseDown

START_IT = "The embedded database runs while `make run` does; DATABASE_URL and QUEUES_URL name others."


def describe(error: Exception) -> str:
    """Return the error's words and, if the embedded database does not answer, how to start it."""
    is_ours = isinstance(error, DatabaseDown) and settings.PGQUEUE["EMBEDDED"]
    return f"{error}\n{START_IT}" if is_ours else str(error)
