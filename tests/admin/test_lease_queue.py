"""Django admin finds, opens and retries dead lease messages like those of other queues."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import Operation
from pgqueue_admin.services.operations import runner
from tests.admin.test_archive import LIST, ask, text
from tests.archived_messages import OPERATOR

SignIn = Callable[..., Client]


@pytest.fixture
def queue(archived_console: str, settings: Any) -> Any:
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}
    queue = LeaseQueue(archived_console, name="thumbs")
    yield queue
    queue.close()


def test_dead_lease_messages_are_found_opened_and_retried(sign_in: SignIn, queue: LeaseQueue) -> None:
    queue.publish_many([{"kind": "render", "asset": name} for name in ("kettle", "lamp")])
    archived = [ended.archive_id for lease in queue.claim(2) if (ended := queue.finish(lease, "failed", "no encoder"))]
    client = sign_in("ana", (*OPERATOR, "read_message"))
    assert client.get(LIST, {"queue": '"messages"."message"'}).context["cl"].result_count == 2
    assert "no encoder" in text(client.get(f"{LIST}{archived[0]}/change/", follow=True))
    page = ask(client, "retry", archived)  # type: ignore[arg-type]
    assert "&quot;messages&quot;.&quot;message&quot; 2" in text(page)
    client.post(page.redirect_chain[0][0], {"go": "Retry 2"}, follow=True)
    runner.run(Operation.objects.get().pk)
    assert [lease.message["asset"] for lease in queue.claim(10)] == ["kettle", "lamp"]
