"""Queues where nobody takes what is put into them: said before an act puts messages there."""

from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Q

from pgqueue_admin.console.queue_row import rows as board
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.models import Alert, Queue, endpoint_standings, processes
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.queues import subject


class UnattendedQueue(NamedTuple):
    """``says``: what is known of it, such as ``nobody receives``."""

    address: Address
    says: str


def untended(addresses: Iterable[str]) -> list[UnattendedQueue]:
    """By the newest sample, the processes of now, and open warnings."""
    asked = Q()
    for address in filter(None, map(_parsed, addresses)):
        asked |= Q(schema=address.schema, table=address.table)
    queues = list(Queue.objects.filter(asked, gone_since=None).select_related("latest")) if asked else []
    if not queues:
        return []
    alerts = list(Alert.objects.filter(resolved_at=None, queue__in=map(subject, queues)))
    warned = {alert.queue for alert in alerts if alert.kind == "no_consumer"}
    names = [each.endpoint for each in queues if each.endpoint]
    rows = board.load(queues, endpoint_standings.of(processes.by_endpoint(names)), alerts)
    return [UnattendedQueue(row.address, said) for row in rows if (said := _said(row, subject(row.queue) in warned))]


def _parsed(canonical: str) -> Address | None:
    try:
        return queue_database().dialect.parse_address(canonical) if canonical else None
    except AddressUnreadable:
        return None


def _said(row: board.QueueRow, warned: bool) -> str:
    if row.paused:
        return "its receivers are paused"
    if row.team is not None and row.consumers.nobody:
        return "nobody receives"
    return "no receiver seen" if warned or row.consumers.nobody else ""
