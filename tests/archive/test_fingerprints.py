"""Every dead message gets a fingerprint: when archived, or later if another program archived it."""

from collections.abc import Callable
from typing import Any

import pytest

from pgqueue_admin.archive import failure_groups, fingerprints, ingester, store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting.fingerprint import fingerprint
from tests.archive.conftest import ERROR

REFUSED = DeadMessage(
    queue='"public"."Sales"', exception_type="Shop.Refused", exception_message="order 7", stack_trace="   at Shop.Pay()"
)
DIGEST = fingerprint("Shop.Refused", "order 7", "   at Shop.Pay()").digest
FOREIGN = """
insert into messages.message_archive (created_at, message, result, handled_by, details)
values (now(), '["x"]', %(result)s, 'worker', %(details)s)
"""


def kept(connection: Connection) -> list[Any]:
    return [row.fingerprint for row in connection.all("select fingerprint from messages.message_archive order by id")]


def test_fingerprint_is_stored_when_a_message_is_archived(engine: Connection) -> None:
    store.archive_failed(engine, REFUSED)
    store.archive_failed(engine, DeadMessage(queue="q", result="success", kind="control"))
    assert kept(engine) == [DIGEST, None]


def test_the_ingester_tells_it_as_the_catch_up_does(recorded: Connection) -> None:
    while ingester.ingest(recorded, ERROR).full:
        pass
    told = kept(recorded)
    assert len({each for each in told if each}) > 1
    recorded.run("update messages.message_archive set fingerprint = null")
    while fingerprints.catch_up(recorded):
        pass
    assert kept(recorded) == told


def test_foreign_archive_rows_get_their_fingerprint_by_catch_up(engine: Connection) -> None:
    """From result and details, since these rows name no error. Successes have none."""
    for number in range(3):
        engine.run(FOREIGN, {"result": "failed", "details": f"no order {number}"})
    engine.run(FOREIGN, {"result": "lock_expired", "details": None})
    engine.run(FOREIGN, {"result": "success", "details": None})
    assert fingerprints.uncovered(engine, 2) == (2, True)
    assert fingerprints.catch_up(engine, most=3) == 3
    assert fingerprints.uncovered(engine, 2) == (1, False)
    assert fingerprints.catch_up(engine, most=3) == 1
    assert fingerprints.catch_up(engine, most=3) == 0
    failed, expired = fingerprint("failed", "no order 1", None), fingerprint("lock_expired", None, None)
    assert kept(engine) == [failed.digest] * 3 + [expired.digest, None]


def test_the_catch_up_waits_for_nobody(
    engine: Connection, engine_database: str, connect: Callable[..., Connection]
) -> None:
    engine.run(FOREIGN, {"result": "failed", "details": "a"})
    engine.run(FOREIGN, {"result": "failed", "details": "b"})
    other = connect(engine_database)
    with other.transaction():
        other.all("select from messages.message_archive where details = 'a' for update")
        assert fingerprints.catch_up(engine) == 1
    assert fingerprints.catch_up(engine) == 1


def test_a_message_whose_failure_cannot_be_told_is_archived(
    engine: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_about: Any) -> None:
        raise RecursionError

    monkeypatch.setattr("pgqueue_admin.formatting.fingerprint.folded", fails)
    store.archive_failed(engine, REFUSED)
    assert kept(engine) == [None]


def spoil(engine: Connection) -> None:
    """Remove a label of the enum, as a damaged catalog might: the server refuses to show that value."""
    engine.run("set allow_system_table_mods = on")
    engine.run("delete from pg_catalog.pg_enum where enumlabel = 'rejected'")


def test_a_row_that_cannot_be_read_keeps_no_other_from_being_told(engine: Connection) -> None:
    results = ["failed", "rejected", "failed", "failed", *["rejected"] * 3]
    for result in results:
        engine.run(FOREIGN, {"result": result, "details": "no order 1"})
    spoil(engine)
    assert fingerprints.catch_up(engine, most=2) == 2
    assert fingerprints.catch_up(engine, most=2) == 1
    assert fingerprints.catch_up(engine, most=2) == 0
    digest = fingerprint("failed", "no order 1", None).digest
    assert kept(engine) == [digest if result == "failed" else None for result in results]


def test_a_failure_that_cannot_be_read_hides_no_other(engine: Connection) -> None:
    for result in ("failed", "rejected", "lock_expired"):
        engine.run(FOREIGN, {"result": result, "details": None})
    while fingerprints.catch_up(engine):
        pass
    digests = kept(engine)
    spoil(engine)
    assert set(failure_groups.newest(engine, digests)) == {digests[0], digests[2]}


def test_own_code_makes_other_groups(engine: Connection) -> None:
    trace = "   at Vendor.Call()\n   at Shop.Pay()"
    store.archive_failed(engine, DeadMessage(queue="q", exception_type="E", stack_trace=trace), ("Shop.",))
    assert kept(engine) == [fingerprint("E", None, "   at Shop.Pay()").digest]


def test_rows_without_a_fingerprint_are_found_by_an_index(engine: Connection) -> None:
    engine.run(
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        """ select now(), '["x"]', case when n = 7 then 'failed' else 'success' end::public.message_status, 'w'"""
        " from generate_series(1, 20000) n"
    )
    engine.run("analyze messages.message_archive")
    plan = "\n".join(row[0] for row in engine.all(
        "explain select id from messages.message_archive where fingerprint is null and result <> 'success' limit 200"
    ))  # fmt: skip
    assert "message_archive_no_fingerprint" in plan
