"""The hostile world: made once in a run, copied for each module."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from pgqueue_admin.history.storage import message_lookup
from tests.databases import Databases
from tests.fork_server import ForkServer
from tests.hostile.hostile_site import World, copied
from tests.hostile.hostile_site import made as making


@pytest.fixture(scope="session")
def made(databases: Databases) -> Iterator[World]:
    with making(databases) as made:
        yield made


@pytest.fixture(scope="session", autouse=True)
def fork_server() -> Iterator[ForkServer]:
    """Pages of finished messages run the program that scans their files in a fork; it is not started anew.

    Tests of history and of console start it as the product does; test_fork_server compares the two.
    """
    server = ForkServer("pyarrow.compute", "pyarrow.parquet", "pandas")  # Arrow imports pandas at its first array
    with closing(server), pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_lookup, "subprocess", server)
        yield server


@pytest.fixture(scope="module")
def world(databases: Databases, made: World) -> Iterator[World]:
    with copied(databases, made) as world:
        yield world
