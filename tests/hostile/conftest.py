"""The hostile world, one for the tests of a module that only look, and one for a test that changes it."""

from collections.abc import Iterator

import pytest

from tests.hostile.world import World
from tests.hostile.world import world as made


@pytest.fixture(scope="module")
def world(databases) -> Iterator[World]:
    with made(databases) as world:
        yield world
