"""Each program refuses an address that leads to a pooler in transaction mode, in one sentence; so says `check`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.models import Process
from tests.pooler import Pooler
from tests.waiting import until
from tests.workers.host import House

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
    """Two supervisors of one host would both start otherwise, and nobody would hear of anything."""
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


def test_a_pooler_in_session_mode_is_taken(console_database: str, tmp_path: Path) -> None:
    pooler = Pooler(console_database, size=20, mode="session")
    house = House(pooler.dsn, pooler.dsn, tmp_path)
    house.supervise()
    try:
        until(Process.objects.filter(role="supervisor", state="running").exists, what="the supervisor to report")
    finally:
        house.close()
        pooler.close()
