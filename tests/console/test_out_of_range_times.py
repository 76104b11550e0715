"""Times on the calendar's first and last day cannot be shifted to a zone: senders write them for unknown times."""

import json
import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client

from pgqueue_admin.archive.ingester import ingest
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Alert, Queue
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import wire_time
from tests.console.pages import Connect, shown
from tests.console.sampled import sample

ENDS = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]
QUEUES = [Address("public", name) for name in ("Sales", "error")]
MESSAGE = re.compile(r'href="([^"?#]*/(?:\d+|[0-9a-f-]{36})/(?:change/)?)["?]')


@pytest.fixture
def root(console_database: str, connect: Connect) -> Client:
    """For each end a waiting and a dead message, with a warning about the queue it died in."""
    connection, client = connect(console_database), Client()
    client.force_login(User.objects.create_superuser("root"))
    for queue in QUEUES:
        connection.run(postgresql().queue.create(table=queue))
        for at in ENDS:
            said = dict.fromkeys((h.TIME_SENT, h.TIME_OF_FAILURE, h.DELIVER_AT, h.RETRIES_TIMESTAMP), wire_time(at))
            row = {"id": None, "ttbr_ms": None, "headers": json.dumps({h.FAILED_Q: "Sales", **said}), "body": b"{}"}
            connection.run(postgresql().queue.send(table=queue), row)
    assert ingest(connection, QUEUES[1]).dead == len(ENDS)
    sample()
    for at in ENDS:
        about = {"subject": str(at), "queue": '"public"."Sales"', "severity": "warning", "sentence": "One lies dead."}
        Alert.objects.create(kind="dead_message", opened_at=at, last_seen_at=at, **about)
    assert Queue.objects.count() == len(QUEUES)
    return client


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin", "Pacific/Kiritimati"])
def test_out_of_range_times_are_shown_in_every_zone(root: Client, zone: str) -> None:
    root.cookies["zone"] = zone
    lists = ["/archive/", "/admin/pgqueue/archivedmessage/", "/queues/public/Sales/messages/"]
    messages = {link for page in lists for link in MESSAGE.findall(shown(root, page))}
    assert len(messages) == len(lists) * len(ENDS)
    for page in [*messages, "/", "/alerts/", "/queues/", "/queues/public/Sales/"]:
        shown(root, page)
