"""Threads that send at the same moment do not wait for each other."""

import os
import threading
from uuid import RFC_4122, UUID

from pgqueue_admin.transport.wire.ids import new_ids
from tests.transport.recording_observer import rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"


def test_one_that_waits_for_a_lock_keeps_nobody(endpoint, make_endpoint, connection):
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


def test_one_after_the_other_shares_a_session(endpoint, connection):
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
    """Ids are drawn ahead: a child that had its parent's would give what the parent gives."""
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
