"""A locked queue: its page soon names the process that holds the lock, and all other pages answer."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from django.contrib.auth.models import User

from pgqueue_admin.config.web_settings import DATABASES
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Queue
from tests.databases import Databases
from tests.live.site import Site, serve
from tests.waiting import PATIENCE, until

Connect = Callable[[str], Connection]
LOCKED = "/queues/public/Sales/messages/"
OTHERS = ("/", "/queues/", "/queues/public/Billing/", "/queues/public/Billing/messages/", "/archive/", "/workers/")
WAITING = (
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    " and application_name = 'pgqueue-admin reads'"
)
PAGES_WAITING = (
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    " and query like '%django_session%'"
)
SESSIONS = DATABASES["default"]["OPTIONS"]["pool"]["max_size"]
AT_ONCE = 12


@pytest.fixture(scope="module")
def site(databases: Databases) -> Iterator[Site]:
    with databases.clone("recorded_console") as dsn, databases.as_django(dsn):
        for table in ("Sales", "Billing"):
            Queue.objects.get_or_create(schema="public", table=table, defaults={"kind": "input"})
        with serve(dsn, SPARK_MASTER="", PGQUEUE_SAMPLE_SECONDS="5") as site, site.command("supervise"):
            until(lambda: httpx.get(f"{site.url}/readyz").status_code == 200, what="the site is ready")
            yield site


@pytest.fixture(scope="module")
def person(site: Site) -> User:
    return User.objects.create_superuser("ivo")


@contextmanager
def locked(connection: Connection, table: str = "Sales") -> Iterator[int]:
    """Lock the table from a forgotten psql session; yield its process id."""
    connection.run("set application_name = 'psql'")
    with connection.transaction():
        connection.run(f'lock table "{table}" in access exclusive mode')
        yield connection.value("select pg_backend_pid()")


def test_every_other_page_goes_on(site: Site, person: User, connect: Connect) -> None:
    """One user requests everything, which is the worst case."""
    dsn = site.environment["DATABASE_URL"]
    look = connect(dsn)
    with locked(connect(dsn)) as pid, site.browser(person) as browser, ThreadPoolExecutor(AT_ONCE) as people:
        asked = [people.submit(browser.get, LOCKED) for _ in range(AT_ONCE)]
        until(lambda: look.value(WAITING), what="a page waits for the lock")
        others = {path: browser.get(path) for path in OTHERS}
        probe = browser.get("/readyz")
        busy = [each.result() for each in asked]
    assert {path: answer.status_code for path, answer in others.items()} == dict.fromkeys(OTHERS, 200)
    assert {path for path, answer in others.items() if answer.elapsed.total_seconds() > PATIENCE / 2} == set()
    assert not any("is busy" in answer.text for answer in others.values())
    assert (probe.status_code, probe.json()["parts"]) == (200, dict.fromkeys(probe.json()["parts"], "ok"))
    assert [answer.status_code for answer in busy] == [503] * AT_ONCE
    assert all(f"held by process {pid} of the server (psql" in answer.text for answer in busy)
    assert all("own database" not in answer.text for answer in busy)


def test_a_probe_needs_none_of_the_sessions_that_pages_wait_with(site: Site, person: User, connect: Connect) -> None:
    """The session table is locked: pages wait for it until the pool has no free session."""
    look, holder = (connect(site.environment["DATABASE_URL"]) for _ in range(2))
    schema = look.value("select relnamespace::regnamespace::text from pg_class where relname = 'django_session'")
    with site.browser(person) as browser, ThreadPoolExecutor(AT_ONCE) as people, holder.transaction():
        holder.run(f"lock table {schema}.django_session in access exclusive mode")
        for _ in range(AT_ONCE):
            people.submit(browser.get, "/")
        until(lambda: look.value(PAGES_WAITING) == SESSIONS, what="every session of the pool waits")
        probe = httpx.get(f"{site.url}/readyz", timeout=PATIENCE)
    assert (probe.status_code, probe.json()["ready"]) == (200, True)


@pytest.mark.parametrize(
    "path",
    [
        LOCKED,
        "/queues/public/Sales/messages/00000000-0000-0000-0000-000000000001/",
        "/queues/public/Sales/messages/00000000-0000-0000-0000-000000000001/body/",
        "/queues/public/Sales/ends/",
        "/queues/public/Sales/",
        "/messages/00000000-0000-0000-0000-000000000001/",
        "/delayed/",
    ],
)
def test_a_page_that_looks_into_it_answers_soon_and_names_the_holder(
    site: Site, person: User, connect: Connect, path: str
) -> None:
    with locked(connect(site.environment["DATABASE_URL"])) as pid, site.browser(person) as browser:
        began = time.monotonic()
        answer = browser.get(path)
        took = time.monotonic() - began
    assert took < PATIENCE / 2, "one time limit for all statements of a page"
    if path.startswith(LOCKED) or path.endswith("/ends/"):
        assert answer.status_code == (200 if path.endswith("/ends/") else 503)
        assert f"held by process {pid} of the server (psql" in answer.text
    else:
        assert answer.status_code in (200, 404)
