"""What pages say when a database is down or read-only for us (bad input)."""

from collections.abc import Iterator
from datetime import timedelta
from html import unescape

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone

from pgqueue_admin.console import query_errors
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.models import LatestSample, database_role
from tests.console.pages import Connect
from tests.console.sampled import elsewhere, read_only, sample, signed_in
from tests.hostile import change_detector
from tests.waiting import until

NOBODY_ANSWERS = 1  # a port
PAGES = ("/", "/queues/", "/queues/public/Sales/")


@pytest.mark.parametrize("path", PAGES)
def test_with_the_queue_database_down_pages_show_the_last_sample_as_stale(recorded_console: str, path: str) -> None:
    sample()
    client = signed_in()
    LatestSample.objects.update(at=timezone.now() - timedelta(seconds=30))
    with elsewhere("queues", PORT=NOBODY_ANSWERS):
        answer = client.get(path)
    assert answer.status_code == 200
    said = answer.content.decode()
    assert "Figures are from" in said
    assert "Sales" in said


def test_with_the_queue_database_down_head_and_tail_fail_alone(recorded_console: str) -> None:
    sample()
    client = signed_in()
    with elsewhere("queues", PORT=NOBODY_ANSWERS):
        answer = client.get("/queues/public/Sales/ends/")
    assert answer.status_code == 200
    assert "The database does not answer." in answer.content.decode()


@pytest.mark.parametrize("path", PAGES)
def test_with_the_console_database_down_a_static_page_tries_again(console_database: str, path: str) -> None:
    client = signed_in()
    with elsewhere("default", PORT=NOBODY_ANSWERS):
        answer = client.get(path)
    assert (answer.status_code, answer["Refresh"]) == (503, "5")
    assert "own database does not answer" in answer.content.decode()


def test_a_console_database_that_takes_no_writes_is_said_to_be_that(console_database: str) -> None:
    """A standby or a read-only role: pages work there, and a sign-in is refused with that reason, not as a fault."""
    client, stranger = signed_in(), Client()
    User.objects.create_user("nora", password="long enough")
    with read_only("default"):
        page = client.get("/operations/")
        refused = stranger.post("/sign-in/", {"username": "nora", "password": "long enough"})
        probe = client.get("/readyz")
    assert page.status_code == 200
    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert "own database takes no writes now" in unescape(refused.content.decode())
    assert (probe.status_code, probe.json()["parts"]["console database"]) == (503, "it takes no writes now")


def test_strangers_are_told_no_hosts_and_no_ports(console_database: str, caplog: pytest.LogCaptureFixture) -> None:
    """Without the sessions' database nobody counts as signed in: the error is only in the log."""
    with elsewhere("default", PORT=NOBODY_ANSWERS), elsewhere("queues", PORT=NOBODY_ANSWERS):
        page, probe = signed_in_before().get("/"), Client().get("/readyz")
    assert (page.status_code, probe.status_code) == (503, 503)
    for said in (page.content.decode(), probe.content.decode()):
        assert "refused" not in said
        assert "127.0.0.1" not in said
    assert probe.json()["parts"]["queue database"].startswith("it does not answer, or refuses")
    assert caplog.text.count("refused") >= 2


def signed_in_before() -> Client:
    browser = Client()
    browser.cookies[settings.SESSION_COOKIE_NAME] = "x" * 32
    return browser


def test_probe_gives_details_to_signed_in_users(console_database: str) -> None:
    client = signed_in()
    with elsewhere("queues", PORT=NOBODY_ANSWERS):
        assert "refused" in client.get("/readyz").json()["parts"]["queue database"]


def test_probes_while_databases_are_down(console_database: str) -> None:
    client = Client()
    with elsewhere("default", PORT=NOBODY_ANSWERS), elsewhere("queues", PORT=NOBODY_ANSWERS):
        assert client.get("/healthz").status_code == 200
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert set(answer.json()["parts"]) == {"console database", "queue database", "sampler", "queues", "workers"}


@pytest.fixture
def reader(recorded_console: str, connect: Connect) -> Iterator[dict[str, str]]:
    """A SELECT-only role, as USER and PASSWORD of the queue database."""
    with change_detector.nothing_but_select(
        connect(recorded_console), ["public", "Legacy", "messages"]
    ) as role_of_reader:
        yield role_of_reader


def test_read_only_role_reads_every_page_with_access_share_locks_only(
    recorded_console: str, connect: Connect, reader: dict[str, str]
) -> None:
    """A lock stronger than ACCESS SHARE would wait here until the page reports that it is too slow."""
    sample()
    operator = User.objects.create_user("ana")
    operator.user_permissions.set(Permission.objects.filter(content_type__app_label="pgqueue"))
    client = Client()
    client.force_login(operator)
    client.get("/me/keys/")  # records the sign-in, at most once a minute
    with elsewhere("queues", **reader), change_detector.only_access_share(connect(recorded_console)):
        known = until(database_role.current, what="the database was asked")
        assert known.refusal == f"the database role {reader['USER']} may only SELECT"
        pages = [client.get(path) for path in (*PAGES, "/queues/public/Sales/ends/", "/queues/public/Sales/messages/")]
    assert [page.status_code for page in pages] == [200] * len(pages)
    assert [page for page in pages if "too slow" in page.content.decode()] == []
    said = pages[0].content.decode()
    assert f"no act works: the database role {reader['USER']} may only SELECT" in said
    assert "likely in flight" not in said


@pytest.mark.parametrize(
    ("detail", "said"), [("refused", "refused. Nothing can"), ("Is it on?", "Is it on? Nothing can")]
)
def test_driver_error_ends_as_a_sentence(detail: str, said: str) -> None:
    about = {"trouble": query_errors.plain(DatabaseDown(detail))}
    assert said in " ".join(render_to_string("pgqueue_admin/parts/trouble.html", about).split())
