"""An application says in which formats its endpoint writes and reads, and has answers come to an instance's queue."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.transport import Endpoint
from tests.waiting import until
from tests.workers.host import House, want


@pytest.fixture
def asking(console_database: str, queues: str, sales: Endpoint, look: Connection, tmp_path: Path) -> Iterator[House]:
    look.run("create table answers (body text, content_type text)")
    instance = Endpoint("Sales", queues, instance="node-1")
    instance.create_queues()
    instance.stop()
    house = House(console_database, queues, tmp_path / "var", apps="tests.workers.asking")
    yield house
    house.close()


def test_what_is_asked_in_its_own_format_is_answered_in_it(asking: House, look: Connection) -> None:
    want(1)
    asking.supervise()
    until(lambda: look.value("select count(*) from answers"), what="answered")
    (answer,) = look.all("select body, content_type from answers")
    assert tuple(answer) == ("lamp: 7", "text/plain")


def test_two_processes_cannot_be_one_instance(asking: House, look: Connection) -> None:
    """Each would take answers that the other waits for."""
    want(2)
    asking.supervise()
    refused = asking.first("refused", state="back-off")
    assert "Sales cannot start. Its instance node-1 is one process, and 2 are wanted." in refused.last_line
    assert look.value("select count(*) from answers") == 0
