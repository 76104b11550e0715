"""An act by hand is audited wherever its process is killed: with its outcome, or as unknown."""

import os
import threading
from contextlib import suppress
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connections

from pgqueue_admin.archive.store import get
from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import AuditEntry, AuditIntent, Endpoint, database_clock
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.operations import reconcile
from tests.archived_messages import dead
from tests.killed_process import ROOT, run_killed
from tests.waiting import PATIENCE

LATER = timedelta(minutes=1)

# The product's own code; only the moment of the kill is chosen here.
KILLED = """
import os, signal, sys
import django
django.setup()
from pgqueue_admin.dialects import Address
from pgqueue_admin.services.audited_act import AuditedAct

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[2] == "before the act":
    AuditedAct.__init__ = die
else:
    AuditedAct.done = property(lambda act: 0, lambda act, done: done and die())
number = int(sys.argv[1])
"""
SEND = """
from pgqueue_admin.services import typed_messages
typed = typed_messages.TypedMessage("Shop.Ping", "{}")
typed_messages.send(Address("public", "Billing"), typed, "ana", "console", "why")
"""
EDIT = """
from pgqueue_admin.archive.edited_retry import EditedMessage
from pgqueue_admin.services.edited_retry import EditChanges, retry_edited
edited, target = EditedMessage({"Own": "x"}, b"{}"), Address("public", "Billing")
retry_edited(number, "Billing", edited, target, "ana", "console", "why", EditChanges({"Own": None}, {"Own": "x"}))
"""
PUBLISH = """
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.services import leases
leases.publish(QUEUE, '{"type": "render"}', "ana", "console", "why")
"""
END = """
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.services import leases
leases.end(QUEUE, number, "", "rejected", "ana", "console", "why")
"""
SCHEDULE = """
from pgqueue_admin.services import schedules
draft = schedules.ScheduleDraft("Nightly", "lease queue", "", '{"type": "render"}', "30 2 * * *", "UTC", "skip")
schedules.add(draft, schedules.Act("ana", "console", "why"))
"""


def run_and_kill(does: str, dsn: str, number: int, where: str) -> None:
    environment = {
        "DATABASE_URL": dsn, "QUEUES_URL": dsn, "PGQUEUE_QUEUE_SCHEMAS": "public,messages", "PYTHONPATH": str(ROOT),
        "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings", "PGQUEUE_STATE_DIR": "/nonexistent/var",
        "PATH": os.environ["PATH"],
    }  # fmt: skip
    run_killed(KILLED + does, (str(number), where), environment, dsn)


def the_only_entry() -> AuditEntry:
    reconcile.settle(database_clock.now() + LATER)
    reconcile.settle(database_clock.now() + LATER)
    assert not AuditIntent.objects.exists()
    return AuditEntry.objects.get(who="ana")


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("does", "verb", "counted"),
    [
        (SEND, "send", 'select count(*) from "Billing"'),
        (PUBLISH, "publish", "select count(*) from messages.message"),
        (SCHEDULE, "create", "select count(*) from messages.schedule"),
    ],
    ids=["send", "publish", "schedule"],
)
def test_an_act_whose_process_is_killed_behind_it_has_an_entry(
    archive: str, session: Connection, queue: LeaseQueue, does: str, verb: str, counted: str
) -> None:
    Endpoint.objects.get_or_create(name="Billing", defaults={"schema": "public", "table": "Billing"})
    before = session.value(counted)
    run_and_kill(does, archive, 0, "after the act")
    assert session.value(counted) == before + 1, "it was done"
    entry = the_only_entry()
    assert (entry.verb, entry.reason, (entry.after or {})["outcome"]) == (verb, "why", "not known")


@pytest.mark.chaos
def test_edited_retry_killed_after_the_send_audits_the_edit(archive: str, session: Connection, ana: User) -> None:
    number = dead()[0].id
    run_and_kill(EDIT, archive, number, "after the act")
    sent = get(session, number)
    assert sent is not None
    assert sent.state == "retried"
    entry = the_only_entry()
    after = entry.after or {}
    assert (entry.verb, after["archive_id"], after["headers"], after["outcome"]) == (
        "edit", number, {"Own": "x"}, "not known",
    )  # fmt: skip


@pytest.mark.chaos
def test_a_lease_that_was_ended_by_a_killed_process_is_named(
    archive: str, session: Connection, queue: LeaseQueue
) -> None:
    number = queue.publish({"type": "render"})
    run_and_kill(END, archive, number, "after the act")
    assert session.value("select count(*) from messages.message") == 0
    after = the_only_entry().after or {}
    assert (after["ids"], after["result"], after["outcome"]) == ([number], "rejected", "not known")


@pytest.mark.chaos
def test_act_killed_before_its_send_is_audited_as_not_known(archive: str, session: Connection) -> None:
    before = session.value('select count(*) from "Billing"')
    run_and_kill(SEND, archive, 0, "before the act")
    assert session.value('select count(*) from "Billing"') == before
    assert (the_only_entry().after or {})["outcome"] == "not known"


def test_an_act_in_hand_is_waited_for_however_long_it_takes(archive: str) -> None:
    """A lock holds its intent; it ends with the process, not after a time."""
    acting, goes_on = threading.Event(), threading.Event()

    def does() -> None:
        with audited(who="ana", verb="send", noun="message", subject="Billing") as act:
            acting.set()
            assert goes_on.wait(PATIENCE)
            act.done = 3
        connections.close_all()

    thread = threading.Thread(target=does)
    thread.start()
    assert acting.wait(PATIENCE)
    reconcile.settle(database_clock.now() + timedelta(hours=1))
    assert (AuditIntent.objects.count(), AuditEntry.objects.filter(who="ana").count()) == (1, 0)
    goes_on.set()
    thread.join(PATIENCE)
    entry = the_only_entry()
    assert (entry.count, entry.after) == (3, None)


@pytest.mark.parametrize("fails", [True, False])
def test_act_that_was_not_done_leaves_no_intent_and_no_entry(archive: str, fails: bool) -> None:
    with suppress(ValueError), audited(who="ana", verb="send", noun="message", subject="Billing"):
        assert AuditIntent.objects.count() == 1
        if fails:
            raise ValueError("refused")
    assert (AuditIntent.objects.count(), AuditEntry.objects.filter(who="ana").count()) == (0, 0)


@pytest.mark.parametrize("done", [0, 1])
def test_act_that_raises_after_done_is_audited_as_not_known(archive: str, done: int) -> None:
    """Its session may fail only when it is returned to the pool."""
    with suppress(ConnectionError), audited(who="ana", verb="send", noun="queue", subject="Billing") as act:
        act.done = done
        raise ConnectionError
    reconcile.settle(database_clock.now() + LATER)
    assert not AuditIntent.objects.exists()
    assert [(each.subject, (each.after or {})["outcome"]) for each in AuditEntry.objects.all()] == [
        ("Billing", "not known")
    ] * done
