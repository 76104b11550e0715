"""Queues where nobody takes what is put into them: said before an act puts messages there."""

from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Q

from pgqueue_admin.console.board import rows as board
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressNotUnderstood
from pgqueue_admin.records import processes, standings
from pgqueue_admin.records.models import Alert, Queue
from pgqueue_admin.records.queues import subject
from pgqueue_admin.records.source import source


class Untended(NamedTuple):
    """``says``: what is known of it, such as ``nobody receives``."""

    address: Address
    says: str


def untended(addresses: Iterable[str]) -> list[Untended]:
    """By the newest sample, the processes of now, and open warnings."""
    asked = Q()
    for address in filter(None, map(_parsed, addresses)):
        asked |= Q(schema=address.schema, table=address.table)
    queues = list(Queue.objects.filter(asked, gone_since=None).select_related("latest")) if asked else []
    if not queues:
        return []
    alerts = list(Alert.objects.filter(resolved_at=None, queue__in=map(subject, queues)))
    warned = {alert.queue for alert in alerts if alert.kind == "nobody_receives"}
    names = [each.endpoint for each in queues if each.endpoint]
    rows = board.load(queues, standings.of(processes.by_endpoint(names)), alerts)
    return [Untended(row.address, said) for row in rows if (said := _said(row, subject(row.queue) in warned))]


def _parsed(canonical: str) -> Address | None:
    try:
        return source().dialect.parse_address(canonical) if canonical else None
    except AddressNotUnderstood:
        return None


def _said(row: board.Row, warned: bool) -> str:
    if row.paused:
        return "its receivers are paused"
    if row.team is not None and row.consumers.nobody:
        return "nobody receives"
    return "no receiver seen" if warned or row.consumers.nobody else ""
