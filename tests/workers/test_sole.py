"""A host may be called like one of the processes of which there is one: each is another's lock."""

from collections.abc import Callable

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.workers.host_lock import HostLock
from pgqueue_admin.workers.sole import Sole


@pytest.mark.parametrize("name", ["sampler", "pipeline"])
def test_a_host_of_that_name_has_one(console_database: str, connect: Callable[[str], Connection], name: str) -> None:
    host, one, another = HostLock(name), Sole(name), Sole(name)
    host.use(connect(console_database))
    assert host.take()
    try:
        assert one.mine()
        assert not another.mine(), "one alone, all the same"
    finally:
        one.let_go()
        another.let_go()
