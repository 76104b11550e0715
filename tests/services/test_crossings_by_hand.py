"""Edited and typed messages go into another database once, wherever that fails (docs/decisions/028)."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import django.db
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from pgqueue_admin.archive import crossing_back
from pgqueue_admin.archive import crossings as crossing_rows
from pgqueue_admin.archive.edited_retry import EditedMessage, EditedRetry
from pgqueue_admin.archive.message_copy import ArchivedOne, WaitingOne
from pgqueue_admin.archive.message_edit import MessageEdit
from pgqueue_admin.archive.messages import EDIT_OF, ArchiveFilter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.crossing_store import CommitOutcome
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, TimedOut
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.crossing_store import PostgreSQLCrossings
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.models import AuditEntry, AuditIntent, Queue
from pgqueue_admin.services import audit_intents, message_copies, typed_messages
from pgqueue_admin.services.edited_retry import EditChanges, edited_as, retry_edited
from pgqueue_admin.services.operations import (
    crossing_decision,
    crossings,
    edits,
    lifecycle,
    reconcile,
    runner,
    selection,
)
from pgqueue_admin.services.operations.crossing_decision import decide
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.typed_messages import TypedMessage
from pgqueue_admin.transport.wire import headers as h
from tests.archived_messages import OPERATOR, archived, person
from tests.billing import KINDS, NAME, Billing, billing_of, billing_server, on_postgresql, open_crossings
from tests.killed_crossing import run_and_kill

Connect = Callable[[str], Connection]
BODY = b'{"Number": 4711}'
EDIT = """
from pgqueue_admin.archive.edited_retry import EditedMessage
from pgqueue_admin.services.edited_retry import EditChanges, retry_edited
from tests.billing import Billing
billing = Billing(os.environ["QUEUES_URL_BILLING"])
edited = EditedMessage({"Customer": "4711"}, b'{"Number": 4711}')
retry_edited(int(sys.argv[1]), billing.name, edited, billing.orders, "ana", "console", "mended", EditChanges({}, {}))
"""
SEND = """
from pgqueue_admin.services import typed_messages
from tests.billing import Billing
from tests.services.test_crossings_by_hand import TYPED
typed_messages.send(Billing(os.environ["QUEUES_URL_BILLING"]).orders, TYPED, "ana", "console")
"""
TYPED = TypedMessage("Shop.PlaceOrder", BODY.decode(), headers="Customer: 4711")
PLACES = [
    ("before the intent", 0),
    ("after the intent", 0),
    ("before the mark", 0),
    ("before the commit there", 0),
    ("after the commit there", 1),
    ("within the end", 1),
    ("after the end", 1),
]


@pytest.fixture(scope="module")
def server_there() -> Iterator[PostgreSQL]:
    with billing_server() as server:
        yield server


@pytest.fixture(params=KINDS)
def billing(request: pytest.FixtureRequest, settings: Settings, archive: None) -> Iterator[Billing]:
    with billing_of(request, settings) as there:
        yield there


@pytest.fixture
def here(archived_console: str, connect: Connect) -> Connection:
    return connect(archived_console)


def edit(billing: Billing, archive_id: int, person: Any, body: bytes | None = BODY) -> EditedRetry:
    edited = EditedMessage({"Customer": "4711"}, body)
    return retry_edited(
        archive_id, billing.name, edited, billing.orders, person, "console", "mended", EditChanges({}, {})
    )


def verbs(here: Connection, archive_id: int) -> list[str]:
    asked = "select verb from messages.archive_event where archive_id = %(id)s order by id"
    return [row.verb for row in here.all(asked, {"id": archive_id})]


def audited_once(verb: str) -> bool:
    """Whether the act has an audit entry with a known outcome; no intent is left that could become another."""
    reconcile.settle()
    entries = AuditEntry.objects.filter(verb=verb)
    assert not AuditIntent.objects.exists()
    assert len(entries) <= 1
    return bool(entries) and (entries[0].who, "outcome" in (entries[0].after or {})) == ("ana", False)


def is_whole(archive_id: int, billing: Billing, here: Connection) -> None:
    """It is there once, as written, and here it is marked as edited and retried."""
    (row,) = billing.rows()
    sent = h.parse(row.headers)
    assert (bytes(row.body), sent["Customer"], row.expires) == (BODY, "4711", None)
    before = archived(archive_id)
    assert sent[EDIT_OF] == before.message_id
    assert sent[h.MESSAGE_ID] != before.message_id
    assert "NServiceBus.FailedQ" not in sent
    assert (before.state, before.crossing) == ("retried", None)
    assert verbs(here, archive_id) == ["edited and retried"]
    assert open_crossings(here) == 0
    assert here.value("select count(*) from messages.crossing_copy") == 0


def test_an_edited_message_goes_into_another_database(billing: Billing, here: Connection, ana: User) -> None:
    (one,) = billing.failed(1)
    sent = edit(billing, one, ana)
    assert (sent.outcome.result, sent.outcome.target, sent.is_on_its_way) == ("done", billing.name, False)
    is_whole(one, billing, here)
    (row,) = billing.rows()
    assert (sent.outcome.sent_as, sent.message_id) == (row.id, h.parse(row.headers)[h.MESSAGE_ID])
    entry = AuditEntry.objects.get(verb="edit")
    assert (entry.who, entry.count, entry.reason) == ("ana", 1, "mended")
    assert edited_as(one) == sent.message_id
    assert edit(billing, one, ana).outcome.result == "skipped"
    assert len(billing.rows()) == 1


def test_a_body_that_nobody_wrote_anew_is_sent_as_it_was(billing: Billing, here: Connection, ana: User) -> None:
    (one,) = billing.failed(1)
    was = here.value("select body from messages.message_archive where id = %(id)s", {"id": one})
    assert edit(billing, one, ana, None).outcome.result == "done"
    (row,) = billing.rows()
    assert bytes(row.body) == bytes(was)


def test_a_message_of_here_is_told_from_where_it_was_sent(billing: Billing, here: Connection, ana: User) -> None:
    (one,) = billing.failed(1)
    here.run(
        "update messages.message_archive set target_schema = 'public', target_table = 'Billing' where id = %(id)s",
        {"id": one},
    )
    assert edit(billing, one, ana).outcome.result == "done"
    assert archived(one).target == billing.orders


@pytest.mark.chaos
@pytest.mark.parametrize(("where", "there"), PLACES)
def test_a_kill_anywhere_loses_and_doubles_no_edit(
    billing: Billing, here: Connection, archived_console: str, ana: User, where: str, there: int
) -> None:
    (one,) = billing.failed(1)
    run_and_kill(str(one), archived_console, billing, where, EDIT)
    assert len(billing.arrived()) == there
    reconcile.settle()
    assert archived(one).crossing is None
    assert audited_once(verb="edit") is bool(there)
    if not there:
        assert (archived(one).state, open_crossings(here)) == ("dead", 0)
        assert edit(billing, one, ana).outcome.result == "done", "it can be edited again"
    is_whole(one, billing, here)


def test_a_database_that_is_down_takes_nothing(billing: Billing, here: Connection, ana: User) -> None:
    """It went down after its queue was judged."""
    (one,) = billing.failed(1)
    leave = crossing_rows.leave

    def gone(*about: Any) -> None:
        raise DatabaseDown("the wire was cut")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossing_rows, "leave", gone)
        with pytest.raises(crossings.NotCarried, match="the wire was cut"):
            edit(billing, one, ana)
    assert leave is crossing_rows.leave
    assert (archived(one).state, open_crossings(here), billing.rows()) == ("dead", 0, [])
    assert not AuditEntry.objects.filter(verb="edit")


def test_an_edit_of_which_nobody_heard_says_so_and_is_settled(
    billing: Billing, here: Connection, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = billing.failed(1)

    def away(*about: Any) -> None:
        raise DatabaseDown("this process hears no more")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossings, "_finish", away)
        sent = edit(billing, one, ana)
    assert sent.is_on_its_way
    assert "on its way into the database billing" in (sent.outcome.why or "")
    entry = AuditEntry.objects.get(verb="edit")
    assert ((entry.after or {})["outcome"], entry.count) == ("not known", 1)
    assert edit(billing, one, ana).outcome.result == "skipped"
    reconcile.settle()
    is_whole(one, billing, here)
    assert edited_as(one) == sent.message_id


@pytest.mark.parametrize("kind", [DatabaseDown, TimedOut])
def test_an_edit_whose_first_database_goes_away_is_in_the_audit(
    billing: Billing, here: Connection, ana: User, kind: type[DatabaseError]
) -> None:
    """It is sent and will arrive: its author is recorded although no database could be queried."""
    (one,) = billing.failed(1)

    def away(*about: Any) -> Any:
        raise kind("the first database says nothing")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossings, "_finish", away)
        patch.setattr(crossing_rows, "get", then_away(crossing_rows.get, away))
        sent = edit(billing, one, ana)
    assert sent.is_on_its_way
    entry = AuditEntry.objects.get(verb="edit")
    assert ((entry.after or {})["outcome"], entry.count, entry.reason) == ("not known", 1, "mended")
    reconcile.settle()
    is_whole(one, billing, here)
    assert edited_as(one) == sent.message_id


@pytest.mark.parametrize("kind", [DatabaseDown, TimedOut])
def test_a_typed_message_whose_first_database_goes_away_may_have_been_sent(
    billing: Billing, here: Connection, ana: User, known: Queue, kind: type[DatabaseError]
) -> None:
    def away(*about: Any) -> Any:
        raise kind("the first database says nothing")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossings, "_finish", away)
        patch.setattr(crossing_rows, "get", then_away(crossing_rows.get, away))
        with pytest.raises(OutcomeUnknown):
            typed_messages.send(billing.orders, TYPED, ana, "console")
    assert (AuditEntry.objects.get(verb="send").after or {})["outcome"] == "not known"
    reconcile.settle()
    assert (open_crossings(here), len(sent(billing))) == (0, 1)


def then_away(does: Callable[..., Any], away: Callable[..., Any]) -> Callable[..., Any]:
    """The first call works; later ones call ``away``."""
    answers = iter([does])
    return lambda *about: next(answers, away)(*about)


def test_a_queue_there_that_refuses_an_edit_keeps_it_dead(billing: Billing, here: Connection, ana: User) -> None:
    (one,) = billing.failed(1)
    with billing.refusing():
        sent = edit(billing, one, ana)
    assert (sent.outcome.result, "did not take it" in (sent.outcome.why or "")) == ("failed", True)
    assert (archived(one).state, verbs(here, one), open_crossings(here)) == ("dead", [], 0)


def test_an_edit_that_nobody_can_be_told_of_is_decided_by_a_person(
    billing: Billing, here: Connection, archived_console: str, ana: User
) -> None:
    (one,) = billing.failed(1)
    run_and_kill(str(one), archived_console, billing, "after the commit there", EDIT)
    here.run("update messages.crossing set mark = '1 ' || substr(mark, strpos(mark, ' ') + 1)")
    reconcile.settle()
    (undecided,) = crossings.undecided()
    assert undecided.rows == {f"{billing.orders.schema}.Orders": [billing.rows()[0].id]}
    assert decide(undecided.crossing.id, True, ana, "console", "it is there") == 1
    is_whole(one, billing, here)


def test_read_only_database_takes_no_edit(billing: Billing, here: Connection, ana: User, settings: Settings) -> None:
    there = billing.looked_at(writable=False)
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": there}
    (one,) = billing.failed(1)
    sent = edit(billing, one, ana)
    assert (sent.outcome.result, "are only looked at" in (sent.outcome.why or "")) == ("failed", True)
    assert billing.rows() == []


def test_edit_needs_the_retry_right(billing: Billing, here: Connection, viewer: User) -> None:
    (one,) = billing.failed(1)
    with pytest.raises(OperationNotAllowed):
        edit(billing, one, viewer)
    assert (billing.rows(), open_crossings(here)) == ([], 0)


@pytest.fixture
def editor(archive: None) -> User:
    return person("ed", *OPERATOR, "read_message")


MANY = 120


def tenants(billing: Billing) -> dict[str, str | None]:
    """The tenant of each sent message by the old message's id."""
    sent = [h.parse(row.headers) for row in billing.rows()]
    assert len({headers[h.MESSAGE_ID] for headers in sent}) == len(sent)
    return {str(headers[EDIT_OF]): headers.get("Tenant") for headers in sent}


@pytest.mark.chaos
@pytest.mark.parametrize(("where", "there"), [(where, there * 50) for where, there in PLACES])
def test_a_kill_anywhere_loses_and_doubles_no_edit_of_many(
    billing: Billing, here: Connection, archived_console: str, editor: User, where: str, there: int
) -> None:
    ids = billing.failed(MANY)
    names = {archived(each).message_id for each in ids}
    operation = selection.freeze("retry", ArchiveFilter(queue=billing.name), editor, "console", "it was misspelt")
    edits.propose(operation.pk, MessageEdit("header", "Tenant", "add", "blue"), editor)
    lifecycle.start(operation.pk, editor)
    run_and_kill(str(operation.pk), archived_console, billing, where)
    assert len(billing.rows()) == there
    reconcile.settle()
    runner.run(operation.pk)
    operation.refresh_from_db()
    assert (operation.state, operation.done, operation.failed) == ("done", MANY, 0)
    assert tenants(billing) == dict.fromkeys(names, "blue")
    assert len(billing.rows()) == MANY
    asked = "select verb, count(*) as number from messages.archive_event where operation = %(pk)s group by verb"
    events = {row.verb: row.number for row in here.all(asked, {"pk": operation.pk})}
    assert events == {"edited and retried": MANY}
    assert open_crossings(here) == 0


def test_messages_unchanged_by_an_edit_of_many_are_not_sent(billing: Billing, here: Connection, editor: User) -> None:
    first, second = billing.failed(2)
    here.run(
        "update messages.message_archive set headers = replace(headers, '{', '{\"Tenant\":\"blue\",')"
        " where id = %(id)s",
        {"id": first},
    )
    operation = selection.freeze("retry", ArchiveFilter(queue=billing.name), editor, "console", "it was misspelt")
    edits.propose(operation.pk, MessageEdit("header", "Tenant", "add", "blue"), editor)
    lifecycle.start(operation.pk, editor)
    runner.run(operation.pk)
    operation.refresh_from_db()
    assert (operation.state, operation.done) == ("done", 1)
    assert operation.skipped + operation.failed == 1
    assert (archived(first).state, archived(second).state) == ("dead", "retried")
    assert tenants(billing) == {archived(second).message_id: "blue"}
    assert open_crossings(here) == 0


@pytest.fixture
def known(billing: Billing) -> Queue:
    """Its queue, where acts by hand are allowed."""
    about = {"kind": "input", "first_seen_at": timezone.now(), "acts_allowed": True}
    return Queue.objects.create(schema=billing.orders.schema, table=billing.orders.table, **about)


def sent(billing: Billing) -> list[str | None]:
    return [h.parse(row.headers)[h.ENCLOSED_MESSAGE_TYPES] for row in billing.rows()]


def test_a_typed_message_goes_into_another_database(
    billing: Billing, here: Connection, ana: User, known: Queue
) -> None:
    message_id = typed_messages.send(billing.orders, TYPED, ana, "console", "asked for")
    (row,) = billing.rows()
    headers = h.parse(row.headers)
    assert (headers[h.MESSAGE_ID], headers["Customer"], bytes(row.body)) == (message_id, "4711", BODY)
    assert row.expires is None
    entry = AuditEntry.objects.get(verb="send")
    assert (entry.who, entry.subject, entry.count, entry.reason) == ("ana", billing.name, 1, "asked for")
    assert open_crossings(here) == 0


@on_postgresql
def test_the_other_database_is_told_to_forget_what_arrived(
    billing: Billing, here: Connection, ana: User, known: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL Server keeps a row for each until then."""
    marks, forgotten, leave = list[str](), list[str](), crossing_rows.leave

    def left(here: Connection, crossing: Any, mark: str, refused: Any) -> None:
        marks.append(mark)
        leave(here, crossing, mark, refused)

    monkeypatch.setattr(crossing_rows, "leave", left)
    monkeypatch.setattr(PostgreSQLCrossings, "forget", lambda store, session, mark: forgotten.append(mark))
    typed_messages.send(billing.orders, TYPED, ana, "console")
    (one,) = billing.failed(1)
    edit(billing, one, ana)
    assert (len(marks), forgotten) == (2, marks)


def test_an_act_is_not_over_before_the_audit_has_it(
    billing: Billing, here: Connection, ana: User, known: Queue
) -> None:
    def away(*about: Any, **more: Any) -> None:
        raise django.db.OperationalError("the console's database is away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AuditEntry.objects, "create", away)
        with pytest.raises(OutcomeUnknown):
            typed_messages.send(billing.orders, TYPED, ana, "console")
        reconcile.settle()
        assert (len(sent(billing)), open_crossings(here)) == (1, 1)
    assert audited_once(verb="send")
    assert open_crossings(here) == 0


def test_send_without_a_writable_audit_does_nothing(
    billing: Billing, here: Connection, ana: User, known: Queue
) -> None:
    def away(*about: Any, **more: Any) -> None:
        raise django.db.OperationalError("the console's database is away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AuditIntent.objects, "create", away)
        with pytest.raises(django.db.OperationalError):
            typed_messages.send(billing.orders, TYPED, ana, "console")
    assert not audited_once(verb="send")
    assert (sent(billing), open_crossings(here)) == ([], 0)


def test_intent_ended_by_another_console_is_audited_as_not_known(here: Connection, ana: User) -> None:
    audit_intents.keep(4711, who="ana", verb="send", noun="message", subject=NAME, origin="console")
    reconcile.settle()
    assert not AuditEntry.objects.exists(), "whoever sends may still be at it"
    AuditIntent.objects.update(at=timezone.now() - timedelta(minutes=11))
    reconcile.settle()
    assert (AuditEntry.objects.get().after, AuditIntent.objects.count()) == ({"outcome": "not known"}, 0)


@pytest.mark.chaos
@pytest.mark.parametrize(("where", "there"), PLACES)
def test_a_kill_anywhere_doubles_no_typed_message(
    billing: Billing, here: Connection, archived_console: str, ana: User, known: Queue, where: str, there: int
) -> None:
    run_and_kill("0", archived_console, billing, where, SEND)
    reconcile.settle()
    assert sent(billing) == ["Shop.PlaceOrder"] * there
    assert audited_once(verb="send") is bool(there)
    assert open_crossings(here) == 0
    assert here.value("select count(*) from messages.crossing_copy") == 0
    typed_messages.send(billing.orders, TYPED, ana, "console")
    assert len(sent(billing)) == there + 1


def test_a_typed_message_of_which_nobody_heard_says_so(
    billing: Billing, here: Connection, ana: User, known: Queue
) -> None:
    def away(*about: Any) -> None:
        raise DatabaseDown("this process hears no more")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossings, "_finish", away)
        with pytest.raises(OutcomeUnknown, match="on its way into the database billing"):
            typed_messages.send(billing.orders, TYPED, ana, "console")
    assert (AuditEntry.objects.get(verb="send").after or {})["outcome"] == "not known"
    (pending,) = crossings.pending(here)
    assert (pending.is_typed, pending.rows) == (True, {f"{billing.orders.schema}.Orders": [billing.rows()[0].id]})
    reconcile.settle()
    assert (open_crossings(here), len(sent(billing))) == (0, 1)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_typed_message_that_nobody_can_be_told_of_is_decided_by_a_person(
    billing: Billing, here: Connection, archived_console: str, ana: User, known: Queue, is_there: bool
) -> None:
    run_and_kill("0", archived_console, billing, "after the commit there", SEND)
    here.run("update messages.crossing set mark = '1 ' || substr(mark, strpos(mark, ' ') + 1)")
    reconcile.settle()
    (undecided,) = crossings.undecided()
    assert (undecided.number, undecided.is_typed) == (1, True)
    assert decide(undecided.crossing.id, is_there, ana, "console", "seen") == 1
    assert (open_crossings(here), len(sent(billing))) == (0, 1)


def test_a_decision_is_in_the_audit_although_its_process_was_killed(
    billing: Billing, here: Connection, ana: User, known: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crossings, "_finish", lambda *about: (_ for _ in ()).throw(DatabaseDown("gone")))
    monkeypatch.setattr(crossings, "_told", lambda crossing: CommitOutcome("not_known", "It was promoted."))
    with pytest.raises(OutcomeUnknown):
        typed_messages.send(billing.orders, TYPED, ana, "console")
    reconcile.settle()
    (one,) = crossings.undecided()
    decided = crossings.end_as

    def then_killed(*about: Any) -> None:
        decided(*about)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossing_decision, "end_as", then_killed)
        with pytest.raises(KeyboardInterrupt):
            decide(one.crossing.id, False, ana, "console", "it is not there")
    assert open_crossings(here) == 0
    AuditIntent.objects.update(at=timezone.now() - timedelta(minutes=11))
    reconcile.settle()
    entry = AuditEntry.objects.get(verb="decide")
    assert (entry.who, entry.reason, (entry.after or {})["arrived"]) == ("ana", "it is not there", False)
    assert not AuditIntent.objects.exists()


def test_act_in_doubt_by_another_console_is_audited_with_the_decision(
    billing: Billing, here: Connection, archived_console: str, ana: User, known: Queue
) -> None:
    """That console has no intent for it, so this one's still exists when a user decides here."""
    run_and_kill("0", archived_console, billing, "after the commit there", SEND)
    here.run("update messages.crossing set mark = '1 ' || substr(mark, strpos(mark, ' ') + 1)")
    with pytest.MonkeyPatch.context() as another:
        another.setattr(audit_intents, "write", lambda crossing, **after: None)
        reconcile.settle()
    (undecided,) = crossings.undecided()
    decide(undecided.crossing.id, False, ana, "console", "it is not there")
    entries = {entry.verb: (entry.who, entry.after or {}) for entry in AuditEntry.objects.all()}
    assert {verb: who for verb, (who, _) in entries.items()} == {"send": "ana", "decide": "ana"}
    assert entries["send"][1]["outcome"] == "not known"
    assert not AuditIntent.objects.exists()


def test_act_with_an_unknown_outcome_says_that_a_person_decides(
    billing: Billing, here: Connection, ana: User, known: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to the commit was lost, and another server answers the query."""
    carry = crossing_back.carry

    def cut(*about: Any) -> None:
        carry(*about)
        raise DatabaseDown("the wire was cut")

    monkeypatch.setattr(crossing_back, "carry", cut)
    monkeypatch.setattr(crossings, "_told", lambda crossing: CommitOutcome("not_known", "It was promoted."))
    (one,) = billing.failed(1)
    sent = edit(billing, one, ana)
    assert (sent.is_on_its_way, "a person decides" in (sent.outcome.why or "")) == (True, True)
    with pytest.raises(OutcomeUnknown, match="a person decides"):
        typed_messages.send(billing.orders, TYPED, ana, "console")
    assert [each.number for each in crossings.undecided()] == [1, 1]


def test_a_queue_there_that_refuses_a_typed_message_has_none(
    billing: Billing, here: Connection, ana: User, known: Queue
) -> None:
    with billing.refusing(), pytest.raises(OperationRefused, match="other database did not take it"):
        typed_messages.send(billing.orders, TYPED, ana, "console")
    assert (billing.rows(), open_crossings(here)) == ([], 0)
    assert not AuditEntry.objects.filter(verb="send")


@on_postgresql
@pytest.mark.parametrize(
    ("why", "said"),
    [("not allowed", "can be switched on"), ("looked at", "are only looked at"), ("code", "Code of others would run")],
)
def test_where_a_typed_message_does_not_go(
    billing: Billing, here: Connection, ana: User, known: Queue, settings: Settings, why: str, said: str
) -> None:
    if why == "not allowed":
        Queue.objects.update(acts_allowed=False)
    if why == "looked at":
        there = billing.looked_at(writable=False)
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": there}
    with postgresql().connect(billing.dsn) as admin:
        if why == "code":
            admin.run("""create role somebody; create function public.theirs() returns trigger language plpgsql as
                $$ begin return new; end $$; alter function public.theirs() owner to somebody;
                create trigger theirs before insert on public."Orders" for each row execute function public.theirs()""")
        try:
            with pytest.raises(OperationRefused, match=said):
                typed_messages.send(billing.orders, TYPED, ana, "console")
        finally:
            if why == "code":
                admin.run('drop trigger theirs on public."Orders"; drop function public.theirs(); drop role somebody')
    assert (billing.rows(), open_crossings(here)) == ([], 0)


def test_an_archived_message_is_copied_into_another_database(
    billing: Billing, here: Connection, ana: User, known: Queue
) -> None:
    (one,) = billing.failed(1)
    before = archived(one)
    message_id = message_copies.copy(ArchivedOne(one), billing.orders, ana, "console", "once more")
    assert (billing.arrived(), open_crossings(here)) == ([message_id], 0)
    (row,) = billing.rows()
    assert bytes(row.body) == bytes(
        here.value("select body from messages.message_archive where id = %(id)s", {"id": one})
    )
    assert h.parse(row.headers)[h.RELATED_TO] == before.message_id
    assert archived(one).state == "dead", "the original stays as it is"
    entry = AuditEntry.objects.get(verb="copy")
    assert (entry.who, entry.reason, (entry.before or {})["archive_id"]) == ("ana", "once more", one)
    assert (entry.after or {})["message_id"] == message_id
    with pytest.raises(OperationRefused, match="not waiting ones"):
        message_copies.copy(WaitingOne(billing.orders, row.id), billing.orders, ana, "console")
    Queue.objects.update(acts_allowed=False)
    with pytest.raises(OperationRefused, match="can be switched on"):
        message_copies.copy(ArchivedOne(one), billing.orders, ana, "console")
    assert len(billing.rows()) == 1


def test_errors_are_of_one_family() -> None:
    assert issubclass(crossings.NotCarried, DatabaseError)
    assert not issubclass(crossings.NotCarried, DatabaseDown), "whether it was sent is known"
