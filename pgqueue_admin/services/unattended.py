"""Queues without a receiver: reported before an act puts messages there."""

from collections.abc import Iterable
from typing import NamedTuple

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.models import Alert, Queue, database_clock, endpoint_standings, processes, queue_lookup
from pgqueue_admin.models.endpoint_standings import Standing
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import consumers
from pgqueue_admin.services.queues import subject


class UnattendedQueue(NamedTuple):
    """``says``: what is known, such as ``nobody receives``."""

    address: Address
    says: str


def without_receiver(addresses: Iterable[str]) -> list[UnattendedQueue]:
    """Judge by the newest sample, the present processes, and open warnings."""
    asked = set(filter(None, map(_parsed, addresses)))
    near = queue_lookup.near(asked).filter(gone_since=None).select_related("latest")
    queues = [each for each in near if Address(each.schema, each.table) in asked]
    if not queues:
        return []
    open_alerts = Alert.objects.filter(resolved_at=None, kind="no_consumer", queue__in=map(subject, queues))
    warned = set(open_alerts.values_list("queue", flat=True))
    names = [each.endpoint for each in queues if each.endpoint]
    stands = {each.endpoint.name: each for each in endpoint_standings.of(processes.by_endpoint(names))}
    return [
        UnattendedQueue(Address(queue.schema, queue.table), said)
        for queue in queues
        if (said := _said(queue, stands.get(queue.endpoint), subject(queue) in warned))
    ]


def _parsed(canonical: str) -> Address | None:
    try:
        return queue_database().dialect.parse_address(canonical) if canonical else None
    except AddressUnreadable:
        return None


def _said(queue: Queue, standing: Standing | None, warned: bool) -> str:
    if standing is not None and standing.endpoint.paused:
        return "its receivers are paused"
    nobody = consumers.said(queue, getattr(queue, "latest", None), standing, database_clock.now()).nobody
    if standing is not None and nobody:
        return "nobody receives"
    return "no receiver seen" if warned or nobody else ""
