"""The hostile world: made once in a run, copied for each module."""

from collections.abc import Iterator

import pytest

from pgqueue_admin.history.storage import message_lookup
from tests.databases import Databases
from tests.hostile import prestarted
from tests.hostile.hostile_site import World, copied
from tests.hostile.hostile_site import made as making


@pytest.fixture(scope="session")
def made(databases: Databases) -> Iterator[World]:
    with making(databases) as made:
        yield made


@pytest.fixture(scope="session", autouse=True)
def forks() -> Iterator[prestarted.Interpreter]:
    """Each page about finished messages runs the program that scans their files: in a fork, not started anew.

    Elsewhere (tests/history, tests/console) it is started as by the product; test_prestarted compares the two.
    """
    arrow = ("pyarrow.compute", "pyarrow.parquet", "pandas")  # which Arrow imports by itself at the first array
    with prestarted.interpreter(*arrow) as interpreter, pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_lookup, "subprocess", interpreter)
        yield interpreter


@pytest.fixture(scope="module")
def world(databases: Databases, made: World) -> Iterator[World]:
    with copied(databases, made) as world:
        yield world
