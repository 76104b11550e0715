"""Undispatched outbox records are warned of when they wait too long or can never be dispatched."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest
from django.db import connections
from django.db.models import F

from pgqueue_admin.alerts import outboxes
from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.outboxes import InDoubtWatch, OutboxWatch
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Endpoint, ForeignOutbox, OutboxFirstSeen, outbox_first_seen
from pgqueue_admin.monitor import in_doubt
from pgqueue_admin.services.outbox import first_seen
from tests.alerts.test_kinds import look
from tests.console.pages import Connect, shown
from tests.console.sampled import signed_in
from tests.waiting import until

PENDING = """insert into {} ("MessageId", "Operations", "CreatedAt")
    select 'pending ' || i, '[]', now() - %s * interval '1 s'
    from generate_series(1, 3) i"""


@pytest.fixture
def there(console_database: str, connect: Connect) -> Connection:
    session = connect(console_database)
    for name in ("Billing", "Partner"):
        postgresql().outbox_store(Address("public", f"{name}_OutboxData")).create(session)
    Endpoint.objects.create(name="Billing", table="Billing", outbox="optimistic", transaction_mode="receive_only")
    return session


def severities(watch: OutboxWatch) -> dict[str, str]:
    """Severity by outbox table."""
    found = BY_NAME["outbox_undispatched"].find(look(outboxes=watch.newest()))
    return {each.subject.split(".")[1].strip('"'): each.severity for each in found}


def test_overdue_sends_of_our_outbox_are_critical_of_others_a_warning(there: Connection) -> None:
    for name in ("Billing", "Partner"):
        there.run(PENDING.format(f'"{name}_OutboxData"'), [300])
    assert severities(OutboxWatch()) == {"Billing_OutboxData": "critical", "Partner_OutboxData": "warning"}


def test_sends_within_the_grace_are_no_warning(there: Connection) -> None:
    there.run(PENDING.format('"Billing_OutboxData"'), [5])
    assert severities(OutboxWatch()) == {}


def test_of_a_table_without_times_a_record_that_stays_is_stuck(
    there: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that is dispatched between two looks is not."""
    there.run('alter table "Partner_OutboxData" drop column "CreatedAt"')
    monkeypatch.setattr(outboxes, "EVERY", 0.0)
    watch = OutboxWatch()
    there.run(INSERT, ["passes"])
    assert severities(watch) == {}
    an_hour_goes_by()
    there.run('delete from "Partner_OutboxData"')
    there.run(INSERT, ["stays"])
    assert severities(watch) == {}
    assert seen() == {"stays"}
    an_hour_goes_by()
    assert severities(watch) == {"Partner_OutboxData": "warning"}
    there.run('update "Partner_OutboxData" set "Dispatched" = true')
    assert severities(watch) == {}
    assert seen() == set()


INSERT = 'insert into "Partner_OutboxData" ("MessageId", "Operations") values (%s, \'[]\')'


def an_hour_goes_by() -> None:
    OutboxFirstSeen.objects.update(first_seen_at=F("first_seen_at") - timedelta(hours=1))


def seen() -> set[str]:
    return set(OutboxFirstSeen.objects.values_list("record", flat=True))


def test_a_restart_and_the_page_know_what_was_seen_before(there: Connection) -> None:
    reader = signed_in(superuser=True)
    there.run('alter table "Partner_OutboxData" drop column "CreatedAt"')
    there.run(INSERT, ["stays"])
    assert "since when is not known" in shown(reader, "/outbox/")
    assert seen() == set(), "a page writes nothing"
    assert severities(OutboxWatch()) == {}
    an_hour_goes_by()
    assert severities(OutboxWatch()) == {"Partner_OutboxData": "warning"}
    assert "1 record of Partner is committed and not sent, by programs of others" in shown(reader, "/outbox/")
    page = " ".join(shown(reader, "/outbox/public/Partner_OutboxData/").replace("\u00a0", " ").split())
    assert "the oldest seen waiting for 1 h" in page
    assert "seen first" in shown(reader, "/outbox/public/Partner_OutboxData/records/stays/")
    there.run('delete from "Partner_OutboxData"')
    there.run(INSERT, ["another"])
    assert "since when is not known" in shown(reader, "/outbox/"), "what is gone says nothing of what came"


def test_undated_records_are_followed_up_to_a_limit(there: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """New ones are followed when some are gone; a followed record stays so even if lower ids arrive."""
    monkeypatch.setattr(outbox_first_seen, "MOST", 3)
    monkeypatch.setattr(first_seen, "MOST", 3)
    there.run('alter table "Partner_OutboxData" drop column "CreatedAt"')
    for name in ("m", "n", "o", "p"):
        there.run(INSERT, [name])
    OutboxWatch().newest()
    assert seen() == {"m", "n", "o"}
    for name in ("a", "b"):
        there.run(INSERT, [name])
    OutboxWatch().newest()
    assert seen() == {"m", "n", "o"}
    there.run("""update "Partner_OutboxData" set "Dispatched" = true where "MessageId" = 'n'""")
    OutboxWatch().newest()
    assert seen() == {"m", "a", "o"}


def test_of_a_table_that_is_gone_and_of_another_database_nothing_is_kept(there: Connection) -> None:
    there.run('alter table "Partner_OutboxData" drop column "CreatedAt"')
    there.run(INSERT, ["stays"])
    OutboxWatch().newest()
    row = OutboxFirstSeen.objects.get()
    row.pk, row.database = None, "another"
    row.save()
    OutboxWatch().newest()
    assert OutboxFirstSeen.objects.count() == 1
    there.run('drop table "Partner_OutboxData"')
    OutboxWatch().newest()
    assert seen() == set()


def test_outbox_with_our_relay_is_judged_by_its_grace(there: Connection) -> None:
    """The warning says that our relay is due to send."""
    there.run(PENDING.format('"Partner_OutboxData"'), [300])
    kept = ForeignOutbox.objects.create(schema="public", table="Partner_OutboxData", relay_seconds=200)
    assert severities(OutboxWatch()) == {}
    ForeignOutbox.objects.filter(pk=kept.pk).update(relay_seconds=100)
    (found,) = BY_NAME["outbox_undispatched"].find(look(outboxes=OutboxWatch().newest()))
    assert "relay that is switched on" in str(found)


def test_a_database_that_is_away_ends_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["queues"].settings_dict, "PORT", "1")
    assert OutboxWatch().newest() is None
    assert not BY_NAME["outbox_undispatched"].can_tell(look(outboxes=None))
    assert BY_NAME["outbox_undispatched"].can_tell(look(outboxes=[]))


# A prepared transaction that nobody ends is warned of, with its locks and the sessions that wait for it.
KIND = BY_NAME["transaction_in_doubt"]


@pytest.fixture
def gid(console_database: str) -> Iterator[str]:
    """The gid of a prepared transaction that wrote to a table of the queues' database."""
    name = f"pgqueue_{uuid4().hex}_{uuid4().hex}_stock"
    with psycopg.connect(console_database, autocommit=True) as session:
        session.execute("create table stock (number int primary key)")
        session.execute("begin")
        session.execute("insert into stock values (7)")
        session.execute(f"prepare transaction '{name}'")
        yield name
        if session.execute("select 1 from pg_prepared_xacts where gid = %s", [name]).fetchone():
            session.execute(f"rollback prepared '{name}'")


def found(name: str) -> list[Finding]:
    """Findings of this gid only: the server is shared."""
    seen = InDoubtWatch().newest() or []
    return list(KIND.find(look(in_doubt=[each for each in seen if each.name == name])))


def test_recent_prepared_transaction_is_no_warning(gid: str) -> None:
    assert found(gid) == []


def test_late_prepared_transaction_warns_until_ended(
    gid: str, console_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_doubt, "LATE", timedelta(0))
    (told,) = found(gid)
    assert told.severity == "warning"
    assert told.said.fact.startswith("Prepared and not ended: 1 transaction, the oldest for ")
    assert "They lock rows of public.stock. The recovery" in told.said.meaning
    with psycopg.connect(console_database, autocommit=True) as session:
        session.execute(f"commit prepared '{gid}'")
    assert found(gid) == []


def test_prepared_transaction_that_blocks_a_session_is_critical(
    gid: str, console_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_doubt, "LATE", timedelta(0))
    with closing(psycopg.connect(console_database, autocommit=True)) as session:
        session.pgconn.send_query(b"insert into stock values (7)")
        until(lambda: found(gid)[0].severity == "critical")
        assert "1 session waits behind them." in found(gid)[0].said.meaning


def test_a_database_that_is_away_ends_no_doubt(console_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["queues"].settings_dict, "PORT", "1")
    assert InDoubtWatch().newest() is None
    assert not KIND.can_tell(look(in_doubt=None))
    assert KIND.can_tell(look(in_doubt=[]))
