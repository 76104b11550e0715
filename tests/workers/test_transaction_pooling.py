"""Each program refuses the address of a pooler in transaction mode, in one sentence; so does `check`."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.dialects.errors import SessionsShared
from pgqueue_admin.lease.handlers import LeaseHandlers
from pgqueue_admin.lease.worker import LeaseWorker
from pgqueue_admin.models import Process
from pgqueue_admin.transport.endpoint import Endpoint
from tests.pooler import Pooler
from tests.waiting import until
from tests.workers.host import ROOT, House

SENTENCE = "leads to a pooler in transaction mode, where sessions are not one's own"


@pytest.fixture
def pooler(console_database: str) -> Iterator[Pooler]:
    made = Pooler(console_database, size=4)
    yield made
    made.close()


@pytest.fixture
def house(console_database: str, tmp_path: Path) -> Iterator[House]:
    made = House(console_database, console_database, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    "command",
    [
        "supervise",
        "sampler",
        "alerter",
        "ingester",
        "lease watch",
        "outbox_keeper",
        "worker Sales",
        "history run",
        "prepare",
    ],
)
@pytest.mark.parametrize("variable", ["DATABASE_URL", "QUEUES_URL"])
def test_a_program_refuses(house: House, pooler: Pooler, variable: str, command: str) -> None:
    """Otherwise two supervisors of one host would both start, and LISTEN would get no notifications."""
    house.environment |= {variable: pooler.dsn, "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings"}
    started = house.manage(*command.split())
    said, _ = started.communicate(timeout=120)
    assert started.returncode == 1, said
    assert said.strip().splitlines()[-1].count(f"{variable} {SENTENCE}") == 1
    assert "Traceback" not in said
    assert not Process.objects.exists()


@pytest.mark.parametrize("database", ["default", "queues"])
def test_a_check_says_so(house: House, pooler: Pooler, database: str) -> None:
    variable = {"default": "DATABASE_URL", "queues": "QUEUES_URL"}[database]
    house.environment[variable] = pooler.dsn
    checked = house.manage("check", "--database", database)
    said, _ = checked.communicate(timeout=120)
    assert checked.returncode == 1
    assert f"(pgqueue.E002) {variable} {SENTENCE}" in said


def test_the_address_of_another_database_is_asked(house: House, pooler: Pooler) -> None:
    house.environment |= {"QUEUES_URL_BILLING": pooler.dsn, "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings"}
    said, _ = house.manage("sampler").communicate(timeout=120)
    assert f"QUEUES_URL_BILLING {SENTENCE}" in said


def test_where_history_is_read_from_is_asked_by_who_reads(house: House, pooler: Pooler) -> None:
    """Rows are read in a session made read-only before; in another session each statement could write."""
    house.environment["PGQUEUE_HISTORY_URL"] = pooler.dsn
    for command in ("history run", "check --database queues"):
        said, _ = house.manage(*command.split()).communicate(timeout=120)
        assert f"PGQUEUE_HISTORY_URL {SENTENCE}" in said, command


@pytest.mark.parametrize(
    "argv",
    [
        ("uvicorn", "pgqueue_admin.config.asgi:application", "--port", "0"),
        ("celery", "-A", "pgqueue_admin.config.celery", "worker", "--pool", "threads"),
        ("celery", "-A", "pgqueue_admin.config.celery", "beat", "--pidfile="),
    ],
    ids=["web", "worker", "beat"],
)
def test_a_process_beside_the_supervisor_refuses(house: House, pooler: Pooler, argv: tuple[str, ...]) -> None:
    environment = {**house.environment, "QUEUES_URL": pooler.dsn, "CELERY_BROKER_URL": "redis://127.0.0.1:1/0"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    ended = subprocess.run(
        [sys.executable, "-m", *argv], env=environment, cwd=ROOT, timeout=120, capture_output=True, text=True
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert f"QUEUES_URL {SENTENCE}" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_endpoint_of_a_program_of_ones_own_refuses(pooler: Pooler) -> None:
    with pytest.raises(SessionsShared, match="pooler in transaction mode"):
        Endpoint("Sales", pooler.dsn).start()
    with pytest.raises(SessionsShared, match="pooler in transaction mode"):
        LeaseWorker("Sales", pooler.dsn, LeaseHandlers()).start()


def test_a_pooler_in_session_mode_is_taken(console_database: str, tmp_path: Path) -> None:
    pooler = Pooler(console_database, size=20, mode="session")
    house = House(pooler.dsn, pooler.dsn, tmp_path)
    house.supervise()
    try:
        until(Process.objects.filter(role="supervisor", state="running").exists, what="the supervisor to report")
    finally:
        house.close()
        pooler.close()
