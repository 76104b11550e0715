"""Large sends use COPY while messages are still being made: whatever happens meanwhile, all are sent or none."""

import os
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import RFC_4122, UUID

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.postgresql import binary_copy
from pgqueue_admin.transport import Endpoint, Handlers, RawSerializer, Serializers
from pgqueue_admin.transport.sending import bulk
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.ids import new_ids
from tests.transport.recording_observer import rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"
SOME = bulk.FEW + 1
END_SESSIONS = """
select pg_terminate_backend(pid) from pg_stat_activity
where application_name = 'pgqueue Sales' and datname = current_database()
"""

MakeEndpoint = Callable[..., Endpoint]


class Watched(RawSerializer):
    """Runs ``act`` while five messages are still to be serialized."""

    def __init__(self, act: Callable[[], object]):
        self._act = act
        self._made = 0

    def dump(self, message: Any) -> bytes:
        self._made += 1
        if self._made == SOME - 5:
            self._act()
        return bytes([self._made])


def given(number: int) -> Iterator[object]:
    """An iterator of integers; bytes would need no serializing."""
    return iter(range(number))


def test_each_row_has_a_random_id_of_its_own(endpoint: Endpoint) -> None:
    endpoint.send_many("Sales", range(300), type=PLACE)
    ids = [row.id for row in rows(endpoint.dsn, "Sales")]
    assert len(set(ids)) == 300
    assert {each.version for each in ids} == {4}


def test_bodies_that_are_larger_than_a_piece(make_endpoint: MakeEndpoint) -> None:
    endpoint = make_endpoint(serializers=Serializers(RawSerializer()))
    large = [bytes([number]) * (binary_copy.PIECE + number) for number in range(3)]
    endpoint.send_many("Sales", [*large, *[b"x"] * SOME], type=PLACE)
    assert [bytes(row.body) for row in rows(endpoint.dsn, "Sales")] == [*large, *[b"x"] * SOME]


def test_a_session_that_speaks_another_encoding(make_endpoint: MakeEndpoint, database: str) -> None:
    """The server decodes texts by the session's encoding, in binary form too."""
    endpoint = make_endpoint(dsn=f"{database}?client_encoding=latin1")
    endpoint.send_many("Sales", range(SOME), type=PLACE, headers={"Größe": "é"})
    assert {h.parse(row.headers)["Größe"] for row in rows(database, "Sales")} == {"é"}
    with pytest.raises(UnicodeEncodeError):
        endpoint.send_many("Sales", range(SOME), type=PLACE, headers={"Size": "日本"})
    endpoint.send_many("Sales", range(SOME), type=PLACE)
    assert len(rows(database, "Sales")) == 2 * SOME


def test_a_span_of_nothing_is_refused_of_many_too(endpoint: Endpoint) -> None:
    with pytest.raises(ValueError, match="is over before the message is sent"):
        endpoint.send_many("Sales", range(SOME), type=PLACE, ttbr=timedelta())
    assert rows(endpoint.dsn, "Sales") == []


def test_a_delay_of_nothing_is_a_delay_of_many_too(endpoint: Endpoint) -> None:
    endpoint.send_many("Sales", range(SOME), type=PLACE, delay=timedelta())
    with endpoint.connect() as session:
        assert session.value('select count(*) from "Sales.Delayed"') == SOME
    assert rows(endpoint.dsn, "Sales") == []


@pytest.mark.parametrize("large", [False, True], ids=["many", "large"])
@pytest.mark.parametrize("handling", [False, True], ids=["outside", "in a handler"])
def test_into_a_view_any_number_is_inserted(
    handling: bool, large: bool, make_endpoint: MakeEndpoint, handlers: Handlers, connection: Connection
) -> None:
    """A view accepts no COPY; and a statement has a size limit."""
    endpoint = make_endpoint("Web", serializers=Serializers(RawSerializer()))
    make_endpoint()
    connection.run('create view "Sold" as select * from "Sales"')
    body = b"x" * (bulk.BIG // 3 if large else 1)
    bodies = [bytes([number % 256]) + body for number in range(7 if large else 2 * bulk.MANY + 1)]

    @handlers.handle(PLACE)
    def place(message: Any, context: Any) -> None:
        for each in bodies:
            context.send("Sold", each, type=PLACE)

    if handling:
        endpoint.send("Web", b"go", type=PLACE)
        endpoint.start()
        until(lambda: not rows(endpoint.dsn, "Web"))
    else:
        endpoint.send_many("Sold", bodies, type=PLACE)
    assert [bytes(row.body) for row in rows(endpoint.dsn, "Sales")] == bodies


def test_into_a_view_they_are_inserted(endpoint: Endpoint, connection: Connection) -> None:
    """A view in front of the queue: COPY refuses it, an insert does not."""
    connection.run('create view "Sold" as select * from "Sales"')
    ids = endpoint.send_many("Sold", range(SOME), type=PLACE)
    found = rows(endpoint.dsn, "Sales")
    assert [h.parse(row.headers)[h.MESSAGE_ID] for row in found] == ids
    assert [bytes(row.body) for row in found] == [b"%d" % number for number in range(SOME)]


def test_the_server_ends_the_session_meanwhile(
    make_endpoint: MakeEndpoint, connection: Connection, database: str
) -> None:
    endpoint = make_endpoint(serializers=Serializers(Watched(lambda: connection.run(END_SESSIONS))))
    with pytest.raises(DatabaseDown):
        endpoint.send_many("Sales", given(SOME), type=PLACE)
    assert rows(database, "Sales") == []
    endpoint.send_many("Sales", given(SOME), type=PLACE)
    assert len(rows(database, "Sales")) == SOME


def test_failed_serialization_costs_no_session(make_endpoint: MakeEndpoint, database: str) -> None:
    def refuse() -> None:
        raise KeyError("no such order")

    endpoint = make_endpoint(serializers=Serializers(Watched(refuse)))
    endpoint.send("Sales", 0, type=PLACE)
    with endpoint._sessions.one() as before:
        pass
    with pytest.raises(KeyError, match="no such order"):
        endpoint.send_many("Sales", given(SOME), type=PLACE)
    assert len(rows(database, "Sales")) == 1
    endpoint.send_many("Sales", given(SOME), type=PLACE)
    with endpoint._sessions.one() as after:
        assert after is before


# Threads that send at the same moment do not wait for each other.
def test_send_waiting_for_a_lock_holds_up_no_other(endpoint, make_endpoint, connection):
    make_endpoint("Billing")
    with connection.transaction():
        connection.run('lock table "Billing"')
        waits = threading.Thread(target=lambda: endpoint.send("Billing", 1, type=PLACE))
        waits.start()
        until(lambda: connection.value("select count(*) from pg_locks where not granted"))
        endpoint.send("Sales", 2, type=PLACE)
        assert [row.body for row in rows(endpoint.dsn, "Sales")] == [b"2"]
    waits.join()
    assert [row.body for row in rows(endpoint.dsn, "Billing")] == [b"1"]


def test_consecutive_sends_share_a_session(endpoint, connection):
    mine = "select array_agg(pid order by pid) from pg_stat_activity where application_name = 'pgqueue Sales'"
    endpoint.send("Sales", 1, type=PLACE)
    before = connection.value(mine)
    for number in range(5):
        endpoint.send("Sales", number, type=PLACE)
    assert len(endpoint._sessions._idle) == 1
    assert set(before) <= set(connection.value(mine))


def test_an_id_is_a_random_uuid_as_the_standard_writes_it():
    ids = [each for _ in range(500) for each in new_ids()]
    assert len(set(ids)) == 1000
    assert all((UUID(each).version, UUID(each).variant, str(UUID(each))) == (4, RFC_4122, each) for each in ids)


def test_each_digit_of_an_id_is_drawn():
    drawn = [set(digits) for digits in zip(*(each for _ in range(500) for each in new_ids()), strict=True)]
    fixed = {8: "-", 13: "-", 14: "4", 18: "-", 19: "a", 23: "-"}
    assert drawn == [set(fixed.get(place, "0123456789abcdef")) for place in range(36)]


def test_a_forked_process_gives_ids_of_its_own():
    """Ids are drawn in advance: a child with its parent's supply would repeat them."""
    new_ids()
    out, into = os.pipe()
    if (child := os.fork()) == 0:
        os.write(into, " ".join(new_ids()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(into)
    with open(out) as of_child:
        theirs = of_child.read().split()
    assert len(theirs) == 2
    assert not set(theirs) & {each for _ in range(200) for each in new_ids()}
