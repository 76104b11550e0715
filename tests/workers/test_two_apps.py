"""Two installed applications with handlers for one endpoint: all of them run, in the order of the applications."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.transport import Endpoint
from tests.waiting import until
from tests.workers.annex.handlers import OWN_TYPE
from tests.workers.host import House, want
from tests.workers.shop.handlers import TYPE

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
    """How many of the shop had handled it before each time that the annex did."""
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
