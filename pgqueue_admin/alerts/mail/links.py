"""Links in mails. Each opens a page and asks there; none acts by itself."""

from typing import Any
from urllib.parse import urlencode, urljoin

from django.conf import settings
from django.urls import reverse

from pgqueue_admin.alerts.failures_of import Failures
from pgqueue_admin.alerts.finding import LONGEST
from pgqueue_admin.archive import search_query
from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Alert

_RESULTS = {"failed", "rejected", "lock_expired"}  # the cause of a death that names no exception


def absolute(page: str, **names: Any) -> str:
    """Return the page's public address."""
    return _abroad(reverse(page, kwargs=names))


def warning(number: int) -> str:
    return absolute("alert", number=number)


def queue(address: Address) -> str:
    return absolute("queue", schema=address.schema, table=address.table)


def crashing_message(row_id: str) -> str:
    return absolute("crashing_message", row_id=row_id)


def archive(queue_address: str, cause: str) -> str:
    return _abroad(archive_path(queue_address, cause))


def failures(queue_address: str, cause: str) -> str:
    return _abroad(failures_path(queue_address, cause))


def _abroad(path: str) -> str:
    """``path`` already contains the path of PUBLIC_URL."""
    return urljoin(settings.PGQUEUE["PUBLIC_URL"], path)


def archive_path(queue_address: str, cause: str) -> str:
    """Search the archive for exactly the messages that a warning counts."""
    asked = ["state:dead", search_query.died_in(queue_address), *_of_cause(cause)]
    return reverse("archive") + "?" + urlencode({"q": " ".join(asked)})


def failures_path(queue_address: str, cause: str) -> str:
    """Search the failures of these messages: one error may have several."""
    asked = [search_query.died_in(queue_address), *_of_cause(cause)]
    return reverse("failures") + "?" + urlencode({"q": " ".join(asked)})


def to_failures(alert: Alert, failures: Failures) -> str:
    """Return the page of the warning's only failure, else their list."""
    return failure_path(failures.only) if failures.only else failures_path(alert.queue, alert.cause)


def failure_path(fingerprint: str) -> str:
    return reverse("failure", args=[fingerprint])


def failure(fingerprint: str) -> str:
    return _abroad(failure_path(fingerprint))


def _of_cause(cause: str) -> list[str]:
    if not cause:  # all that share a queue
        return []
    if cause in _RESULTS:
        return [f"result:{cause}", search_query.exactly("error", "")]
    return [search_query.exactly("error", cause) if len(cause) < LONGEST else search_query.beginning("error", cause)]
