"""Endpoints declared by applications: by several applications, and with their own format."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.transport import Endpoint
from tests.waiting import until
from tests.workers.annex.handlers import OWN_TYPE
from tests.workers.host import House, want
from tests.workers.shop.handlers import TYPE

# Two installed applications with handlers for one endpoint: all run, in the order of the applications.
APPS = ["tests.workers.shop", "tests.workers.annex"]


@pytest.fixture(params=[APPS, APPS[::-1]], ids=["shop first", "annex first"])
def apps(request: pytest.FixtureRequest, console_database: str, queues: str, sales: Endpoint, look: Connection,
         tmp_path: Path) -> Iterator[list[str]]:  # fmt: skip
    look.run("create table ran (message_id text, before int)")
    house = House(console_database, queues, tmp_path / "var", apps=",".join(request.param))
    want(1, immediate_retries=0)
    house.supervise()
    try:
        house.running(1)
        yield request.param
    finally:
        house.close()


def ran(look: Connection, message_id: str) -> list[int]:
    """How many handlers of the shop ran before each run of the annex's."""
    return [row.before for row in look.all("select before from ran where message_id = %s", [message_id])]


def handled(look: Connection, message_id: str) -> int:
    return look.value("select count(*) from handled where message_id = %s", [message_id]) or 0


def test_each_runs_once_and_in_the_order_of_the_applications(
    apps: list[str], sales: Endpoint, look: Connection
) -> None:
    message_id = sales.send("Sales", {}, type=TYPE)
    until(lambda: ran(look, message_id) and handled(look, message_id), what="handled by both")
    assert ran(look, message_id) == [1 if apps == APPS else 0]
    assert handled(look, message_id) == 1

    own = sales.send("Sales", {}, type=OWN_TYPE)
    until(lambda: ran(look, own), what="handled by the annex")
    assert (ran(look, own), handled(look, own)) == ([0], 0)
    until(lambda: ran(look, "beside"), what="its companion has begun")

    failing = sales.send("Sales", {"annex_fails": True}, type=TYPE)
    until(lambda: look.value("select count(*) from messages.message_archive"), what="one failed, so the message died")
    assert (ran(look, failing), handled(look, failing)) == ([], 0), "what the other did is undone with it"
    assert len(ran(look, "beside")) == 1


# An application sets its endpoint's formats, and may have replies sent to an instance's queue.
@pytest.fixture
def asking(console_database: str, queues: str, sales: Endpoint, look: Connection, tmp_path: Path) -> Iterator[House]:
    look.run("create table answers (body text, content_type text)")
    instance = Endpoint("Sales", queues, instance="node-1")
    instance.create_queues()
    instance.stop()
    house = House(console_database, queues, tmp_path / "var", apps="tests.workers.asking")
    yield house
    house.close()


def test_request_in_its_own_format_is_answered_in_it(asking: House, look: Connection) -> None:
    want(1)
    asking.supervise()
    until(lambda: look.value("select count(*) from answers"), what="answered")
    (answer,) = look.all("select body, content_type from answers")
    assert tuple(answer) == ("lamp: 7", "text/plain")


def test_two_processes_cannot_be_one_instance(asking: House, look: Connection) -> None:
    """Each would take replies that the other waits for."""
    want(2)
    asking.supervise()
    refused = asking.first("refused", state="back-off")
    assert "Sales cannot start. Its instance node-1 is one process, and 2 are wanted." in refused.last_line
    assert look.value("select count(*) from answers") == 0


# Databases that handlers of managed endpoints may enlist: one variable each.
ROOT = Path(__file__).resolve().parents[2]
ASK = """
import django
django.setup()
from pgqueue_admin.models import Endpoint
from pgqueue_admin.workers.processes.endpoint_settings import of_row
outbox = of_row(Endpoint(name="Billing", transaction_mode="receive_only", outbox="optimistic")).outbox
print(outbox.databases, outbox.isolation)
"""


def test_each_variable_is_a_database_by_the_rest_of_its_name() -> None:
    """An empty variable counts as unset; isolation defaults to that of enlisted databases."""
    given = {"PGQUEUE_OUTBOX_URL_STOCK": "postgresql://stock-host/stock", "PGQUEUE_OUTBOX_URL_LEDGER": ""}
    given["DJANGO_SETTINGS_MODULE"] = "pgqueue_admin.config.base_settings"
    asked = subprocess.run(
        [sys.executable, "-c", ASK], cwd=ROOT, env={**os.environ, **given}, capture_output=True, text=True
    )
    assert asked.stdout.strip() == "{'stock': 'postgresql://stock-host/stock'} None", asked.stderr
