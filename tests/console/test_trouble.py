"""What pages say when a database is down or lets us only look (bad input)."""

import secrets
import threading
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from pgqueue_admin.records import role
from pgqueue_admin.records.models import LatestSample
from tests.console.sampled import elsewhere, sample, signed_in

NOBODY_ANSWERS = 1  # a port
PAGES = ("/", "/queues/", "/queues/public/Sales/")


@pytest.mark.parametrize("path", PAGES)
def test_with_the_queue_database_down_pages_show_the_last_sample_as_stale(recorded_console, path):
    sample()
    client = signed_in()
    LatestSample.objects.update(at=timezone.now() - timedelta(seconds=30))
    with elsewhere("queues", PORT=NOBODY_ANSWERS):
        answer = client.get(path)
    assert answer.status_code == 200
    said = answer.content.decode()
    assert "Figures are from" in said
    assert "Sales" in said


def test_with_the_queue_database_down_head_and_tail_fail_alone(recorded_console):
    sample()
    client = signed_in()
    with elsewhere("queues", PORT=NOBODY_ANSWERS):
        answer = client.get("/queues/public/Sales/ends/")
    assert answer.status_code == 200
    assert "The database does not answer." in answer.content.decode()


@pytest.mark.parametrize("path", PAGES)
def test_with_the_console_database_down_a_static_page_tries_again(console_database, path):
    client = signed_in()
    with elsewhere("default", PORT=NOBODY_ANSWERS):
        answer = client.get(path)
    assert (answer.status_code, answer["Refresh"]) == (503, "5")
    assert "own database does not answer" in answer.content.decode()


def test_probes_while_databases_are_down(console_database):
    client = Client()
    with elsewhere("default", PORT=NOBODY_ANSWERS), elsewhere("queues", PORT=NOBODY_ANSWERS):
        assert client.get("/healthz").status_code == 200
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert set(answer.json()["parts"]) == {"console database", "queue database", "sampler", "workers"}


@pytest.fixture
def reader(recorded_console, connect):
    """A role that may SELECT, as USER and PASSWORD of the queue database."""
    owner, name, password = connect(recorded_console), f"reader_{secrets.token_hex(4)}", secrets.token_hex(8)
    owner.run(f"create role {name} login password '{password}'")
    for schema in ('"public"', '"Legacy"', "messages"):
        owner.run(f"grant usage on schema {schema} to {name}")
        owner.run(f"grant select on all tables in schema {schema} to {name}")
    yield {"USER": name, "PASSWORD": password}
    owner.run(f"drop owned by {name}")
    owner.run(f"drop role {name}")


def test_a_role_that_only_selects_reads_everything_and_takes_no_lock_worth_the_name(recorded_console, connect, reader):
    sample()
    operator = User.objects.create_user("ana")
    operator.user_permissions.set(Permission.objects.filter(content_type__app_label="pgqueue"))
    client = Client()
    client.force_login(operator)
    with elsewhere("queues", **reader), _watching(connect(recorded_console), reader["USER"]) as locks:
        pages = [client.get(path) for path in (*PAGES, "/queues/public/Sales/ends/", "/queues/public/Sales/messages/")]
        assert [page.status_code for page in pages] == [200] * len(pages)
        assert role.current().refusal == f"the database role {reader['USER']} may only SELECT"
        said = client.get("/").content.decode()
    assert f"no act works: the database role {reader['USER']} may only SELECT" in said
    assert "likely in flight" not in said
    assert locks <= {"AccessShareLock"}
    assert locks


class _watching:
    """The modes of all relation locks that a role's sessions hold while the block runs."""

    def __init__(self, connection, name: str):
        self._connection, self._name, self._over = connection, name, threading.Event()
        self._seen: set[str] = set()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> set[str]:
        self._thread.start()
        return self._seen

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        asked = (
            "select distinct l.mode from pg_locks l join pg_stat_activity a using (pid) "
            "where a.usename = %(name)s and l.locktype in ('relation', 'tuple')"
        )
        while not self._over.wait(0.001):
            self._seen |= {row.mode for row in self._connection.all(asked, {"name": self._name})}
