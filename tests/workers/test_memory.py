"""A process above its memory limit drains and is replaced; its message is finished first."""

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import InFlightAtCrash
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.workers.processes.memory_limit import MemoryLimit
from tests.waiting import until
from tests.workers.deadly.handlers import TYPE
from tests.workers.host import House, want


def test_the_limit_that_is_broken_is_named() -> None:
    ceiling = MemoryLimit(100, 200)
    assert (ceiling.broken_drain(100_000_000), ceiling.broken_kill(100_000_000)) == ("", "")
    assert ceiling.broken_drain(150_000_000) == "150\u00a0MB, above its limit of 100\u00a0MB"
    assert ceiling.broken_kill(250_000_000) == "250\u00a0MB, above its limit of 200\u00a0MB"
    assert MemoryLimit().broken_kill(10**15) == ""


def test_it_finishes_what_it_has_and_makes_room_for_another(deadly: House, sales: Endpoint, look: Connection) -> None:
    want(1, concurrency=1, memory_mb=200)
    deadly.supervise()
    (first,) = deadly.running(1)
    sales.send("Sales", {"way": "hoard"}, type=TYPE)
    until(lambda: deadly.rows(pid=first.pid, state="stopped"), what="drained")
    first.refresh_from_db()
    assert first.exit_code == 0
    assert first.last_error.startswith("drained at ")
    assert first.last_error.endswith(", above its limit of 200\u00a0MB")
    assert look.value('select count(*) from "Sales"') == 0, "finished, not rolled back"
    (second,) = deadly.running(1)
    assert second.pid != first.pid
    assert not InFlightAtCrash.objects.exists()
