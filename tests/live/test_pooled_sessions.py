"""An open page keeps its stream, but no database session that other pages need."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.config.web_settings import DATABASES
from pgqueue_admin.dialects import Connection
from tests.databases import Databases
from tests.live.site import Site, serve
from tests.waiting import until

SESSIONS = DATABASES["default"]["OPTIONS"]["pool"]["max_size"]
BEFORE = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"


@pytest.fixture
def site(databases: Databases) -> Iterator[Site]:
    with databases.clone("console") as dsn, databases.as_django(dsn), serve(dsn) as site:
        yield site


def test_more_open_pages_than_sessions_stop_nobody(site: Site, connect: Callable[[str], Connection]) -> None:
    look, person = connect(site.environment["DATABASE_URL"]), User.objects.create_user("ivo")
    with ExitStack() as pages:
        told = []  # kept, because httpx closes a stream that is no longer referenced
        for _ in range(SESSIONS + 2):
            browser = pages.enter_context(site.browser(person))
            told.append(pages.enter_context(browser.stream("GET", "/live/?t=frame")).iter_lines())
            assert next(told[-1])
        assert pages.enter_context(site.browser(person)).get("/queues/").status_code == 200
        until(lambda: look.value(BEFORE) < SESSIONS, what="sessions are given back")
