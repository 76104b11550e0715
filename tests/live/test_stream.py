"""The whole way: a row is inserted, the sampler sees it, the open page is told (C2, L1, L6, L7)."""

import time
import uuid
from collections.abc import Iterator

import httpx
import pytest
from django.contrib.auth.models import User

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.records.models import Queue
from tests.live.site import Site, events, serve
from tests.waiting import NOISE, until

SALES = Address("public", "Sales")
END_THE_LISTENER = """
select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'pgqueue-admin live'
"""
HEADERS = '{"NServiceBus.EnclosedMessageTypes":"Shop.PlaceOrder"}'


@pytest.fixture
def person(console_database) -> User:
    return User.objects.create_user("ivo")


@pytest.fixture
def sales(console_database, connect):
    connection = connect(console_database)
    connection.run(postgresql().queue.create(table=SALES))
    return connection


@pytest.fixture
def site(console_database, sales) -> Iterator[Site]:
    with serve(console_database) as site, site.command("sampler"):
        until(lambda: Queue.objects.filter(table="Sales", latest__isnull=False).exists(), what="no sample")
        yield site


def send(connection, count: int) -> None:
    query = postgresql().queue.send(table=SALES)
    message = {"ttbr_ms": None, "headers": HEADERS, "body": b"{}"}
    connection.run_many(query, [{**message, "id": uuid.uuid4()} for _ in range(count)])


def test_seven_rows_are_seen_by_an_open_page_within_two_seconds(site, sales, person):
    queue = Queue.objects.get(table="Sales")
    with site.browser(person).stream("GET", f"/live/?t=frame&t=queue:{queue.pk}") as stream:
        told = events(stream.iter_lines())
        assert ">0<" in next(data["now.ready"] for _, data in told if "now.ready" in data)
        began = time.monotonic()
        send(sales, 7)
        said = next(data["now.ready"] for _, data in told if "now.ready" in data)
        assert ">7<" in said
        assert time.monotonic() - began < 2 * NOISE


def test_the_row_on_the_list_of_queues_follows_too(site, sales, person):
    key = f"q{Queue.objects.get(table='Sales').pk}.ready"
    with site.browser(person).stream("GET", "/live/?t=queues") as stream:
        told = events(stream.iter_lines())
        assert next(data[key] for _, data in told if key in data) == "0"
        send(sales, 7)
        assert next(data[key] for _, data in told if key in data) == "7"


def test_after_a_lost_listening_session_everything_is_sent_again(site, sales, person):
    queue = Queue.objects.get(table="Sales")
    with site.browser(person).stream("GET", f"/live/?t=queue:{queue.pk}") as stream:
        told = events(stream.iter_lines())
        next(told)
        ended = sales.value(END_THE_LISTENER)
        assert ended == 1  # one session listens, however many pages are open
        send(sales, 7)
        assert ">7<" in next(data["now.ready"] for _, data in told if "now.ready" in data)


def test_a_stranger_gets_no_stream(site):
    assert httpx.get(f"{site.url}/live/?t=overview").status_code == 302


def test_probes_tell_what_is_wrong(site):
    assert httpx.get(f"{site.url}/healthz").text == "alive\n"
    answer = httpx.get(f"{site.url}/readyz")
    assert answer.status_code == 503
    parts = answer.json()["parts"]
    assert parts["console database"] == parts["queue database"] == parts["sampler"] == "ok"
    assert "supervisor" in parts["workers"]
