"""What every TwoPhase and DecisionStore promises (dialects.two_phase, dialects.decision_store)."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.decision_store import Decision
from pgqueue_admin.dialects.errors import AlreadyExists, DatabaseError, TransactionEndedByHandler
from pgqueue_admin.dialects.two_phase import Branch
from tests.dialects.test_outbox_store import Place
from tests.dialects.test_outbox_store import place as place
from tests.waiting import until


@pytest.fixture
def session(place: Place) -> Any:
    session = place.connect()
    session.run("create table charges (number integer primary key)")
    return session


@pytest.fixture
def branch(place: Place) -> Iterator[Branch]:
    """A branch; nothing of it is left prepared at the end."""
    made = Branch(uuid4().hex, uuid4().hex, "stock")
    yield made
    place.close()
    with place.dialect.connect(place.dsn) as session:
        until(lambda: not prepared(place, session, made) or two_phase(place).rollback(session, made))


def two_phase(place: Place) -> Any:
    assert place.dialect.two_phase_commit
    return place.dialect.two_phase_commit


def prepared(place: Place, session: Any, branch: Branch) -> list[Branch]:
    found: list[Branch] = two_phase(place).prepared(session, branch.coordinator)
    return found


def begun(place: Place, branch: Branch, number: int = 7) -> Any:
    session = place.connect()
    two_phase(place).begin(session, branch)
    session.place_guard()
    session.run(f"insert into charges (number) values ({number})")
    return session


def numbers(place: Place, session: Any) -> list[int]:
    return [number for (number,) in session.all("select number from charges order by number")]


def test_a_server_that_can_prepare_has_no_fault(place: Place, session: Any) -> None:
    assert list(two_phase(place).faults(session)) == []


def test_prepared_and_committed_in_the_same_session(place: Place, session: Any, branch: Branch) -> None:
    """The session then takes the next branch."""
    worker = begun(place, branch)
    two_phase(place).prepare(worker, branch)
    assert (prepared(place, session, branch), numbers(place, session)) == ([branch], [])
    assert two_phase(place).commit(worker, branch)
    assert (prepared(place, session, branch), numbers(place, session)) == ([], [7])
    following = branch._replace(id=uuid4().hex)
    two_phase(place).begin(worker, following)
    worker.run("insert into charges (number) values (8)")
    two_phase(place).prepare(worker, following)
    assert two_phase(place).rollback(worker, following)
    assert numbers(place, session) == [7]


@pytest.mark.parametrize(("commits", "left"), [(True, [7]), (False, [])])
def test_prepared_transaction_outlives_its_session(
    place: Place, session: Any, branch: Branch, commits: bool, left: list[int]
) -> None:
    worker = begun(place, branch)
    two_phase(place).prepare(worker, branch)
    worker.close()
    end = two_phase(place).commit if commits else two_phase(place).rollback
    until(lambda: end(session, branch))
    assert numbers(place, session) == left
    assert not end(session, branch), "there is none such any more"


def test_unprepared_transaction_ends_with_its_session(place: Place, session: Any, branch: Branch) -> None:
    begun(place, branch).close()
    until(lambda: not prepared(place, session, branch))
    session.run("insert into charges (number) values (7)")
    assert numbers(place, session) == [7]


def test_transactions_of_another_coordinator_are_not_listed(place: Place, session: Any, branch: Branch) -> None:
    worker = begun(place, branch)
    two_phase(place).prepare(worker, branch)
    assert prepared(place, session, branch._replace(coordinator=uuid4().hex)) == []


def test_a_savepoint_in_it_is_undone_alone(place: Place, session: Any, branch: Branch) -> None:
    worker = begun(place, branch)
    with suppress(ZeroDivisionError), worker.transaction():
        worker.run("insert into charges (number) values (8)")
        raise ZeroDivisionError
    two_phase(place).prepare(worker, branch)
    assert two_phase(place).commit(worker, branch)
    assert numbers(place, session) == [7]


def test_a_statement_that_failed_and_was_ignored_prepares_nothing(place: Place, session: Any, branch: Branch) -> None:
    session.run("insert into charges (number) values (8)")
    worker = begun(place, branch)
    with pytest.raises(AlreadyExists):
        worker.run("insert into charges (number) values (8)")
    with pytest.raises(DatabaseError):
        two_phase(place).prepare(worker, branch)
    worker.close()
    assert prepared(place, session, branch) == []


@pytest.fixture
def decisions(place: Place, session: Any) -> Any:
    store = place.dialect.decision_store(Address(place.dialect.default_schema, "Billing_OutboxData_Decision"))
    assert "does not exist" in next(iter(store.faults(session))).said
    store.create(session)
    store.create(session)
    assert list(store.faults(session)) == []
    return store


def test_a_coordinator_has_one_identity(place: Place, session: Any, decisions: Any) -> None:
    found = decisions.identity(session)
    assert len(bytes.fromhex(found)) == 16
    assert decisions.identity(place.connect()) == found
    assert decisions.decided(session) == []


def test_decided_with_its_transaction_and_forgotten(place: Place, session: Any, decisions: Any) -> None:
    id = uuid4().hex
    with session.transaction():
        session.run(*decisions.deciding(id, ["ledger", "stock"]))
    assert decisions.decided(place.connect()) == [Decision(id, ("ledger", "stock"))]
    decisions.forget(session, [id])
    assert decisions.decided(session) == []


def test_an_outcome_is_told_when_it_is_one(place: Place, session: Any, decisions: Any) -> None:
    """While the first transaction runs there is none, however often it is queried; a query decides nothing."""
    worker, id = place.connect(), uuid4().hex
    with suppress(ZeroDivisionError), worker.transaction():
        worker.run(*decisions.deciding(id, ["stock"]))
        assert [decisions.outcome(session, id) for _ in range(2)] == [None, None]
        raise ZeroDivisionError
    assert [decisions.outcome(session, id) for _ in range(2)] == [False, False]
    with worker.transaction():
        worker.run(*decisions.deciding(id, ["stock"]))
    assert decisions.outcome(session, id) is True
    assert decisions.decided(session) == [Decision(id, ("stock",))]


def test_transaction_ended_by_its_handler_is_not_prepared(place: Place, session: Any, branch: Branch) -> None:
    """On MariaDB the server refuses the handler's statement."""
    worker = begun(place, branch)
    if place.dialect.name == "postgresql":
        worker.raw.execute("commit; begin")
        with pytest.raises(TransactionEndedByHandler):
            two_phase(place).prepare(worker, branch)
    else:
        with pytest.raises(Exception, match="XAER_RMFAIL"):
            worker.raw.commit()
    worker.close()
    assert prepared(place, session, branch) == []
