"""Samples are thinned per queue: the first of each minute stays, found by an index for any number of queues."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql.search_paths import CONSOLE
from pgqueue_admin.models import Queue, Sample, samples
from pgqueue_admin.models.raw_sql import console_sql
from tests.explain import BY_INDEX, executed

NOW = datetime(2026, 11, 14, 12, 0, tzinfo=UTC)
QUEUES, MINUTES = 300, 20
_FILL = """
insert into pgqueue_console.pgqueue_sample (queue_id, at, depth, how, delayed_how, oldest_how, error)
select queue, %(since)s + step * interval '10 s', step, 'counted', 'counted', 'exact', ''
from generate_series(0, %(steps)s - 1) step, unnest(%(queues)s) queue
"""


@pytest.fixture
def queues(console_database: str, connect: Callable[..., Connection]) -> list[int]:
    """Each queue sampled every ten seconds until two hours ago, and for a minute after that."""
    made = Queue.objects.bulk_create(Queue(schema="public", table=f"Q{i}", kind="input") for i in range(QUEUES))
    ids = [queue.pk for queue in made]
    began, steps = NOW - samples.FINE_FOR - timedelta(minutes=MINUTES), 6 * (MINUTES + 1)
    about: dict[str, Any] = {"since": began, "steps": steps, "queues": ids}
    connection = connect(console_database)
    connection.run(_FILL, about)
    connection.run("analyze pgqueue_console.pgqueue_sample")
    return ids


def test_the_first_of_each_minute_stays_of_every_queue(queues: list[int]) -> None:
    assert samples.thin(NOW) == QUEUES * MINUTES * 5
    for queue in (queues[0], queues[-1]):
        kept = Sample.objects.filter(queue=queue).order_by("at").values_list("depth", flat=True)
        assert list(kept) == [*range(0, 6 * MINUTES, 6), *range(6 * MINUTES, 6 * MINUTES + 6)]
    assert samples.thin(NOW) == 0


def test_a_chunk_is_found_and_goes_by_index(
    queues: list[int], console_database: str, connect: Callable[..., Connection]
) -> None:
    about = {"queues": queues[:10], "since": NOW - timedelta(days=1), "until": NOW - samples.FINE_FOR}
    looking = connect(console_database)
    looking.run(f"set search_path = {CONSOLE}")
    plan = executed(looking, console_sql.samples.thin(), about)
    assert plan.reads("pgqueue_sample") <= BY_INDEX
    assert plan.blocks < 4 * 10 * MINUTES * 6
