"""Signed-in clients for tests of pages: a viewer, an operator with every right, and a user without rights."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import Settings

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease import LeaseQueue
from tests.console.pages import Connect
from tests.console.recorded import REFUSED, Recorded
from tests.databases import Databases


@pytest.fixture(autouse=True)
def patience(settings: Settings) -> None:
    """Figures are stale after 15 s instead of 3: a busy machine must not look like a stopped sampler."""
    settings.PGQUEUE = {**settings.PGQUEUE, "SAMPLE_SECONDS": 5.0}


@pytest.fixture
def viewer(console_database: str) -> User:
    person = User.objects.create_user("ivo", password="looks")
    person.user_permissions.add(Permission.objects.get(codename="read_message"))
    return person


@pytest.fixture
def operator(console_database: str) -> User:
    person = User.objects.create_user("ana", password="repairs", first_name="Ana", last_name="Marković", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(content_type__app_label="pgqueue"))
    return User.objects.get(pk=person.pk)


@pytest.fixture
def stranger(console_database: str) -> Client:
    return Client()


@pytest.fixture
def as_viewer(viewer: User) -> Client:
    client = Client()
    client.force_login(viewer)
    return client


@pytest.fixture
def as_operator(operator: User) -> Client:
    client = Client()
    client.force_login(operator)
    return client


@pytest.fixture
def recorded(databases: Databases, connect: Connect) -> Iterator[Recorded]:
    """The recorded queues, with signed-in users and the start of their error queue archived."""
    with databases.clone("ingested_console") as dsn, databases.as_django(dsn):
        yield Recorded(connect(dsn), dsn)


@pytest.fixture(scope="module")
def looked_at(databases: Databases) -> Iterator[Recorded]:
    """One ``recorded`` for all tests of a module, which must only read."""
    with (
        databases.clone("ingested_console") as dsn,
        databases.as_django(dsn),
        postgresql().connect(dsn, for_handlers=True) as connection,
    ):
        yield Recorded(connection, dsn)


@pytest.fixture
def cards(recorded: Recorded) -> list[int]:
    return recorded.dead(5, exception=REFUSED)


@pytest.fixture
def queue(console_database: str) -> Iterator[LeaseQueue]:
    """The lease queue of the console's database."""
    queue = LeaseQueue(console_database, name="thumbs")
    yield queue
    queue.close()
