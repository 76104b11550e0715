"""An endpoint's settings as rows: what each is, what it may be, and who changed it last."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pgqueue_admin.console.forms import endpoint_groups
from pgqueue_admin.records.models import AuditEntry, Endpoint


class Row(NamedTuple):
    name: str
    value: Any
    allowed: str
    last: AuditEntry | None


class Group(NamedTuple):
    title: str
    rows: list[Row]


def groups(endpoint: Endpoint, last: Mapping[str, AuditEntry]) -> list[Group]:
    """Of an endpoint that runs elsewhere, what is declared of it."""
    shown = endpoint_groups.shown(endpoint.ours)
    return [Group(title, [_row(endpoint, name, last) for name in names]) for title, names in shown.items()]


def receiving(endpoint: Endpoint, last: Mapping[str, AuditEntry]) -> list[Row]:
    """Those that concern the queue itself."""
    return groups(endpoint, last)[0].rows


def _row(endpoint: Endpoint, name: str, last: Mapping[str, AuditEntry]) -> Row:
    return Row(name, getattr(endpoint, name), endpoint_groups.ALLOWED[name], last.get(name))
