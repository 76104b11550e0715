"""The lease queue is sampled, judged and alerted on like every other queue."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pgqueue_admin.console.queue_row import rows as queue_rows
from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import Queue
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from tests.workers.sampled import latest

DIE = """
insert into messages.message_archive (created_at, message, result, handled_by, queue)
values (now(), '1', 'failed', 'worker', null), (now(), '2', 'rejected', 'thumbs', '"messages"."message"')
"""


@pytest.fixture
def sampling(console_database: str, settings: Any) -> Iterator[SamplerProcess]:
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}
    sampling = SamplerProcess()
    yield sampling
    sampling.close()


@pytest.fixture
def queue(console_database: str) -> Iterator[LeaseQueue]:
    queue = LeaseQueue(console_database, name="thumbs")
    yield queue
    queue.close()


def test_its_row_has_the_figures_of_a_queue(
    sampling: SamplerProcess, queue: LeaseQueue, console_database: str, connect: Callable[..., Connection]
) -> None:
    queue.publish_many(range(5))
    held, kept = queue.claim(2)
    queue.release(kept, after=3600)
    connect(console_database).run(DIE)
    sampling.run_once()
    seen = latest("message")
    assert held.id
    assert (seen.ready, seen.in_flight, seen.expired, seen.delayed, seen.dead) == (3, 1, 0, 1, 2)
    known = Queue.objects.get(table="message")
    assert (known.kind, known.target_age_seconds, known.target_dead) == ("lease", 60, 0)
    row = next(each for each in queue_rows.load() if each.queue.table == "message")
    assert (row.consumers.words, row.state) == ("somebody receives", "crit")  # because of its dead messages
