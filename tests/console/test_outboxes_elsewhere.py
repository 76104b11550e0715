"""Outboxes and transactions in doubt of enlisted databases: shown, judged, and never mistaken for none."""

import html
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import F
from django.test import Client
from pytest_django import Settings

from pgqueue_admin.alerts import outboxes
from pgqueue_admin.alerts.evaluation import Evaluation
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.outboxes import ElsewhereWatch
from pgqueue_admin.dialects import Address, Connection, dialect_for
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.two_phase import Branch, Prepared
from pgqueue_admin.models import Alert, ForeignOutbox, OutboxFirstSeen, database_clock
from pgqueue_admin.monitor import in_doubt
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.transport import Endpoint
from tests.alerts.test_kinds import look
from tests.console.pages import Connect, shown
from tests.databases import Databases
from tests.mariadb import MariaDB
from tests.outbox.conftest import SETTINGS
from tests.outbox.test_script import ORIGINALS_OF_MYSQL
from tests.waiting import until

OPERATIONS = (
    '[{"MessageId": "sent 1", "Headers": {"Shop.<b>": "1"}, "Body": "MQ==", "Options": {"Destination": "Sales"}}]'
)
NOBODY = "postgresql://nobody@127.0.0.1:1/nowhere"


@pytest.fixture
def stock(console_database: str, databases: Databases, settings: Settings) -> Iterator[str]:
    """A second PostgreSQL database, on the server of the queues."""
    with databases.clone("empty") as dsn:
        enlist(settings, stock=dsn)
        yield dsn


@pytest.fixture
def maria(console_database: str, mariadb: MariaDB, settings: Settings) -> Iterator[str]:
    """A MariaDB with a business table; at the end nothing is left prepared in it."""
    with mariadb.database() as name:
        mariadb.run("create table charges (number integer primary key)", name)
        enlist(settings, stock=mariadb.dsn(name))
        yield mariadb.dsn(name)
        for line in mariadb.run("xa recover format='SQL'").splitlines():
            mariadb.run(f"xa rollback {line.rpartition(chr(9))[2]}")


def enlist(settings: Settings, **urls: str) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "OUTBOX_DATABASES": urls}


def text(client: Client, address: str = "/outbox/") -> str:
    return " ".join(html.unescape(shown(client, address)).split())


def pending(session: Connection, days: int = 0) -> None:
    """A pending record in each table, this many days old."""
    session.run(
        'insert into "Billing_OutboxData" ("MessageId", "Operations", "CreatedAt") '
        f"values ('a', %s, now() - interval '{days} days')",
        [OPERATIONS],
    )


def test_an_outbox_of_another_postgresql_is_listed_with_its_alias(
    as_viewer: Client, stock: str, connect: Connect
) -> None:
    postgresql().outbox_store(Address("public", "Billing_OutboxData")).create(connect(stock))
    pending(connect(stock), days=2)
    page = text(as_viewer)
    assert "stock:public.Billing_OutboxData" in page
    assert "1 record of Billing is committed and not sent" in page
    one = text(as_viewer, "/outbox/stock:public/Billing_OutboxData/")
    assert "the oldest for 2 d" in one
    assert "Nothing is sent from here: " in one
    record = shown(as_viewer, "/outbox/stock:public/Billing_OutboxData/records/a/")
    assert "sent 1" in record
    assert "Shop.<b>" not in record


def create_on_mariadb(mariadb: MariaDB, dsn: str) -> None:
    with dialect_for(dsn).connect(dsn) as session:
        dialect_for(dsn).outbox_store(Address("", "Billing_OutboxData")).create(session)
        session.run(
            "insert into Billing_OutboxData (MessageId, PersistenceVersion, Operations, CreatedAt) "
            "values ('a', '9', %s, now() - interval 2 day), ('b', '9', 'null', now())",
            [OPERATIONS],
        )
        session.run(
            "insert into Billing_OutboxData (MessageId, PersistenceVersion, Operations, Dispatched, DispatchedAt) "
            "values ('c', '9', '[]', 1, '2026-01-02 03:04:05')"
        )


def test_an_outbox_on_mariadb_is_looked_into(as_viewer: Client, maria: str, mariadb: MariaDB) -> None:
    create_on_mariadb(mariadb, maria)
    name = maria.rpartition("/")[2].partition("?")[0]
    assert "2 records of Billing are committed and not sent" in text(as_viewer)
    one = text(as_viewer, f"/outbox/stock:{name}/Billing_OutboxData/")
    assert "2, the oldest for 2 d" in one
    assert "2026-01-02" in one
    assert "unreadable" in one
    record = shown(as_viewer, f"/outbox/stock:{name}/Billing_OutboxData/records/a/")
    assert "sent 1" in record
    assert "Committed and not sent" in record
    assert as_viewer.get(f"/outbox/stock:{name}/Billing_OutboxData/records/never/").status_code == 404


@pytest.mark.parametrize("impossible", ["0000-00-00 00:00:00", "0000-03-15 12:00:00"])
def test_a_time_that_no_calendar_has_takes_no_page_away(
    as_viewer: Client, maria: str, mariadb: MariaDB, impossible: str
) -> None:
    """MariaDB stores such times unless its mode forbids them, so any writer can insert one."""
    create_on_mariadb(mariadb, maria)
    name = maria.rpartition("/")[2].partition("?")[0]
    created = "0000-00-00 00:00:00"  # the only such value that a timestamp can hold
    mariadb.run(
        f"set sql_mode = ''; update Billing_OutboxData set CreatedAt = '{created}';"
        f" update Billing_OutboxData set DispatchedAt = '{impossible}' where Dispatched = 1",
        name,
    )
    assert "2 records of Billing are committed and not sent" in text(as_viewer)
    one = text(as_viewer, f"/outbox/stock:{name}/Billing_OutboxData/")
    assert "impossible time" in one
    for record in "ac":
        assert "impossible time" in text(as_viewer, f"/outbox/stock:{name}/Billing_OutboxData/records/{record}/")
    assert ElsewhereWatch().newest()
    findings("outbox_undispatched")


def test_the_original_s_table_on_mariadb_is_one_and_seen_first_is_said(
    as_viewer: Client, maria: str, mariadb: MariaDB
) -> None:
    name = maria.rpartition("/")[2].partition("?")[0]
    mariadb.run(ORIGINALS_OF_MYSQL.format(table="Sales_OutboxData"), name)
    mariadb.run("create index Index_Dispatched on Sales_OutboxData (Dispatched)", name)
    mariadb.run("insert into Sales_OutboxData values ('a', b'0', null, '9', '[]')", name)
    assert "since when is not known" in text(as_viewer)
    assert OutboxFirstSeen.objects.count() == 0, "a page writes nothing"
    ElsewhereWatch().newest()
    an_hour_goes_by()
    assert "at least 1 h" in text(as_viewer)
    (found,) = findings("outbox_undispatched")
    assert found.subject == f'"stock:{name}"."Sales_OutboxData"'
    mariadb.run("update Sales_OutboxData set Dispatched = 1", name)
    ElsewhereWatch().newest()
    assert OutboxFirstSeen.objects.count() == 0


def an_hour_goes_by() -> None:
    OutboxFirstSeen.objects.update(first_seen_at=F("first_seen_at") - timedelta(hours=1))


def findings(kind: str) -> list[Any]:
    return list(BY_NAME[kind].find(look(outboxes=[], in_doubt=[], outboxes_elsewhere=ElsewhereWatch().newest())))


def test_a_database_that_does_not_answer_is_unknown_and_never_none(
    as_viewer: Client, stock: str, settings: Settings
) -> None:
    enlist(settings, stock=stock, ledger=NOBODY, odd="nothing://at/all")
    page = text(as_viewer)
    assert "Nothing is known of outboxes in ledger and odd" in page
    assert "whether anything waits or is in doubt in these databases is unknown" in page
    assert "No outbox table found" not in page
    assert "No dialect for nothing://" in page


@pytest.mark.parametrize(
    "url",
    [
        "mysql://root:secret@localhost/x?colour=blue",
        "mysql://root:secret@localhost:port/x",
        "mysql://root:secret/behind@localhost/x",
        "postgresql://root:secret@localhost/x?colour=blue",
        "postgresql://root:secret@localhost:port/x",
        "mssql://root:secret@localhost/x",
    ],
)
def test_a_url_that_cannot_be_read_is_unknown_as_well(
    as_viewer: Client, console_database: str, settings: Settings, url: str
) -> None:
    """Its endpoint reports the fault at start; here the page works for the others and shows no password."""
    enlist(settings, stock=url)
    page = text(as_viewer)
    assert "Nothing is known of outboxes in stock" in page
    assert "secret" not in page
    assert ElsewhereWatch().newest() is not None


def test_nothing_of_it_is_sent_switched_or_kept_from_here(as_operator: Client, stock: str, connect: Connect) -> None:
    there = connect(stock)
    postgresql().outbox_store(Address("public", "Billing_OutboxData")).create(there)
    pending(there)
    for act, said in (
        ("dispatch", {}),
        ("allow", {"allow": "yes"}),
        ("keep", {"relay": "on", "relay_after": "10 min"}),
    ):
        answer = as_operator.post(f"/outbox/stock:public/Billing_OutboxData/{act}/", said, follow=True)
        assert "only looked at" in answer.content.decode()
    assert not ForeignOutbox.objects.exists()
    assert there.value('select count(*) from "Billing_OutboxData" where "Dispatched"') == 0


def test_an_alias_that_no_database_has_leads_nowhere(as_viewer: Client, stock: str) -> None:
    assert as_viewer.get("/outbox/nobody:public/Billing_OutboxData/").status_code == 404
    assert as_viewer.get("/outbox/stock:public/Nowhere/").status_code == 404


def test_of_a_database_that_is_looked_at_only_its_schemas_are(
    as_viewer: Client, stock: str, settings: Settings, connect: Connect
) -> None:
    """And a database that both variables name is read once."""
    connect(stock).run("create schema theirs")
    for schema in ("public", "theirs"):
        postgresql().outbox_store(Address(schema, "Billing_OutboxData")).create(connect(stock))
    looked_at = {"shop": {"URL": stock, "SCHEMAS": ["public"]}}
    settings.PGQUEUE = {**settings.PGQUEUE, "OUTBOX_DATABASES": {}, "LOOKED_AT": looked_at}
    page = text(as_viewer)
    assert "shop:public.Billing_OutboxData" in page
    assert "theirs" not in page
    assert as_viewer.get("/outbox/shop:theirs/Billing_OutboxData/").status_code == 404
    settings.PGQUEUE = {**settings.PGQUEUE, "OUTBOX_DATABASES": {"stock": stock}}
    page = text(as_viewer)
    assert "stock:theirs.Billing_OutboxData" in page
    assert "shop:" not in page
    enlist(settings, shop=NOBODY)
    assert "PGQUEUE_OUTBOX_URL_SHOP is another database of the same name" in text(as_viewer)


# Prepared transactions.
def test_transaction_in_doubt_on_one_server_is_listed_once(
    as_viewer: Client, stock: str, settings: Settings, connect: Connect
) -> None:
    """By its own database if that is configured; another database of the server does not know its tables' names."""
    branch, worker = Branch("a" * 32, uuid4().hex, "stock"), connect(stock)
    worker.run("create table public.charges (number integer primary key)")
    two_phase = postgresql().two_phase_commit
    two_phase.begin(worker, branch)
    worker.run("insert into public.charges (number) values (7)")
    two_phase.prepare(worker, branch)
    try:
        page = text(as_viewer)
        assert page.count(branch.id) == 1
        assert "public.charges" in page
        enlist(settings)
        page = text(as_viewer)
        assert page.count(branch.id) == 1
        assert "public.charges" not in page
        assert "it is another database" in page
    finally:
        two_phase.rollback(worker, branch)


@pytest.fixture
def prepared(maria: str) -> Branch:
    """A transaction that a dead process left prepared."""
    dialect, branch = dialect_for(maria), Branch("a" * 32, uuid4().hex, "stock")
    assert dialect.two_phase_commit
    with dialect.connect(maria) as dead:
        dialect.two_phase_commit.begin(dead, branch)
        dead.run("insert into charges (number) values (7)")
        dialect.two_phase_commit.prepare(dead, branch)
    return branch


def test_mariadb_transaction_in_doubt_is_aged_from_its_first_sight(
    as_viewer: Client, maria: str, prepared: Branch
) -> None:
    page = text(as_viewer)
    assert prepared.id in page
    assert "not known yet" in page
    assert "its server names it only where somebody waits" in page
    assert findings("transaction_in_doubt") == []
    an_hour_goes_by()
    assert "at least 1 h" in text(as_viewer)
    (found,) = findings("transaction_in_doubt")
    assert (found.subject, found.severity) == ("database stock", "warning")
    assert "the oldest for 1\N{NO-BREAK SPACE}h" in found.said.fact


def test_mariadb_transaction_in_doubt_with_waiters_is_critical(as_viewer: Client, maria: str, prepared: Branch) -> None:
    ElsewhereWatch().newest()
    an_hour_goes_by()
    with closing(dialect_for(maria).connect(maria)) as waiter:
        insert = threading.Thread(target=tried, args=[waiter, "insert into charges (number) values (7)"])
        insert.start()
        # InnoDB shows who waits as of its last look, and looks anew only if nobody has read that for 0.1 s.
        until(lambda: findings("transaction_in_doubt")[0].severity == "critical", every=0.15)
        assert ".charges" in findings("transaction_in_doubt")[0].said.meaning
        with dialect_for(maria).connect(maria) as session:
            assert dialect_for(maria).two_phase_commit.rollback(session, prepared)  # type: ignore[union-attr]
        insert.join(60)
    assert findings("transaction_in_doubt") == []
    assert OutboxFirstSeen.objects.count() == 0


def tried(session: Any, statement: str) -> None:
    session.run(statement)


def test_waiters_are_unknown_to_a_role_without_the_grant(
    as_viewer: Client, maria: str, prepared: Branch, mariadb: MariaDB
) -> None:
    """The role may list prepared transactions, but not who waits."""
    session = dialect_for(maria).connect(maria)
    mariadb.run("create user if not exists looks@localhost identified by ''; grant select on *.* to looks@localhost")
    session.close()
    dsn = maria.replace("root@", "looks@")
    with dialect_for(dsn).connect(dsn) as session:
        (found,) = dialect_for(dsn).two_phase_commit.in_doubt(session, 10)  # type: ignore[union-attr]
    assert (found.id, found.waiting, found.tables) == (prepared.id, None, None)


def test_a_warning_of_a_database_that_went_away_stays(
    stock: str, settings: Settings, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "EVERY", 0.0)
    there, watch = connect(stock), ElsewhereWatch()
    postgresql().outbox_store(Address("public", "Billing_OutboxData")).create(there)
    pending(there, days=2)
    judge(watch)
    enlist(settings, stock=NOBODY)
    judge(watch, later=timedelta(hours=1))
    assert Alert.objects.get(kind="outbox_undispatched").resolved_at is None
    enlist(settings, stock=stock)
    there.run('update "Billing_OutboxData" set "Dispatched" = true')
    judge(watch, later=timedelta(hours=2))
    assert Alert.objects.get(kind="outbox_undispatched").resolved_at is not None


def judge(watch: ElsewhereWatch, later: timedelta = timedelta()) -> None:
    now = database_clock.now() + later
    Evaluation(look(now=now, outboxes=[], in_doubt=[], outboxes_elsewhere=watch.newest())).run()


def test_transaction_seen_from_two_databases_is_one() -> None:
    apart = in_doubt.InDoubt(Prepared("g", "c", "i", None, "o", "stock", None, 0, False), timedelta(1))
    there = in_doubt.InDoubt(Prepared("g", "c", "i", None, "o", "stock", ("public.a",), 0, True), timedelta(1), "stock")
    assert in_doubt.each_once([apart, there]) == in_doubt.each_once([there, apart]) == [there]


@pytest.mark.parametrize("is_decided", [True, False])
def test_transaction_in_doubt_names_the_outbox_that_ends_it_and_how(
    as_viewer: Client, console_database: str, maria: str, connect: Connect, is_decided: bool
) -> None:
    """A process of Billing, whose outbox is beside the queues, died with MariaDB prepared; recovery ends it."""
    outbox = Outbox(databases={"stock": maria})
    billing = Endpoint("Billing", console_database, settings=replace(SETTINGS, outbox=outbox))
    billing.create_queues()
    assert isinstance(billing.outbox, EndpointOutbox)
    coordinator, id = billing.outbox.coordinator, uuid4().hex
    assert coordinator
    with connect(console_database) as storage, dialect_for(maria).connect(maria) as dead, storage.transaction():
        storage.run(*coordinator.deciding(id, ["stock"]))
        coordinator.databases["stock"].begin(dead, id)
        dead.run("insert into charges (number) values (7)")
        coordinator.databases["stock"].prepare(dead, id)
        if not is_decided:
            storage.run('delete from "Billing_OutboxData_Decision" where "Id" = %s', [id])
    page = text(as_viewer)
    assert ("decided: it commits" in page) is is_decided
    assert ("not decided: it rolls back" in page) is not is_decided
    assert "1 in doubt" in page
    assert 'href="/outbox/public/Billing_OutboxData/"' in page
    with connect(console_database) as session:
        until(lambda: not coordinator.recover(session))
    assert "In doubt" not in text(as_viewer)
    with dialect_for(maria).connect(maria) as there:
        assert [row.number for row in there.all("select number from charges")] == ([7] if is_decided else [])
    billing.stop(0)


def test_a_table_of_decisions_with_code_of_others_is_not_asked(
    as_viewer: Client, console_database: str, maria: str, prepared: Branch, connect: Connect
) -> None:
    """Planning a query over its index would run a function that a stranger owns."""
    session = connect(console_database)
    postgresql().outbox_store(Address("public", "Billing_OutboxData")).create(session)
    store = postgresql().decision_store(Address("public", "Billing_OutboxData_Decision"))
    store.create(session)
    session.run(
        """insert into "Billing_OutboxData_Decision" ("Id", "Databases") values ('coordinator', %s)""",
        [prepared.coordinator],
    )
    assert "1 in doubt" in text(as_viewer)
    session.run(
        "create role stranger; create function public.theirs() returns integer immutable language plpgsql as "
        "'begin return 1; end'; alter function public.theirs() owner to stranger; "
        'create index on "Billing_OutboxData_Decision" ("Id") where public.theirs() = 1'
    )
    try:
        assert "1 in doubt" not in text(as_viewer)
        assert prepared.id in text(as_viewer)
    finally:
        session.run("drop owned by stranger cascade; drop role stranger")
