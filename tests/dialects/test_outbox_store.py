"""What every OutboxStore promises (dialects.outbox_store), on each database that has one."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from pgqueue_admin.dialects import Address, Dialect, dialect_for
from pgqueue_admin.dialects.errors import (
    AlreadyExists,
    DatabaseDown,
    DatabaseError,
    Deadlock,
    Locked,
    TransactionEndedByHandler,
)
from pgqueue_admin.dialects.outbox_store import OutboxStore
from tests import mssql
from tests.waiting import until

AT_ONCE = 400  # rows of an insert: SQL Server allows 2,100 parameters
WAIT, DAY = timedelta(seconds=10), timedelta(days=1)
OPERATIONS = '[{"MessageId": "two", "Body": "w6Q=", "Headers": {"a": "ü \\" \\\\ %"}}]'
HOSTILE = "a'b\"c%s%(id)s;--"
ORIGINALS = {
    "postgresql": """create table "{0}" ("MessageId" varchar(200) not null primary key, "Dispatched" boolean not null
        default false, "DispatchedAt" timestamp, "PersistenceVersion" varchar(23), "Operations" jsonb not null)""",
    "mysql": """create table `{0}` (MessageId nvarchar(200) not null primary key, Dispatched bit not null default 0,
        DispatchedAt datetime, PersistenceVersion varchar(23) not null, Operations json not null)
        default charset=ascii""",
    "sqlserver": """create table "{0}" (MessageId nvarchar(200) not null primary key nonclustered, Dispatched bit not
        null default 0, DispatchedAt datetime, PersistenceVersion varchar(23) not null,
        Operations nvarchar(max) not null)""",
}
LOCK_WAIT = {
    "postgresql": "select current_setting('lock_timeout')",
    "mysql": "select @@session.innodb_lock_wait_timeout",
    "sqlserver": "select @@lock_timeout",
}


class Place:
    """A database with the outbox table of the endpoint Billing."""

    def __init__(self, dsn: str):
        self.dsn = dsn
        self.dialect: Dialect = dialect_for(dsn)
        self.store = self.dialect.outbox_store(self.dialect.outbox_address("Billing", self.dialect.default_schema))
        self._opened: list[Any] = []

    def connect(self, **options: Any) -> Any:
        self._opened.append(self.dialect.connect(self.dsn, **{"for_handlers": True, **options}))
        return self._opened[-1]

    def close(self) -> None:
        for each in self._opened:
            each.close()

    def run(self, session: Any, text: str, *values: Any) -> int:
        return int(session.run(self.quoted(text), list(values) or None))

    def all(self, session: Any, text: str) -> list[Any]:
        rows: list[Any] = session.all(self.quoted(text))
        return rows

    def quoted(self, text: str) -> str:
        return text.replace('"', "`") if self.dialect.name == "mysql" else text

    def add(self, session: Any, *names: str, days: float | None = None) -> None:
        """``days``: dispatched that many days ago; None: undispatched."""
        dispatched = None if days is None else datetime.now(UTC).replace(tzinfo=None) - timedelta(days=days)
        if len(names) > AT_ONCE:
            self.add(session, *names[AT_ONCE:], days=days)
        names = names[:AT_ONCE]
        row = "(%s, %s = 1, %s, %s, %s)" if self.dialect.name == "postgresql" else "(%s, %s, %s, %s, %s)"
        text = f"""insert into "Billing_OutboxData"
            ("MessageId", "Dispatched", "DispatchedAt", "PersistenceVersion", "Operations")
            values {", ".join([row] * len(names))}"""
        values = [value for name in names for value in (name, int(days is not None), dispatched, "9", "[]")]
        self.run(session, text, *values)

    def names(self, session: Any) -> list[str]:
        return [name for (name,) in self.all(session, 'select "MessageId" from "Billing_OutboxData" order by 1')]


@pytest.fixture(params=["postgresql", "mariadb", *mssql.ONE])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "postgresql":
        made = Place(request.getfixturevalue("database"))
        yield made
        made.close()
        return
    if request.param in mssql.ONE:
        with request.getfixturevalue("mssql").database() as dsn:
            made = Place(dsn)
            yield made
            made.close()
        return
    server = request.getfixturevalue("mariadb")
    with server.database() as name:
        made = Place(server.dsn(name))
        yield made
        made.close()


@pytest.fixture
def session(place: Place) -> Any:
    """A session of a database with the table."""
    session = place.connect()
    place.store.create(session)
    return session


@pytest.fixture
def store(place: Place) -> OutboxStore:
    return place.store


def found(session: Any, store: OutboxStore, name: str) -> list[tuple[Any, ...]]:
    return [(row.id, bool(row.dispatched), row.operations) for row in session.all(*store.finding(name))]


def test_created_table_has_no_fault(place: Place, session: Any, store: OutboxStore) -> None:
    store.create(session)
    assert list(store.faults(session)) == []
    assert store.address.table == "Billing_OutboxData"


def test_several_may_make_it_at_once(place: Place) -> None:
    sessions = [place.connect() for _ in range(4)]
    makers = [threading.Thread(target=place.store.create, args=[each]) for each in sessions]
    for each in makers:
        each.start()
    for each in makers:
        each.join(60)
    assert list(place.store.faults(sessions[0])) == []


def test_faults_name_what_is_missing_and_the_cure(place: Place) -> None:
    session = place.connect()
    (fault,) = place.store.faults(session)
    assert fault.stops
    session.run(fault.cure)
    assert [each.stops for each in place.store.faults(session)] in ([], [False, False])
    place.run(session, 'drop table "Billing_OutboxData"')
    place.run(session, 'create table "Billing_OutboxData" ("MessageId" varchar(20))')
    assert [fault.stops for fault in place.store.faults(session)] == [True] * 6 + [False] * 2


def test_an_originals_table_gets_its_indexes_and_stays_as_it_is(place: Place) -> None:
    session = place.connect()
    session.run(ORIGINALS[place.dialect.name].format("Billing_OutboxData"))
    assert [fault.stops for fault in place.store.faults(session)] == [False, False]
    place.store.create(session)
    assert list(place.store.faults(session)) == []
    place.add(session, "one")
    pending = place.store.pending(session, DAY, 10, [])
    assert [record.id for record in pending] == ["one"], "it does not say how old a record is"
    assert place.store.says_when is False
    assert session.run(*place.store.marking("one")) == 1


def test_from_store_to_mark(session: Any, store: OutboxStore) -> None:
    assert found(session, store, "one") == []
    session.run(*store.storing("one", OPERATIONS, WAIT))
    ((name, dispatched, operations),) = found(session, store, "one")
    assert (name, dispatched) == ("one", False)
    assert orjson.loads(operations) == orjson.loads(OPERATIONS)
    session.run(*store.marking("one"))
    assert found(session, store, "one") == [("one", True, "[]")]


def test_pessimistic_the_operations_come_later(session: Any, store: OutboxStore) -> None:
    with session.transaction():
        session.run(*store.storing("one", "[]", WAIT))
        assert session.run(*store.completing("one", '["x"]')) == 1
    assert found(session, store, "one") == [("one", False, '["x"]')]


def test_a_second_mark_fails_and_changes_nothing(place: Place, session: Any, store: OutboxStore) -> None:
    place.add(session, "one", days=3)
    before = place.all(session, 'select * from "Billing_OutboxData"')
    with pytest.raises(DatabaseError):
        session.run(*store.marking("one"))
    assert place.all(session, 'select * from "Billing_OutboxData"') == before


@pytest.mark.parametrize("name", [HOSTILE, "漢字 €", "x" * 200, "\\", ""])
def test_any_id_is_kept_as_it_is(session: Any, store: OutboxStore, name: str) -> None:
    session.run(*store.storing(name, "[]", WAIT))
    assert [row[0] for row in found(session, store, name)] == [name]


def test_an_id_that_is_too_long_is_refused_and_not_cut(session: Any, store: OutboxStore) -> None:
    with pytest.raises(DatabaseError):
        session.run(*store.storing("x" * 201, "[]", WAIT))
    assert found(session, store, "x" * 200) == []


def test_two_ids_that_differ_by_case_are_two(session: Any, store: OutboxStore) -> None:
    session.run(*store.storing("Order-a", "[]", WAIT))
    assert found(session, store, "order-A") == []
    session.run(*store.storing("order-A", "[]", WAIT))


def test_in_an_originals_table_another_case_is_no_duplicate(place: Place) -> None:
    """If its key treats both as equal, the second is a reported failure and is not taken for handled."""
    session = place.connect()
    session.run(ORIGINALS[place.dialect.name].format("Billing_OutboxData"))
    place.add(session, "Order-a", days=1)
    assert found(session, place.store, "order-A") == []


def test_a_committed_record_already_exists(session: Any, store: OutboxStore) -> None:
    session.run(*store.storing("one", "[]", WAIT))
    with pytest.raises(AlreadyExists), session.transaction():
        session.run(*store.storing("one", "[]", WAIT))
    assert not session.in_transaction


def beside(place: Place, store: OutboxStore, isolation: str) -> tuple[Any, Callable[[], Any]]:
    """Store the same record from another session in a thread. Returns the session and a function for the result."""
    other, came = place.connect(isolation=isolation), list[Any]()

    def work() -> None:
        try:
            with other.transaction_with(*store.finding("one")):
                other.run(*store.storing("one", "[]", WAIT))
            came.append("stored")
        except DatabaseError as error:
            came.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()

    def ended() -> Any:
        thread.join(60)
        return came[0]

    return thread, ended


def isolations(place: Place) -> list[str]:
    return list(place.dialect.isolations)


def test_concurrent_duplicate_is_refused_in_each_isolation(place: Place, session: Any, store: OutboxStore) -> None:
    for isolation in isolations(place):
        first = place.connect(isolation=isolation)
        with first.transaction_with(*store.finding("one")) as rows:
            assert rows == []
            first.run(*store.storing("one", "[]", WAIT))
            thread, ended = beside(place, store, isolation)
            thread.join(0.3)
        assert ended() in (AlreadyExists, Deadlock), isolation
        place.run(session, 'delete from "Billing_OutboxData"')


def test_waiter_stores_its_record_after_the_others_rollback(place: Place, session: Any, store: OutboxStore) -> None:
    first = place.connect()
    with suppress(ZeroDivisionError), first.transaction():
        first.run(*store.storing("one", "[]", WAIT))
        thread, ended = beside(place, store, "read_committed")
        thread.join(0.3)
        raise ZeroDivisionError
    assert ended() == "stored"


def test_the_wait_is_bounded_and_is_as_before_afterwards(place: Place, session: Any, store: OutboxStore) -> None:
    show = LOCK_WAIT[place.dialect.name]
    first, second = place.connect(), place.connect()
    before = second.value(show)
    with first.transaction():
        first.run(*store.storing("one", "[]", WAIT))
        with pytest.raises(Locked), second.transaction():
            second.run(*store.storing("one", "[]", timedelta(seconds=1)))
        with second.transaction():
            second.run(*store.storing("other", "[]", timedelta(seconds=1)))
            assert second.value(show) == before
    assert second.value(show) == before


def test_old_dispatched_records_are_purged_in_batches(place: Place, session: Any, store: OutboxStore) -> None:
    place.add(session, *(f"old {i}" for i in range(5)), days=8)
    place.add(session, "young", days=6)
    place.add(session, "pending")
    assert store.work(session, 7 * DAY, DAY) == (True, True, False)
    assert store.purge(session, 7 * DAY, 3) == 3
    assert store.purge(session, 7 * DAY, 3) == 2
    assert store.purge(session, 7 * DAY, 3) == 0
    assert place.names(session) == ["pending", "young"]
    assert store.work(session, 7 * DAY, DAY) == (True, False, False)


def test_two_cleaners_of_five_thousand_records_leave_none(place: Place, session: Any, store: OutboxStore) -> None:
    for start in range(0, 5000, 1000):
        place.add(session, *(f"old {i}" for i in range(start, start + 1000)), days=8)

    def clean(cleaner: Any) -> None:
        while place.store.purge(cleaner, 7 * DAY, 4000):
            pass

    cleaners = [threading.Thread(target=clean, args=[place.connect()]) for _ in range(2)]
    for each in cleaners:
        each.start()
    for each in cleaners:
        each.join(60)
    assert place.names(session) == []


def test_locked_records_are_skipped(place: Place, session: Any, store: OutboxStore) -> None:
    place.add(session, "a", "b", days=8)
    place.add(session, "c", "d")
    holder = place.connect()
    with holder.transaction():
        holder.run(*store.completing("a", "[]"))
        holder.run(*store.completing("c", "[]"))
        assert store.purge(session, 7 * DAY, 10) == 1
        with session.transaction():
            left = store.pending(session, timedelta(microseconds=1), 10, [])
    assert [record.id for record in left] == ["d"]
    assert place.names(session) == ["a", "c", "d"]


def test_pending_records_come_once_and_after_their_grace(place: Place, session: Any, store: OutboxStore) -> None:
    place.add(session, *"abcde")
    assert store.pending(session, DAY, 10, []) == []
    assert store.work(session, DAY, DAY).relay is False
    assert store.work(session, DAY, timedelta(microseconds=1)).relay is True
    first = [record.id for record in store.pending(session, timedelta(microseconds=1), 2, [])]
    then = [record.id for record in store.pending(session, timedelta(microseconds=1), 9, first)]
    assert (len(first), sorted(first + then)) == (2, list("abcde"))


def test_record_dated_in_the_future_is_pending_beyond_twice_its_grace(
    place: Place, session: Any, store: OutboxStore
) -> None:
    """The server's clock was a year ahead and is corrected: pending records would otherwise wait for a year."""
    place.add(session, "ahead", "just now")
    for name, ahead in (("ahead", timedelta(days=365)), ("just now", timedelta(hours=1))):
        at = (datetime.now(UTC) + ahead).replace(tzinfo=None)
        place.run(session, 'update "Billing_OutboxData" set "CreatedAt" = %s where "MessageId" = %s', at, name)
    assert store.work(session, DAY, DAY).relay is True
    with session.transaction():
        assert [record.id for record in store.pending(session, DAY, 10, [])] == ["ahead"]


def test_leader_keeps_the_lead_until_its_session_ends(place: Place, session: Any, store: OutboxStore) -> None:
    leader, follower = place.connect(), place.connect()
    assert [store.work(each, DAY, DAY).leads for each in (leader, leader, follower)] == [True, True, False]
    leader.abort()
    until(lambda: store.work(follower, DAY, DAY).leads)


def test_each_table_has_its_own_leader(place: Place, session: Any, store: OutboxStore) -> None:
    other = place.dialect.outbox_store(Address(store.address.schema, "Sales_OutboxData"))
    other.create(session)
    assert store.work(session, DAY, DAY).leads
    assert other.work(place.connect(), DAY, DAY).leads


def test_a_savepoint_undoes_its_part_alone(place: Place, session: Any, store: OutboxStore) -> None:
    """The relay needs it: one failing record leaves the others."""
    place.add(session, "marked", days=1)
    place.add(session, "one")
    with session.transaction():
        with pytest.raises(DatabaseError), session.transaction():
            session.run(*store.marking("marked"))
        with session.transaction():
            session.run(*store.marking("one"))
    assert found(session, store, "one") == [("one", True, "[]")]


def test_a_failure_that_is_ignored_commits_nothing(place: Place, session: Any, store: OutboxStore) -> None:
    session.run(*store.storing("one", "[]", WAIT))

    def ignoring() -> None:
        with session.transaction():
            session.run(*store.storing("two", "[]", WAIT))
            with suppress(AlreadyExists):
                session.run(*store.storing("one", "[]", WAIT))

    with pytest.raises(DatabaseError, match="ignored"):
        ignoring()
    assert place.names(session) == ["one"]


def test_transaction_ended_from_within_is_noticed(place: Place, session: Any, store: OutboxStore) -> None:
    """Writes after the handler's own end are not committed."""

    def ending() -> None:
        with session.transaction():
            session.place_guard()
            session.run("commit")
            session.run("begin transaction" if place.dialect.name == "sqlserver" else "begin")
            session.run(*store.storing("one", "[]", WAIT))

    with pytest.raises(TransactionEndedByHandler):
        ending()
    assert place.names(place.connect()) == []


def test_a_session_that_is_cut_is_down_and_nothing_is_committed(place: Place, session: Any, store: OutboxStore) -> None:
    other = place.connect()

    def cutting() -> None:
        with other.transaction():
            other.run(*store.storing("one", "[]", WAIT))
            other.abort()
            other.run(*store.storing("two", "[]", WAIT))

    with pytest.raises(DatabaseDown):
        cutting()
    assert other.is_closed_by_server()
    until(lambda: place.names(session) == [])


def test_a_deadlock_takes_all_of_the_transaction_and_is_said_as_one(
    place: Place, session: Any, store: OutboxStore
) -> None:
    """Later statements commit nothing by themselves, even if the error was ignored."""
    place.add(session, "a", "b")
    sessions, told = [place.connect(), place.connect()], list[tuple[bool, bool]]()
    both = threading.Barrier(2, timeout=30)

    def cross(mine: Any, first: str, second: str) -> None:
        try:
            with mine.transaction():
                mine.place_guard()
                mine.run(*store.storing(f"of {first}", "[]", WAIT))
                mine.run(*store.completing(first, "[1]"))
                both.wait()
                with mine.transaction():
                    mine.run(*store.completing(second, "[1]"))
        except Deadlock as error:
            told.append((error.sqlstate in ("40001", "40P01"), mine.in_transaction))

    threads = [threading.Thread(target=cross, args=[sessions[0], "a", "b"])]
    threads.append(threading.Thread(target=cross, args=[sessions[1], "b", "a"]))
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert told == [(True, False)]
    assert len(place.names(session)) == 3


def test_a_database_that_is_not_there_is_down(place: Place) -> None:
    with pytest.raises(DatabaseDown):
        Place(place.dsn.replace("?", "_nowhere?") if "?" in place.dsn else f"{place.dsn}_nowhere").connect()
