"""A console whose database has no queue, yet or any more: the sampler still looks, and nothing is stale."""

import re

import pytest
from django.test import Client

from pgqueue_admin.models import Queue, notify
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from tests.console.pages import Connect
from tests.console.sampled import elsewhere, sample, signed_in
from tests.console.test_query_errors import NOBODY_ANSWERS
from tests.monitor.tables import make
from tests.monitor.test_sampler import Clock
from tests.waiting import gathered

pytestmark = pytest.mark.usefixtures("console_database")


def ready() -> str:
    said: str = Client().get("/readyz").json()["parts"]["sampler"]
    return said


def test_before_the_first_queue_it_is_ready_and_says_what_is_missing() -> None:
    """Otherwise /readyz would keep users from the page that says which tables are queues."""
    assert ready() == "no sample yet"
    sample()
    assert ready() == "ok"
    page = signed_in().get("/").content.decode()
    assert "No queue-shaped table has been found in public" in page
    assert 'class="figures-stale"' not in page
    assert re.search(r"As of</span> \d\d:\d\d", page)


def test_open_pages_are_woken_though_there_is_no_sample() -> None:
    with notify.listen(notify.SAMPLE) as listener:
        sample()
        assert gathered(lambda: listener.notifications(0.1), bool)


def test_after_the_last_queue_was_dropped_nothing_is_stale(console_database: str, connect: Connect) -> None:
    queues = connect(console_database)
    make(queues, "Q")
    sample()
    assert ready() == "ok"
    queues.run('drop table "Q"')
    sample()
    assert not Queue.objects.filter(gone_since=None).exists()
    queues.run("update pgqueue_console.pgqueue_latestsample set at = at - interval '1 hour'")
    assert ready() == "ok"
    assert 'class="figures-stale"' not in signed_in().get("/").content.decode()


def test_unreachable_database_is_not_taken_for_one_without_queues() -> None:
    clock = Clock()
    sampling = SamplerProcess(monotonic=clock)
    with elsewhere("queues", PORT=NOBODY_ANSWERS):
        for _ in range(2):  # the heartbeat after a look reports its result
            sampling.run_once()
            clock.now += 100
    sampling.close()
    assert ready() == "no sample yet"
