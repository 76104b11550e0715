"""Archiving, finding and counting dead messages (C4)."""

from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest

from pgqueue_admin.archive import store
from pgqueue_admin.archive.from_failure import dead_message
from pgqueue_admin.archive.messages import ArchiveFilter, DeadMessage
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.wire.message import IncomingMessage

ALL = ArchiveFilter(state="")
SALES = Address("shop", "Sales")


def incoming(headers: str = '{"NServiceBus.MessageId":"m-1"}', body: bytes | None = b"\x00\xff") -> IncomingMessage:
    row = SimpleNamespace(id=str(uuid4()), seq=1, expired=False, headers=headers, body=body)
    return IncomingMessage.of_row(SALES, row)


def failure(**more: object) -> Failure:
    return Failure("Sales", SALES, "shop.Refused", "no\0 money", "Traceback…", attempts=6, **more)  # type: ignore[arg-type]


def test_our_engine_buries_what_it_was_given(engine: Connection) -> None:
    message = incoming()
    died = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    with engine.transaction():
        archive_id = store.archive_failed(
            engine, dead_message(message, failure(failed_at=died), postgresql(), "host-1")
        )
    found = store.get(engine, archive_id)
    assert found
    assert (found.result, found.state, found.kind, found.attempts) == ("failed", "dead", "transport", 6)
    assert (found.queue, found.target) == ('"shop"."Sales"', SALES)
    assert (found.message_id, found.row_id, found.headers) == ("m-1", UUID(message.row_id), message.headers_text)
    assert (found.exception_type, found.exception_message) == ("shop.Refused", "no␀ money")
    assert (found.endpoint, found.handled_by, found.machine, found.died_at) == ("Sales", "Sales", "host-1", died)
    document = engine.value("select message from messages.message_archive where id = %(id)s", {"id": archive_id})
    assert document == {"type": None, "id": "m-1", "queue": '"shop"."Sales"', "error": "shop.Refused"}
    part = store.body(engine, archive_id)
    assert part == (2, b"\x00\xff")


LAST, FIRST = datetime(9999, 12, 30, tzinfo=UTC), datetime(1, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("at", "told"), [("infinity", LAST), ("10000-01-01", LAST), ("-infinity", FIRST), ("0044-03-15 BC", FIRST)]
)
def test_a_message_is_read_whatever_others_wrote_as_its_times(engine: Connection, at: str, told: datetime) -> None:
    theirs = "insert into messages.message_archive (created_at, archived_at, message, result, handled_by)"
    archive_id = engine.value(f"{theirs} values (%(at)s, %(at)s, '{{}}', 'failed', 'w') returning id", {"at": at})
    found, shown = store.get(engine, archive_id), store.show(engine, archive_id)
    assert found
    assert shown
    assert (found.created_at, found.archived_at) == (shown.created_at, shown.archived_at) == (told, told)


def test_a_burial_ends_with_the_receive_transaction(engine: Connection) -> None:
    with suppress(RuntimeError), engine.transaction():
        store.archive_failed(engine, dead_message(incoming(), failure(), postgresql()))
        raise RuntimeError
    assert store.count(engine, ALL, 10) == (0, False)


def test_unreadable_headers_are_buried_as_they_are(engine: Connection) -> None:
    archive_id = store.archive_failed(engine, dead_message(incoming('{"a": "\\u0000'), failure(), postgresql()))
    found = store.get(engine, archive_id)
    assert found
    assert found.headers == '{"a": "\\u0000'
    assert str(found.why_no_retry).startswith("It cannot be retried: the headers are not JSON")


def test_a_long_endpoint_name_fits_the_originals_column(engine: Connection) -> None:
    archive_id = store.archive_failed(engine, DeadMessage(queue="q", endpoint="é" * 55))
    found = store.get(engine, archive_id)
    assert found
    assert (found.handled_by, found.endpoint) == ("é" * 50, "é" * 55)


def test_paging_both_ways_shows_every_row_once(ingested: Connection) -> None:
    seen, key = [], None
    while True:
        page = store.page(ingested, ALL, key, 400)
        seen += [m.id for m in page.messages]
        if page.after is None:
            break
        key = page.after
    everything = ingested.all("select id from messages.message_archive order by died_at desc, seq desc")
    assert seen == [row[0] for row in everything]
    back = store.page(ingested, ALL, before=page.before, limit=400)
    assert [m.id for m in back.messages] == seen[-len(page.messages) - 400 : -len(page.messages)]
    assert (back.after, store.page(ingested, ALL).before) != (None, "anything")
    assert store.page(ingested, ALL).before is None


def test_filters(ingested: Connection) -> None:
    def number(**filter: object) -> int:
        return store.count(ingested, ArchiveFilter(**filter), 10_000).number  # type: ignore[arg-type]

    assert number() == 2597
    assert (
        number(exception="RefusedException") == number(exception="Shop.Billing.PaymentGateway+RefusedException") == 88
    )
    assert number(type="PlaceOrder", state="") == 1729
    assert number(queue='"public"."Billing"') == 367
    assert number(endpoint="Shipping") == 233
    assert number(kind="control", state="succeeded") == 6
    assert number(words=("<script>",)) == 252
    assert number(words=("%",)) < 2597
    assert number(words=("card", "refused")) == number(words=("REFUSED", "Card"))
    assert number(headers=("%",)) < 2597
    assert number(headers=("ENCLOSEDMESSAGETYPES", "placeorder")) == number(type="PlaceOrder") > 0
    assert number(bodies=("OrderId",)) > number(bodies=("orderid",))
    message_id = store.page(ingested, ALL, limit=1).messages[0].message_id
    assert number(message_id=message_id) >= 1
    assert store.count(ingested, ALL, 100) == (100, True)


def test_a_text_is_found_in_bodies_of_any_kind_and_encoding_byte_by_byte(
    engine: Connection, engine_database: str
) -> None:
    bodies = ["Käufer 4711".encode(), b"\xff\x00 4711 \xfe", b"4712", None]
    archived = [store.archive_failed(engine, DeadMessage(queue="q", body=body)) for body in bodies]
    queue = LeaseQueue(engine_database, name="thumbs")
    queue.publish({"order": "4711 lease"})
    queue.finish(queue.claim()[0], "failed", "no")
    queue.close()

    def found(*texts: str) -> list[str]:
        return [each.kind for each in store.page(engine, ArchiveFilter(bodies=texts)).messages]

    assert sorted(found("4711")) == ["lease", "transport", "transport"]
    assert found("4711", "Käufer") == ["transport"]
    assert found("käufer") == []
    assert found("\udcff") == found("%") == []
    assert len(archived) == 4


def test_counts_by_queue_and_cause(ingested: Connection) -> None:
    assert [(row.queue, row.dead) for row in store.counts(ingested)][:3] == [
        ('"public"."Sales"', 1745),
        ('"public"."Billing"', 367),
        ('"public"."Shipping"', 233),
    ]
    causes = store.causes(ingested)
    assert sum(row.dead for row in causes if row.queue == '"public"."Billing"') == 367
    assert sum(row.dead for row in causes) == 2597


def test_sightings_by_any_id(ingested: Connection) -> None:
    message = store.get(ingested, 5)
    assert message
    for text in ("5", str(message.message_id), str(message.row_id)):
        assert 5 in [row.id for row in store.sightings(ingested, text).rows]
    for text in ("nothing", "99999999999999999999", "a\0b", ""):
        assert store.sightings(ingested, text) == ([], False)


def test_a_body_is_cut_in_the_database(engine: Connection) -> None:
    archive_id = store.archive_failed(engine, DeadMessage(queue="q", body=bytes(range(256)) * 40_000))
    assert store.body(engine, archive_id, 1_000_000, 5) == (10_240_000, bytes([64, 65, 66, 67, 68]))
    assert store.body(engine, 999_999) is None
