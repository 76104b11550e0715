"""A queue's schema and table as segments of a path, and back."""

from functools import lru_cache
from urllib.parse import quote

from django.urls import reverse

from pgqueue_admin.alerts.mail import links
from pgqueue_admin.archive import search_query
from pgqueue_admin.dialects.address import Address


def encode(name: str) -> str:
    """Escape what servers and browsers would misread. ``reverse`` then percent-encodes the UTF-8."""
    escaped = name.replace("~", "~7E").replace("/", "~2F")
    return f"~2E{escaped[1:]}" if escaped.startswith(".") else escaped


def decode(segment: str) -> str:
    return segment.replace("~2E", ".").replace("~2F", "/").replace("~7E", "~")


class NameConverter:
    """``<name:schema>`` in a urlpattern: one segment, decoded."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        return decode(value)

    def to_url(self, value: str) -> str:
        return encode(value)


@lru_cache(maxsize=4096)
def queue(address: Address, page: str = "queue") -> str:
    """The path of a queue's page, or of one below it: ``queue(address, "messages")``."""
    return reverse(page, kwargs={"schema": address.schema, "table": address.table})


@lru_cache(maxsize=4096)
def failure(fingerprint: str) -> str:
    """The path of a failure's page."""
    return reverse("failure", args=[fingerprint])


def archived(archive_id: int) -> str:
    """The path of an archived message's page."""
    before, behind = _around_archive_id()
    return f"{before}{archive_id}{behind}"


@lru_cache(maxsize=1)
def _around_archive_id() -> tuple[str, str]:
    before, _, behind = reverse("archived_message", args=[0]).rpartition("0")
    return before, behind


def dead(canonical: str, cause: str = "") -> str:
    """The path of the archive, filtered to a queue's dead messages, or to one cause as a warning's mail links to it."""
    if cause:
        return links.archive_path(canonical, cause)
    return f"{reverse('archive')}?q={quote(f'state:dead {search_query.died_in(canonical)}', safe='')}"
