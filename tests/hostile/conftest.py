"""The hostile world: made once in a run, copied for each module."""

from collections.abc import Iterator

import pytest

from tests.databases import Databases
from tests.hostile.hostile_site import World, copied
from tests.hostile.hostile_site import made as making


@pytest.fixture(scope="session")
def made(databases: Databases) -> Iterator[World]:
    with making(databases) as made:
        yield made


@pytest.fixture(scope="module")
def world(databases: Databases, made: World) -> Iterator[World]:
    with copied(databases, made) as world:
        yield world
