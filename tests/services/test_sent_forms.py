"""A form that creates a message creates one, however often and by however many it is submitted."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from pgqueue_admin.archive.message_copy import ArchivedOne
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.lease_store import QUEUE as LEASES
from pgqueue_admin.models import AuditEntry, AuditIntent, Endpoint, Queue
from pgqueue_admin.services import leases, message_copies, sent_forms, typed_messages
from pgqueue_admin.services.operations.errors import AlreadyDecided
from pgqueue_admin.services.typed_messages import TypedMessage
from tests.archived_messages import BILLING, REFUSED, dead, number_in
from tests.waiting import until

QUEUE = Address("public", "Billing")
Press = Callable[[str], Any]


@pytest.fixture
def presses(ana: User, settings: Any) -> dict[str, Press]:
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}
    Endpoint.objects.create(name="Billing", schema="public", table="Billing", ours=True)
    Queue.objects.update_or_create(schema="public", table="Billing", defaults={"kind": "input"})
    original, typed = ArchivedOne(dead(1, exception=REFUSED)[0].id), TypedMessage("Shop.PlaceOrder", "{}")
    return {
        "send": lambda form: typed_messages.send(QUEUE, typed, ana, "console", form=form),
        "copy": lambda form: message_copies.copy(original, QUEUE, ana, "console", form=form),
        "publish": lambda form: leases.publish(LEASES, "{}", ana, "console", form=form),
    }


def number(name: str) -> int:
    return number_in('"messages"."message"' if name == "publish" else BILLING)


@pytest.mark.parametrize("name", ["send", "copy", "publish"])
def test_a_second_press_makes_no_other_one(presses: dict[str, Press], name: str) -> None:
    press, before, form = presses[name], number(name), sent_forms.new_key()
    press(form)
    with pytest.raises(AlreadyDecided, match=r"Nothing more was sent: ana has sent it .* open the form anew"):
        press(form)
    assert number(name) == before + 1
    assert AuditEntry.objects.filter(verb=name).count() == 1
    press(sent_forms.new_key())
    press("")
    press("")
    assert number(name) == before + 4, "another form, and whoever has none"
    assert not AuditIntent.objects.exists()


@pytest.mark.parametrize("name", ["send", "copy"])
def test_concurrent_presses_send_once(session: Connection, presses: dict[str, Press], name: str) -> None:
    before, form = number(name), sent_forms.new_key()

    def press() -> Any:
        try:
            return presses[name](form)
        except AlreadyDecided as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        with session.transaction():
            session.run(f"lock table {BILLING} in share mode")  # senders wait
            said = [pool.submit(press) for _ in range(3)]
            until(lambda: sum(each.done() for each in said) == 2, what="two are refused, at once")
        outcomes = [each.result() for each in said]
    assert sum(isinstance(each, str) for each in outcomes) == 1, outcomes
    assert number(name) == before + 1
    assert not AuditIntent.objects.exists()


def test_form_with_an_unknown_outcome_is_not_sent_again(presses: dict[str, Press]) -> None:
    """Its process was killed, or its answer was lost."""
    before, form = number("send"), sent_forms.new_key()
    entry = {"noun": "message", "subject": BILLING, "who": "ana", "verb": "send", "origin": "console"}
    left = AuditIntent.objects.create(crossing=0, entry={**entry, "after": {"form": form}})
    with pytest.raises(AlreadyDecided, match="the other one is on its way"):
        presses["send"](form)
    left.delete()
    AuditEntry.objects.create(**entry, after={"form": form, "outcome": "not known"})
    with pytest.raises(AlreadyDecided, match="ana may have sent it"):
        presses["send"](form)
    assert number("send") == before
