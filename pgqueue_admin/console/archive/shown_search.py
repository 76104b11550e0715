"""A person's search as another person may see it: its terms may repeat what messages contain."""

from copy import copy
from typing import NamedTuple

from pgqueue_admin.console.archive import search
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.services import audit_exports
from pgqueue_admin.services.content_access import ContentAccess

NOT_SHOWN = "a search in what messages say, which you may not see"


class ShownSearch(NamedTuple):
    """``text``: empty if there was none, or if it ``is_hidden``."""

    text: str
    is_hidden: bool = False


def of(text: str, access: ContentAccess) -> ShownSearch:
    """Show what this person could search for. Hide what cannot be parsed: it may search contents."""
    if not text or not access.withheld or search.read(text, access).error is None:
        return ShownSearch(text)
    return ShownSearch("", is_hidden=True)


def entry(entry: AuditEntry, access: ContentAccess) -> AuditEntry:
    """An audit entry as this person may read it. Not for saving."""
    shown = access.entry(entry)
    if entry.noun != "archive" or not of(audit_exports.searched_of(entry), access).is_hidden:
        return shown
    shown = copy(shown)
    shown.subject = NOT_SHOWN
    shown.after = {name: value for name, value in (entry.after or {}).items() if name != "q"}
    return shown
