"""The recorded failures in the archive, and two people."""

import pytest
from django.contrib.auth.models import User

from tests.archived_messages import OPERATOR, person


@pytest.fixture(autouse=True)
def archive(archived_console: str) -> None:
    """In a clone of its own."""


@pytest.fixture
def ana(archive: None) -> User:
    return person("ana", *OPERATOR)


@pytest.fixture
def viewer(archive: None) -> User:
    return person("viewer")
