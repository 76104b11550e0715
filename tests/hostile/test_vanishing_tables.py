"""Tables that come and go while pages that name them are read; bodies and headers larger than anybody reads."""

import itertools
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from django.urls import reverse

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import database_role, queue_database
from tests.console.sampled import elsewhere, sample
from tests.hostile import change_detector, payloads
from tests.hostile.hostile_site import World
from tests.waiting import until

HERE = Address("public", "Here and gone")
AWAY = Address("public", "elsewhere")
ROW = uuid.UUID(int=7)


@contextmanager
def coming_and_going(connection: Connection) -> Iterator[list[int]]:
    """Made, filled, renamed, emptied of a column, dropped: over and over, beside whoever looks."""
    over = threading.Event()
    turns: list[int] = []
    here, away = postgresql().canonical(HERE), postgresql().canonical(AWAY)

    def turn() -> None:
        connection.run(f"drop table if exists {here}, {away}")  # a turn that was refused half-way
        connection.run(postgresql().queue.create(table=HERE))
        row = {"id": ROW, "ttbr_ms": None, "headers": payloads.headers(), "body": b"{}"}
        connection.run(postgresql().queue.send(table=HERE), row)
        connection.run(f'alter table {here} rename to "elsewhere"')
        connection.run(f'alter table {away} rename to "Here and gone"')
        connection.run(f"alter table {here} drop column headers")
        connection.run(f"drop table {here}")
        connection.run(f"create view {here} as select 1 as id")
        connection.run(f"drop view {here}")

    def run() -> None:
        while not over.is_set():
            with suppress(DatabaseError):
                turn()
                turns.append(1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield turns
    finally:
        over.set()
        thread.join()


def test_a_table_that_vanishes_under_every_page_that_names_it(world: World, connect: Callable[..., Connection]) -> None:
    client = world.client("operator")
    owner = connect(world.queues_dsn)
    owner.run(postgresql().queue.create(table=HERE))
    sample()
    place = {"schema": HERE.schema, "table": HERE.table}
    paths = [reverse(name, kwargs=place) for name in ("queue", "queue_ends", "messages", "queue_settings")]
    paths += [f"{paths[2]}?q=is:expired&cols=bodyline", f"{paths[2]}?order=newest&cols=bodyline", f"{paths[0]}?ends=1"]
    paths += [reverse(name, kwargs={**place, "row_id": ROW}) for name in ("waiting_message", "waiting_body")]
    paths += [
        reverse("find_message", args=[str(ROW)]),
        reverse("conversation", args=["c"]),
        "/",
        "/queues/",
        "/settings/",
    ]
    seen: set[tuple[str, int]] = set()
    rounds = itertools.count(1)

    def look() -> bool:
        seen.update((path, client.get(path).status_code) for path in paths)
        sample()
        return next(rounds) >= 3 and len(turns) > 5

    with coming_and_going(owner) as turns:
        until(look, what="it came and went often enough to meet them")
    assert {status for _, status in seen} <= {200, 302, 404}
    assert {status for path, status in seen if path.startswith(("/?", "/queues/?", "/settings/"))} <= {200, 404}


def test_the_target_of_a_retry_vanishes_before_it(world: World, connect: Callable[..., Connection]) -> None:
    """Nothing is lost: the message stays dead, with the reason."""
    owner, client = connect(world.queues_dsn), world.client("operator")
    target = world.addresses[8]
    asked = "select max(id) from messages.message_archive where target_table = %(table)s and state = 'dead'"
    archive_id = owner.value(asked, {"table": target.table})
    owner.run(f"drop table {postgresql().canonical(target)}")
    said = client.post("/operations/", {"act": "retry", "id": archive_id, "at_once": "yes"}, follow=True)
    assert said.status_code == 200
    assert "Its queue is gone" in said.content.decode()
    assert owner.value(f"select state from messages.message_archive where id = {archive_id}") == "dead"


def test_a_schema_that_is_dropped(world: World, connect: Callable[..., Connection]) -> None:
    owner = connect(world.queues_dsn)
    owner.run('create schema "not there"')
    owner.run(postgresql().queue.create(table=Address("not there", "Queue")))
    sample()
    owner.run('drop schema "not there" cascade')
    client = world.client("viewer")
    for path in (
        "/queues/not%20there/Queue/",
        "/queues/not%20there/Queue/messages/",
        "/queues/not%20there/Queue/ends/",
    ):
        assert client.get(path).status_code in {200, 404}
    sample()
    assert client.get("/").status_code == 200


def test_headers_of_128_kb_are_shown_in_part_and_said_to_be(world: World, connect: Callable[..., Connection]) -> None:
    owner, client = connect(world.queues_dsn), world.client("viewer")
    large, row = payloads.headers(Large="<script>pwned()" * 9_000), uuid.uuid4()
    send = postgresql().queue.send(table=Address("public", "Sales"))
    owner.run(send, {"id": row, "ttbr_ms": None, "headers": large, "body": b"{}"})
    for path in (f"/queues/public/Sales/messages/{row}/", "/queues/public/Sales/messages/?order=newest"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert len(answer.content) < 400_000
    said = client.get(f"/queues/public/Sales/messages/{row}/").content.decode()
    assert "too large to read here" in said


@pytest.fixture
def refusing(world: World) -> Iterator[None]:
    """The database takes no writes, as whoever keeps it has decided."""
    name = world.queues_dsn.rpartition("/")[2]
    world.queues.run(f"alter database {name} set default_transaction_read_only = on")
    with elsewhere("queues", OPTIONS={"application_name": "refused"}):
        yield
    world.queues.run(f"alter database {name} reset default_transaction_read_only")
    queue_database.close()


def test_a_database_that_takes_no_writes(world: World, refusing: None) -> None:
    client, dead = world.client("operator"), world.dead
    before = change_detector.versions(world.queues)
    until(database_role.current, what="the database was asked")
    for path in ("/", "/archive/", f"/archive/{dead[-1]}/", "/queues/public/Billing/messages/"):
        assert client.get(path).status_code == 200
    for at_once in ("yes", ""):
        asked = {"act": "discard", "id": dead[-1], "at_once": at_once}
        said = client.post("/operations/", asked, follow=True).content.decode()
        assert "Nothing was discarded" in said
        assert "takes no writes" in said
    assert change_detector.versions(world.queues) == before
    assert "the database takes no writes now" in client.get("/").content.decode()


def test_a_queue_that_somebody_holds(
    world: World, connect: Callable[..., Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locked by a change of its table: its own part says so in time, everything else is there."""
    monkeypatch.setitem(queue_database._READS, "statement_timeout", 3.0)
    queue_database.close()
    owner, client = connect(world.queues_dsn), world.client("operator")
    with owner.transaction():
        owner.run('lock table "Billing" in access exclusive mode')
        said = {path: client.get(path) for path in ("/queues/public/Billing/", "/queues/public/Billing/ends/")}
        said["messages"] = client.get("/queues/public/Billing/messages/")
        assert client.get("/queues/public/Sales/messages/").status_code == 200
    assert [answer.status_code for answer in said.values()] == [200, 200, 503]
    for looked in ("messages", "/queues/public/Billing/ends/"):
        assert "Billing is busy: it is locked" in said[looked].content.decode()


def test_a_database_with_no_connection_left(world: World) -> None:
    client = world.client("operator")
    with change_detector.nothing_but_select(world.queues, ["public", "messages"]) as reader:
        world.queues.run(f"alter role {reader['USER']} connection limit 0")
        with elsewhere("queues", **reader):
            for path in ("/", "/queues/public/Billing/", "/archive/"):
                answer = client.get(path)
                assert answer.status_code == 200
            assert "The database does not answer." in answer.content.decode()
            assert "too many connections" in answer.content.decode()
