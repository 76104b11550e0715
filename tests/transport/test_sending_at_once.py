"""Threads that send at the same moment do not wait for each other."""

import threading
from uuid import RFC_4122, UUID

from pgqueue_admin.transport.ids import new_ids
from tests.transport.spy import rows
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
