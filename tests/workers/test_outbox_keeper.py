"""Outboxes of other programs: pending sends are sent once and old records deleted, if switched on (O8, O9)."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.db.models import F

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Endpoint, ForeignOutbox, OutboxFirstSeen, Process
from pgqueue_admin.monitor import outboxes
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.outbox import acts
from pgqueue_admin.services.outbox.checked_outbox import CheckedOutbox, Relayed, engine_for
from pgqueue_admin.services.outbox.switches import ByHandOutbox, keep, this_database
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.workers.processes import outbox_keeper_process
from pgqueue_admin.workers.processes.outbox_keeper_process import OutboxKeeperProcess
from tests.console.sampled import elsewhere, sample, signed_in
from tests.hostile import change_detector
from tests.waiting import until
from tests.workers.host import ROOT, House

BILLING = Address("public", "Billing_OutboxData")
KEEPER = Path(__file__).with_name("dying_outbox_keeper.py")
UNDISPATCHED = (
    'select "MessageId" as id, "Operations"::text as operations from "Billing_OutboxData" where not "Dispatched"'
)
CAME = ("Sales", "audit", "Shipping", "Shop.Web", "Mailer", '"Legacy"."Invoicing"')
DAY = 86_400


@pytest.fixture
def look(recorded_console: str, connect: Callable[[str], Connection]) -> Connection:
    """The recorded shop, whose queues were sampled once."""
    sample()
    return connect(recorded_console)


@pytest.fixture
def keeper(look: Connection) -> Iterator[OutboxKeeperProcess]:
    made = OutboxKeeperProcess()
    yield made
    made.close()


def switched_on(**values: Any) -> ForeignOutbox:
    row, _ = ForeignOutbox.objects.update_or_create(
        schema="public", table="Billing_OutboxData", defaults={"database": this_database(), **values}
    )
    return row


def trouble() -> str:
    return ForeignOutbox.objects.get().trouble


def came(look: Connection, wanted: Counter[str]) -> Counter[str]:
    """How often each wanted message arrived in any queue."""
    named = (name if name.startswith('"') else f'"{name}"' for name in CAME)
    ids = (
        h.parse(row.headers).get(h.MESSAGE_ID) or ""
        for name in named
        for row in look.all(f"select headers from {name}")
    )
    return Counter(each for each in ids if each in wanted)


def wanted_of(look: Connection) -> Counter[str]:
    """Number of queues each message of a pending record goes to; an event goes to each subscriber's."""
    outbox = engine_for(BILLING).outbox
    found = Counter[str]()
    for row in look.all(
        postgresql().outbox.hold_pending(table=BILLING), {"ids": [each.id for each in look.all(UNDISPATCHED)]}
    ):
        found.update(str(each.message_id) for each in outbox.undispatched(row))  # type: ignore[union-attr]
    return found


def running(console: str, at: int) -> "subprocess.Popen[bytes]":
    names = {"DATABASE_URL": console, "QUEUES_URL": console, "PYTHONPATH": str(ROOT), "SECRET_KEY": "of the tests"}
    settings = {"DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.base_settings"}
    watched = {"PGQUEUE_QUEUE_SCHEMAS": "public,Legacy,messages"}
    return subprocess.Popen([sys.executable, str(KEEPER), str(at)], env={**os.environ, **names, **settings, **watched})


def test_killed_relay_beside_a_dispatch_by_hand_sends_each_once(look: Connection, recorded_console: str) -> None:
    """The twelve records of a killed endpoint of the original, with audit copies and events."""
    before, wanted = [row.id for row in look.all(UNDISPATCHED)], wanted_of(look)
    assert len(before) == 12
    already = came(look, wanted)
    switched_on(relay_seconds=0, dispatch_allowed=True)
    assert running(recorded_console, at=5).wait(60) == -signal.SIGKILL
    assert [row.id for row in look.all(UNDISPATCHED)] == before, "what was sent and not committed is sent by nobody"
    engine = engine_for(BILLING)
    with running(recorded_console, at=0) as relay:
        try:
            by_hand = acts.dispatch(ByHandOutbox(engine.outbox, BILLING), before, "tester", "test")  # type: ignore[arg-type]
            until(lambda: look.all(UNDISPATCHED) == [])
            until(lambda: by_hand.records + ForeignOutbox.objects.get().relayed == 12)
        finally:
            relay.terminate()
            relay.wait(30)
            engine.stop(0)
    assert came(look, wanted) - already == wanted
    entries = AuditEntry.objects.filter(verb="dispatch", noun="outbox")
    assert sum((each.after or {})["records"] for each in entries) == 12


def test_outbox_that_is_not_switched_on_is_never_written(look: Connection, keeper: OutboxKeeperProcess) -> None:
    """The sampling role may only read, so the database would report a write; a role with rights writes nothing."""
    switched_on(dispatch_allowed=True)
    before = change_detector.versions(look)
    with (
        change_detector.nothing_but_select(look, ["public", "messages", "Legacy"]) as clerk,
        elsewhere("queues", **clerk),
    ):
        reading = OutboxKeeperProcess()
        reading.look()
        assert trouble() == ""
        switched_on(relay_seconds=0, keep_seconds=DAY)
        reading.look()
        assert "may not" in trouble()
        reading.close()
    switched_on(relay_seconds=None, keep_seconds=None)
    keeper.look()
    after = change_detector.versions(look)
    ours = {name for name in after if any(word in name for word in ("foreignoutbox", "process", "outboxfirstseen"))}
    assert {name for name in after if after[name] != before.get(name)} <= ours


def test_the_grace_begins_when_a_record_is_seen_first(look: Connection, keeper: OutboxKeeperProcess) -> None:
    switched_on(relay_seconds=3600)
    keeper.look()
    keeper.look()
    assert len(look.all(UNDISPATCHED)) == 12
    kept = ForeignOutbox.objects.get()
    assert kept.looked_at
    a_second = timedelta(seconds=1)  # one time is the database's, the other is counted on from it
    assert OutboxFirstSeen.objects.filter(first_seen_at__lte=kept.looked_at + a_second).count() == 12
    page = " ".join(signed_in(superuser=True).get("/outbox/public/Billing_OutboxData/").content.decode().split())
    assert "12, the oldest seen waiting for" in page
    switched_on(relay_seconds=0)
    keeper.look()
    assert look.all(UNDISPATCHED) == []
    assert not OutboxFirstSeen.objects.exists()
    (entry,) = AuditEntry.objects.filter(verb="dispatch")
    assert (entry.subject, (entry.after or {})["records"]) == ('"public"."Billing_OutboxData"', 12)
    assert look.value('select count(*) from "Billing_OutboxData"') == 1164, "nothing is deleted: that is another switch"


def test_a_keeper_that_begins_anew_goes_on_counting(look: Connection) -> None:
    switched_on(relay_seconds=3600)
    for sent in (12, 12, 0):
        keeper = OutboxKeeperProcess()
        keeper.look()
        keeper.close()
        assert len(look.all(UNDISPATCHED)) == sent
        OutboxFirstSeen.objects.update(first_seen_at=F("first_seen_at") - timedelta(minutes=40))


def test_a_record_that_somebody_has_locked_is_left_to_them(
    look: Connection, keeper: OutboxKeeperProcess, recorded_console: str, connect: Callable[[str], Connection]
) -> None:
    switched_on(relay_seconds=0)
    theirs, one = connect(recorded_console), look.all(UNDISPATCHED)[0].id
    with theirs.transaction():
        theirs.run('select from "Billing_OutboxData" where "MessageId" = %s for update', [one])
        keeper.look()
        assert [row.id for row in look.all(UNDISPATCHED)] == [one]
    keeper.look()
    assert look.all(UNDISPATCHED) == []


def test_unsendable_record_is_reported_and_holds_up_no_other(look: Connection, keeper: OutboxKeeperProcess) -> None:
    bad = [{"MessageId": "1", "Headers": {}, "Body": "", "Options": {"Destination": "Nowhere"}}]
    insert = 'insert into "Billing_OutboxData" ("MessageId", "Dispatched", "Operations") values (%s, false, %s)'
    look.run(insert, ["!", orjson.dumps(bad).decode()])
    switched_on(relay_seconds=0)
    keeper.look()
    assert [row.id for row in look.all(UNDISPATCHED)] == ["!"]
    assert "record ! is not sent" in trouble()
    assert "Nowhere" in signed_in(superuser=True).get("/outbox/public/Billing_OutboxData/").content.decode()


def test_each_batch_is_audited_though_the_next_one_fails(
    look: Connection, keeper: OutboxKeeperProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_keeper_process, "RELAYED_AT_ONCE", 5)
    relay_those, batches = CheckedOutbox.relay_those, count(1)

    def breaks(*given: Any) -> Relayed:
        if next(batches) == 2:
            raise TimedOut("it took too long")
        return relay_those(*given)

    monkeypatch.setattr(CheckedOutbox, "relay_those", breaks)
    switched_on(relay_seconds=0)
    keeper.look()
    assert "took too long" in trouble()
    (entry,) = AuditEntry.objects.filter(verb="dispatch")
    assert (entry.after or {})["records"] == 5
    assert len(look.all(UNDISPATCHED)) == 7
    assert ForeignOutbox.objects.get().relayed == 5


def test_clean_up_deletes_what_was_kept_for_long_enough_and_sends_nothing(
    look: Connection, keeper: OutboxKeeperProcess
) -> None:
    young = """update "Billing_OutboxData" set "DispatchedAt" = now() at time zone 'utc' - interval '6 days'
        where "MessageId" in (select "MessageId" from "Billing_OutboxData" where "Dispatched" limit 7)"""
    look.run(young)
    switched_on(keep_seconds=7 * DAY)
    keeper.look()
    assert look.value('select count(*) from "Billing_OutboxData" where "Dispatched"') == 7
    assert len(look.all(UNDISPATCHED)) == 12
    assert ForeignOutbox.objects.get().cleaned == 1164 - 12 - 7


def test_single_console_keeps_an_outbox_at_a_time(
    look: Connection, keeper: OutboxKeeperProcess, recorded_console: str, connect: Callable[[str], Connection]
) -> None:
    switched_on(relay_seconds=0)
    name = "pgqueue outbox " + postgresql().canonical(BILLING)
    other = connect(recorded_console)
    other.run("select pg_advisory_lock(hashtextextended(%s, 0))", [name])
    keeper.look()
    assert "another console, keeps it" in trouble()
    assert len(look.all(UNDISPATCHED)) == 12
    other.close()
    until(lambda: keeper.look() or look.all(UNDISPATCHED) == [])  # type: ignore[func-returns-value]
    assert trouble() == ""


def test_outbox_of_another_database_or_of_our_endpoint_is_left_alone(
    look: Connection, keeper: OutboxKeeperProcess
) -> None:
    switched_on(relay_seconds=0, database="somewhere else")
    keeper.look()
    assert "another database" in trouble()
    switched_on()
    Endpoint.objects.create(name="Billing", table="Billing", outbox="optimistic", transaction_mode="receive_only")
    keeper.look()
    assert "an endpoint here has this outbox" in trouble()
    assert len(look.all(UNDISPATCHED)) == 12


@pytest.mark.parametrize(("event", "values"), [("update", {"relay_seconds": 0}), ("delete", {"keep_seconds": 7 * DAY})])
def test_no_code_of_others_is_run(
    look: Connection, keeper: OutboxKeeperProcess, event: str, values: dict[str, int]
) -> None:
    look.run("create role stranger")
    try:
        look.run(
            "create function public.theirs() returns trigger language plpgsql as $$ begin raise 'ran'; end $$;"
            "alter function public.theirs() owner to stranger;"
            f'create trigger theirs before {event} on "Billing_OutboxData" for each row '
            "execute function public.theirs()"
        )
        switched_on(**values)
        keeper.look()
        assert "Code of others would run" in trouble()
        assert look.value('select count(*) from "Billing_OutboxData"') == 1164
    finally:
        look.run("drop owned by stranger cascade; drop role stranger")


def test_relay_locks_the_table_against_new_triggers(
    look: Connection, recorded_console: str, connect: Callable[[str], Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, engine = connect(recorded_console), engine_for(BILLING)
    found = outboxes.find

    def and_somebody_comes(session: Connection, schemas: list[str]) -> list[outboxes.OutboxTable]:
        other.run("set lock_timeout = '50ms'")
        with pytest.raises(Exception, match="lock"):
            other.run('create trigger theirs before update on "Billing_OutboxData" execute function public.theirs()')
        return found(session, schemas)

    other.run("create function public.theirs() returns trigger language plpgsql as $$ begin return new; end $$")
    monkeypatch.setattr(outboxes, "find", and_somebody_comes)
    session = connect(recorded_console)
    one = look.all(UNDISPATCHED)[0].id
    assert CheckedOutbox(engine.outbox, BILLING).relay(session, one) == 5  # type: ignore[arg-type]
    engine.stop(0)


@pytest.mark.parametrize(("relay", "kept"), [(59, None), (DAY + 1, None), (None, DAY - 1), (None, 3650 * DAY + 1)])
def test_times_have_limits(look: Connection, relay: int | None, kept: int | None) -> None:
    with pytest.raises(OperationRefused, match="Nothing was changed"):
        keep(BILLING, relay, kept, "tester", "test")
    assert not ForeignOutbox.objects.exists()


def test_the_supervisor_starts_it_only_while_one_is_switched_on(
    look: Connection, recorded_console: str, tmp_path: Path
) -> None:
    house = House(recorded_console, recorded_console, tmp_path)

    def keepers() -> list[Process]:
        return list(Process.objects.filter(role="outbox-keeper", ended_at=None, state="running"))

    try:
        house.supervise()
        until(lambda: Process.objects.filter(role="supervisor", state="running").exists())
        assert keepers() == []
        switched_on(relay_seconds=3600)
        until(keepers, what="a keeper")
        switched_on(relay_seconds=None)
        until(lambda: not keepers(), what="none")
    finally:
        house.close()
