"""The recorded failures in the archive, and two users."""

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import LeaseQueue
from tests.archived_messages import OPERATOR, person


@pytest.fixture(autouse=True)
def archive(archived_console: str) -> str:
    """In a clone of its own."""
    return archived_console


@pytest.fixture
def ana(archive: str) -> User:
    return person("ana", *OPERATOR)


@pytest.fixture
def viewer(archive: str) -> User:
    return person("viewer")


@pytest.fixture
def queue(archive: str) -> Iterator[LeaseQueue]:
    """The lease queue beside the archive."""
    queue = LeaseQueue(archive, name="thumbs")
    yield queue
    queue.close()


@pytest.fixture
def session(archive: str, connect: Callable[[str], Connection]) -> Connection:
    """On the archive's database."""
    return connect(archive)
