"""An endpoint's settings as rows: value, allowed values, and last change."""

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
    """Settings by group; of an endpoint that runs elsewhere, the declared ones."""
    return [SettingGroup(title, _rows(endpoint, names, last)) for title, names in fieldsets.shown(endpoint).items()]


def receiving(endpoint: Endpoint, last: Mapping[str, AuditEntry]) -> list[SettingRow]:
    """Settings of the queue itself: the first group."""
    return groups(endpoint, last)[0].rows


def _rows(endpoint: Endpoint, allowed: Mapping[str, str], last: Mapping[str, AuditEntry]) -> list[SettingRow]:
    return [SettingRow(name, getattr(endpoint, name), said, last.get(name)) for name, said in allowed.items()]
