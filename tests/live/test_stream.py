"""End to end: a row is inserted, the sampler sees it, the open page is updated (C2, L1, L6, L7)."""

import re
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import httpx
import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.utils import timezone

from pgqueue_admin.console.live_topics import register_all
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.live import topics
from pgqueue_admin.models import Alert, LatestSample, Queue, database_clock
from tests.databases import Databases
from tests.live.site import Site, events, serve
from tests.waiting import NOISE, until

SALES = Address("public", "Sales")
LISTENERS = """
from pg_stat_activity where application_name = 'pgqueue-admin live' and datname = current_database()
and state = 'idle' and query <> ''
"""
HEADERS = '{"NServiceBus.EnclosedMessageTypes":"Shop.PlaceOrder"}'


@pytest.fixture(scope="module")
def site(databases: Databases) -> Iterator[Site]:
    """One for all tests of this file: a web server and a sampler take seconds to start."""
    with databases.clone("console") as dsn, databases.as_django(dsn):
        with postgresql().connect(dsn, for_handlers=True) as connection:
            connection.run(postgresql().queue.create(table=SALES))
        with serve(dsn) as site, site.command("sampler"):
            yield site


@pytest.fixture(scope="module")
def person(site: Site) -> User:
    return User.objects.create_user("ivo")


@pytest.fixture
def sales(site: Site, connect: Callable[[str], Connection]) -> Connection:
    """A session on the site's database, with the queue empty and sampled as empty."""
    connection = connect(site.environment["QUEUES_URL"])
    connection.run('delete from "Sales"')
    until(LatestSample.objects.filter(queue__table="Sales", ready=0).exists, what="a sample")
    return connection


def send(connection: Connection, count: int) -> None:
    query = postgresql().queue.send(table=SALES)
    message = {"ttbr_ms": None, "headers": HEADERS, "body": b"{}"}
    with connection.transaction():  # committed together, so that no sample sees a part
        connection.run_all((query, {**message, "id": uuid.uuid4()}) for _ in range(count))


def test_seven_rows_are_seen_by_an_open_page_within_two_seconds(site: Site, sales: Connection, person: User) -> None:
    queue = Queue.objects.get(table="Sales")
    with site.browser(person).stream("GET", f"/live/?t=frame&t=queue:{queue.pk}") as stream:
        told = events(stream.iter_lines())
        assert ">0<" in next(data["now.ready"] for _, data in told if "now.ready" in data)
        began = time.monotonic()
        send(sales, 7)
        said = next(data["now.ready"] for _, data in told if "now.ready" in data)
        assert ">7<" in said
        assert time.monotonic() - began < 2 * NOISE


def test_the_row_on_the_list_of_queues_follows_too(site: Site, sales: Connection, person: User) -> None:
    key = f"q{Queue.objects.get(table='Sales').pk}.ready"
    with site.browser(person).stream("GET", "/live/?t=queues") as stream:
        told = events(stream.iter_lines())
        assert next(data[key] for _, data in told if key in data) == "0"
        send(sales, 7)
        assert next(data[key] for _, data in told if key in data) == "7"


def test_after_a_lost_listening_session_everything_is_sent_again(site: Site, sales: Connection, person: User) -> None:
    queue = Queue.objects.get(table="Sales")
    with site.browser(person).stream("GET", f"/live/?t=queue:{queue.pk}") as stream:
        told = events(stream.iter_lines())
        assert ">0<" in next(data["now.ready"] for _, data in told if "now.ready" in data)
        until(lambda: sales.value(f"select count(*) {LISTENERS}") == 1, what="one session listens")
        assert sales.value(f"select count(pg_terminate_backend(pid)) {LISTENERS}") == 1
        send(sales, 7)
        assert ">7<" in next(data["now.ready"] for _, data in told if "now.ready" in data)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu", "Etc/GMT+5", "Nowhere/AtAll"])
def test_today_begins_for_a_page_and_its_stream_at_one_midnight(site: Site, person: User, zone: str) -> None:
    """One alert was resolved in each of the last 48 hours, so each time zone's midnight leaves another count."""
    here, longest = ZoneInfo("UTC" if zone.startswith("Nowhere") else zone), timedelta(seconds=45)  # of this test
    until(lambda: (now := datetime.now(here)).date() == (now + longest).date(), what="midnight has passed")
    now = timezone.now()
    over = [now - timedelta(minutes=15, hours=hours) for hours in range(48)]
    alert = Alert(kind="peek_range", severity="warning", opened_at=over[-1], last_seen_at=now)
    Alert.objects.all().delete()
    for at in over:
        alert.pk, alert.subject, alert.resolved_at = None, str(at), at
        alert.save()
    today = sum(at.astimezone(here).date() == now.astimezone(here).date() for at in over)
    browser = site.browser(person)
    browser.cookies["zone"] = zone
    page = browser.get("/alerts/").text
    assert re.findall(r'data-live="alerts.resolved">(\d+)<', page) == [str(today)]
    topics = "".join(re.findall(r'data-topics="([^"]*)"', page)).split()
    with browser.stream("GET", "/live/", params={"t": topics}) as stream:
        told = next(data for name, data in events(stream.iter_lines()) if name == "figures")
    assert told["alerts.resolved"] == str(today)


def test_a_stranger_gets_no_stream(site: Site) -> None:
    assert httpx.get(f"{site.url}/live/?t=overview").status_code == 302


def sign_out(person: User) -> None:
    """Delete the session, as a sign-out in another tab does."""
    Session.objects.all().delete()


def deactivate(person: User) -> None:
    User.objects.filter(pk=person.pk).update(is_active=False)


def change_password(person: User) -> None:
    person.set_password("another")
    person.save()


def let_it_grow_old(person: User) -> None:
    Session.objects.update(expire_date=timezone.now())


@pytest.mark.parametrize("end", [sign_out, deactivate, change_password, let_it_grow_old])
def test_an_open_stream_ends_with_its_sign_in(site: Site, end: Callable[[User], None]) -> None:
    leaving = User.objects.create_user(f"leaving by {end.__name__}")
    browser = site.browser(leaving)
    with browser.stream("GET", "/live/?t=frame") as stream:
        told = events(stream.iter_lines())
        assert next(name for name, _ in told if name == "figures")
        end(leaving)
        began = time.monotonic()
        assert [name for name, _ in told if name == "nothing waits for this"] == []  # until it ends
        assert time.monotonic() - began < 8 * NOISE
    again = browser.get("/live/?t=frame", headers={"accept": "text/event-stream"})
    assert (again.status_code, again.text) == (401, "You are signed out.\n")


def test_an_open_stream_tells_that_rights_were_taken(site: Site) -> None:
    person = User.objects.create_user("loses rights")
    person.user_permissions.add(Permission.objects.get(codename="retry_message"))
    browser = site.browser(person)
    with browser.stream("GET", "/live/?t=frame") as stream:
        told = events(stream.iter_lines())
        before = next(data["may"] for name, data in told if name == "beat")
        assert f'data-may="{before}"' in browser.get("/queues/").text
        person.user_permissions.clear()
        after = next(data["may"] for name, data in told if name == "beat" and data["may"] != before)
    assert f'data-may="{after}"' in browser.get("/queues/").text


def test_probes_tell_what_is_wrong(site: Site, sales: Connection) -> None:
    assert httpx.get(f"{site.url}/healthz").text == "alive\n"
    answer = httpx.get(f"{site.url}/readyz")
    assert answer.status_code == 503
    parts = answer.json()["parts"]
    assert parts["console database"] == parts["queue database"] == parts["sampler"] == "ok"
    assert "supervisor" in parts["workers"]


# Topics are resolved on the event loop, which must not wait for a database: a query there raises an error.
SAID = ("", "1764244800", "12", "3,8,12", "UTC", "-depth", "public.Sales", "x" * 300)


async def test_no_argument_asks_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    register_all()
    for name in topics._topics:
        for said in SAID:
            monkeypatch.setattr(database_clock.now.__self__, "_ask_at", 0.0)  # type: ignore[attr-defined]
            topics.find(f"{name}:{said}")
