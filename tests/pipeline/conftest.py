"""One Spark session for all tests of the room, and a driver that uses it."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.pipeline.driver import Driver


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from pgqueue_admin.pipeline.spark import session

    with tempfile.TemporaryDirectory(prefix="pgqueue-spark-") as scratch:
        started = session("local[2,4]", Path(scratch))
        yield started
        started.stop()


@pytest.fixture
def driver(spark: Any, history: Path) -> Callable[..., Driver]:
    def make(**changes: Any) -> Driver:
        return Driver("test", spark=spark, **changes)

    return make


@pytest.fixture
def database(console_database: str, connect: Callable[[str], Any]) -> Any:
    return connect(console_database)
