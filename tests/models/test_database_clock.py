"""Ages and stale marks use the database's clock: a host whose clock is an hour off shows no wrong figure."""

import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, database_clock, staleness
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from tests.console.sampled import elsewhere

ROOMS = Path(__file__).resolve().parents[2] / "pgqueue_admin"
HOST = re.compile(r"timezone\.now|datetime\.now|localtime\(\)|localdate\(\)|\.today\(|time\.time\(")
JUDGING = ("admin", "alerts", "console", "live", "operations", "records")


@pytest.fixture(params=[timedelta(hours=1), timedelta(hours=-1)], ids=["ahead", "behind"])
def skewed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> timedelta:
    """The host's clock is off. Our code reads it in one place; Django reads it too."""
    right = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: right() + request.param)
    return request.param


def test_a_skewed_host_shows_no_wrong_figure(
    console_database: str, skewed: timedelta, connect: Callable[..., Connection], settings: Any
) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SAMPLE_SECONDS": 60.0}  # a slow machine must not look like a wrong clock
    queues: Connection = connect(console_database)
    queues.run(postgresql().queue.create(table=Address("public", "Sales")))
    sampling = SamplerProcess()
    sampling.run_once()
    queues.run("insert into \"Sales\" (id, headers, body) values (gen_random_uuid(), '{}', '{}')")
    sampling.run_once()
    sampling.close()
    browser = Client()
    browser.force_login(User.objects.create_superuser("ana"))
    overview = browser.get("/").content.decode()
    assert "figures-stale" not in overview
    assert _shown(overview, "data-now") - _server(queues) < timedelta(seconds=30)
    assert browser.get("/readyz").json()["parts"]["sampler"] == "ok"
    queue = browser.get("/queues/public/Sales/").content.decode()
    ages = re.findall(r'data-since="[^"]*"[^>]*>([^<]*)<', queue.partition("<main")[2])
    assert ages
    assert [age for age in ages if re.search(r"min|h|^0\b|−", age)] == []
    entry = AuditEntry.objects.create(who="ana", verb="x", noun="y", subject="z", origin="console")
    assert abs(entry.at - _server(queues)) < timedelta(seconds=30)


def test_an_old_sample_is_stale_by_the_databases_clock(
    console_database: str, skewed: timedelta, connect: Callable[..., Connection]
) -> None:
    now = _server(connect(console_database))
    assert not staleness.is_stale(now)
    assert staleness.is_stale(now - timedelta(seconds=staleness.limit() + 1))
    assert staleness.is_stale(None)


def test_host_time_is_converted_to_the_database_clock(
    console_database: str, skewed: timedelta, connect: Callable[..., Connection]
) -> None:
    noted = timezone.now()
    assert abs(database_clock.of_host(noted) - _server(connect(console_database))) < timedelta(seconds=30)


def test_while_the_database_is_away_time_goes_on(console_database: str, connect: Callable[..., Connection]) -> None:
    ours = database_clock.DatabaseClock()
    before = ours.now()
    ours._ask_at = 0.0
    with elsewhere("default", HOST="127.0.0.1", PORT="1"):
        after = ours.now()
    assert before < after < before + timedelta(minutes=1)


def test_a_slow_answer_is_off_by_half_of_it_at_most(
    console_database: str, connect: Callable[..., Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = "with told as materialized (select clock_timestamp() as at) select at from told, pg_sleep(0.5)"
    monkeypatch.setattr(
        database_clock, "postgresql", lambda: SimpleNamespace(monitor=SimpleNamespace(server_time=lambda: slow))
    )
    session, ours = connect(console_database), database_clock.DatabaseClock()
    began = time.monotonic()
    ours.now()
    off = timedelta(seconds=(time.monotonic() - began) / 2)
    before, shown, after = _server(session), ours.now(), _server(session)
    assert before - off <= shown <= after + off


def test_only_the_clock_module_reads_the_hosts_clock() -> None:
    asking = {
        f"{path.relative_to(ROOMS)}: {line.strip()}"
        for room in JUDGING
        for path in (ROOMS / room).rglob("*.py")
        for line in path.read_text().splitlines()
        if HOST.search(line) and "migrations" not in path.parts
    }
    # Django expires its sessions by the host's clock, so the session's age is written by the same clock
    own = {each for each in asking if each.startswith(("models/database_clock.py", "console/session_age.py"))}
    assert asking - own == set()


def _server(connection: Connection) -> datetime:
    at: datetime = connection.value("select clock_timestamp()")
    return at


def _shown(page: str, name: str) -> datetime:
    found = re.search(rf'{name}="([^"]+)"', page)
    assert found
    return datetime.fromisoformat(found[1])
