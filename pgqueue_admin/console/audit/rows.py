"""An audit entry as a line: what was done, what changed, and a link to the object."""

from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse
from django.utils.http import urlencode

from pgqueue_admin.console import url_converters
from pgqueue_admin.console.overview import activity
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting import audit_verbs
from pgqueue_admin.models import AuditEntry, settings_words
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import audit_exports

_LONGEST = 300  # characters of a change that are shown
_PAGES = {"endpoint": "endpoint", "alert": "alert", "failure": "failure", "mail": "alert_mail"}
_KEYS = {"alert": "number", "failure": "fingerprint", "endpoint": "name", "mail": "number"}


@dataclass(frozen=True, slots=True)
class AuditRow:
    """``undo``: the URL that undoes it; empty if it cannot be undone."""

    entry: AuditEntry
    undo: str = ""

    @property
    def did(self) -> str:
        """``retried 564 messages of Orders``. The values of settings are left to their own columns."""
        said = activity.of_entry(self.entry).did
        if self.entry.noun in {"endpoint", "queue"}:
            return f"{audit_verbs.past(self.entry.verb)} {self.entry.subject}"
        return said

    @property
    def search(self) -> str:
        """The search for actions of the same person or program."""
        return 'who:"{}"'.format(self.entry.who.replace('"', ""))

    @property
    def was(self) -> str:
        return _said(self.entry.before)

    @property
    def now(self) -> str:
        return _said(self.entry.after)

    @property
    def way(self) -> tuple[str, str] | None:
        """The word and URL of the object; None if it has no page."""
        entry = self.entry
        try:
            return _way(entry)
        except (NoReverseMatch, AddressUnreadable, ValueError):
            return None


def _way(entry: AuditEntry) -> tuple[str, str] | None:
    after = entry.after or {}
    if entry.verb == "try" and "trial" in after:
        return f"trial {after['trial']}", reverse("trial", args=[int(after["trial"])])
    if entry.operation_id:
        return f"operation {entry.operation_id}", reverse("operation", args=[entry.operation_id])
    if entry.noun == "archive":
        return "archive", f"{reverse('archive')}?{urlencode({'q': audit_exports.searched_of(entry)})}"
    only = after.get("archive_ids", [])
    archive_id = after.get("archive_id") or (only[0] if len(only) == 1 else None)
    if entry.noun == "message" and archive_id:
        return "message", reverse("archived_message", args=[int(archive_id)])
    if entry.noun in {"queue", "message", "subscription"}:
        address = queue_database().dialect.parse_address(entry.subject)
        return address.table, url_converters.queue(address)
    if page := _PAGES.get(entry.noun):
        return entry.noun, reverse(page, kwargs={_KEYS[entry.noun]: entry.subject})
    return None


def _said(values: object) -> str:
    """``peek delay 1 s, concurrency per process 2``. Names that are no setting stay as they are."""
    if not isinstance(values, dict):
        return ""
    said = ", ".join(
        f"{settings_words.label(name)} {settings_words.value(name, each)}" for name, each in values.items()
    )
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
