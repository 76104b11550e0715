"""Sends that are left in an outbox: warned of when they wait too long, and of what is on its way never."""

from datetime import timedelta

import pytest
from django.db import connections

from pgqueue_admin.alerts import outboxes
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.outboxes import OutboxWatch
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Endpoint
from tests.alerts.test_kinds import look
from tests.console.pages import Connect

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
    """By the subject."""
    found = BY_NAME["outbox_undispatched"].find(look(outboxes=watch.newest()))
    return {each.subject.split(".")[1].strip('"'): each.severity for each in found}


def test_what_waits_beyond_its_grace_is_told_by_whose_it_is(there: Connection) -> None:
    for name in ("Billing", "Partner"):
        there.run(PENDING.format(f'"{name}_OutboxData"'), [300])
    assert severities(OutboxWatch()) == {"Billing_OutboxData": "critical", "Partner_OutboxData": "warning"}


def test_what_is_on_its_way_is_not(there: Connection) -> None:
    there.run(PENDING.format('"Billing_OutboxData"'), [5])
    assert severities(OutboxWatch()) == {}


def test_of_a_table_without_times_a_record_that_stays_is_stuck(
    there: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And others that pass by are not."""
    there.run('alter table "Partner_OutboxData" drop column "CreatedAt"')
    insert = 'insert into "Partner_OutboxData" ("MessageId", "Operations") values (%s, \'[]\')'
    monkeypatch.setattr(outboxes, "EVERY", 0.0)
    monkeypatch.setattr(outboxes, "GRACE", timedelta(microseconds=1))
    watch = OutboxWatch()
    there.run(insert, ["passes"])
    assert severities(watch) == {}
    there.run('delete from "Partner_OutboxData"')
    there.run(insert, ["stays"])
    assert severities(watch) == {}
    assert severities(watch) == {"Partner_OutboxData": "warning"}


def test_a_database_that_is_away_ends_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["queues"].settings_dict, "PORT", "1")
    assert OutboxWatch().newest() is None
    assert not BY_NAME["outbox_undispatched"].can_tell(look(outboxes=None))
    assert BY_NAME["outbox_undispatched"].can_tell(look(outboxes=[]))
