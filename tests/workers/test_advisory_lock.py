"""A host may have the name of a singleton process: their locks differ."""

from collections.abc import Callable

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.workers.processes.advisory_lock import HostLock, SingletonLock


@pytest.mark.parametrize("name", ["sampler", "expirer", "history"])
def test_a_host_of_that_name_has_one(console_database: str, connect: Callable[[str], Connection], name: str) -> None:
    host, one, another = HostLock(name), SingletonLock(name), SingletonLock(name)
    host.use(connect(console_database))
    assert host.take()
    try:
        assert one.mine()
        assert not another.mine(), "one alone, all the same"
    finally:
        one.let_go()
        another.let_go()
