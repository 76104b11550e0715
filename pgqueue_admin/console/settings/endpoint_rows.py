"""An endpoint's settings as rows: what each is, what it may be, and who changed it last."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pgqueue_admin.console.endpoints import fieldsets
from pgqueue_admin.models import AuditEntry, Endpoint


class SettingRow(NamedTuple):
    name: str
    value: Any
    allowed: str
    last: AuditEntry | None


class SettingGroup(NamedTuple):
    title: str
    rows: list[SettingRow]


def groups(endpoint: Endpoint, last: Mapping[str, AuditEntry]) -> list[SettingGroup]:
    """Of an endpoint that runs elsewhere, what is declared of it."""
    shown = fieldsets.shown(endpoint.ours)
    return [SettingGroup(title, [_row(endpoint, name, last) for name in names]) for title, names in shown.items()]


def receiving(endpoint: Endpoint, last: Mapping[str, AuditEntry]) -> list[SettingRow]:
    """Those that concern the queue itself."""
    return groups(endpoint, last)[0].rows


def _row(endpoint: Endpoint, name: str, last: Mapping[str, AuditEntry]) -> SettingRow:
    return SettingRow(name, getattr(endpoint, name), fieldsets.ALLOWED[name], last.get(name))
