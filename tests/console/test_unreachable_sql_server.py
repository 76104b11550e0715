"""Pages of a SQL Server that does not answer say so in time, and all other pages work."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from html import unescape

import pytest
from django.test import Client
from pytest_django import Settings

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import LatestSample, Queue, database_clock, queue_database
from pgqueue_admin.models.queue_database import looked_at
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from tests.console.pages import shown
from tests.dialects.sqlserver.peer import peer
from tests.dialects.sqlserver.test_wire import TRUSTED
from tests.monitor.tables import fill, make

LIST = "/queues/billing:dbo/Sales/messages/"
ONE = f"{LIST}6f9619ff-8b86-d011-b42d-00cf4fc964ff/"
KINDS = ["nobody listens", "says nothing", "without encryption"]


@contextmanager
def port_of(kind: str) -> Iterator[int]:
    if kind == "nobody listens":
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = int(other.getsockname()[1])
        yield port
    else:
        with peer(mute=kind == "says nothing", encryption=2) as server:
            yield server.port


@pytest.fixture(params=KINDS)
def away(
    request: pytest.FixtureRequest,
    settings: Settings,
    console_database: str,
    connect: Callable[[str], Connection],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[bool]:
    """One known queue of each database, SQL Server's from earlier. Yields whether its sampler has looked since."""
    monkeypatch.setattr("pgqueue_admin.dialects.sqlserver.dialect.SILENT_SECONDS", 0.3)
    here = connect(console_database)
    fill(here, make(here), 2)
    queue, seen_at = Queue.objects.create(schema="billing:dbo", table="Sales", kind="input"), database_clock.now()
    LatestSample.objects.create(queue=queue, at=seen_at, changed_at=seen_at, depth=5, ready=5, head_seq=1, tail_seq=5)
    with port_of(request.param) as port:
        url = f"mssql://reader:s3cret@localhost:{port}/shop?{TRUSTED}"
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {"billing": {"URL": url, "SCHEMAS": ["dbo"]}}}
        seen_to = looked_at() if request.param != "says nothing" else []  # a start waits for 5 s
        for each in (None, *seen_to):
            with closing(SamplerProcess(each)) as sampling:
                sampling.run_once()
        yield bool(seen_to)
        queue_database.close()


def test_its_pages_say_so_and_all_others_go_on(as_operator: Client, away: bool) -> None:
    began = time.monotonic()
    for address in (LIST, ONE):
        html = shown(as_operator, address)
        assert "does not answer" in html, address
        assert "s3cret" not in html
    assert "does not answer" in shown(as_operator, "/queues/billing:dbo/Sales/?ends=1")
    delayed = shown(as_operator, "/delayed/")
    assert "s3cret" not in delayed
    finder = unescape(as_operator.get("/messages/6f9619ff-8b86-d011-b42d-00cf4fc964ff/").content.decode())
    assert "all of billing" in finder
    assert "does not answer" not in shown(as_operator, "/queues/public/Q/messages/")
    assert time.monotonic() - began < 20
    assert [LatestSample.objects.get(queue__schema="public").depth] == [2]
    there = LatestSample.objects.get(queue__schema="billing:dbo")
    assert there.depth == 5, "the last figure stays"
    assert away == ("does not answer" in there.error)
    assert "database billing" in shown(as_operator, "/conversations/c-1/")
    assert "billing:dbo" in shown(as_operator, "/queues/")
    listed = shown(as_operator, "/settings/")
    assert "billing: mssql://reader@localhost" in listed
    assert "s3cret" not in listed
