"""Every setting of our endpoint on its page: saved, validated together, risks explained, undone (C5)."""

import html
import re
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from pgqueue_admin.console.endpoints.fieldsets import GROUPS
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Endpoint, Queue, endpoint_validation, outbox_owners
from pgqueue_admin.outbox.settings import OutboxSettings
from pgqueue_admin.services import endpoints
from pgqueue_admin.transport import Endpoint as Engine
from pgqueue_admin.transport import EndpointSettings
from pgqueue_admin.workers.processes.endpoint_settings import of_row
from tests.console.pages import Answer, Connect, matched
from tests.console.test_endpoints import PAGE, SETTINGS, save, text

COUNT = "PositiveIntegerField"
NEW = {
    "batch_size": ("50", 50),
    "repeek_after": ("handlers", "handlers"),
    "purge_expired_at_start": ("on", True),
    "audit_queue": ("audit", "audit"),
    "audit_ttbr_seconds": ("7 d", 604_800),
    "subscription_table": ("SubscriptionRouting", "SubscriptionRouting"),
    "immediate_retries": ("2", 2),
    "delayed_retries": ("1", 1),
    "delayed_retry_step_ms": ("1.234 s", 1234),
}


@pytest.fixture
def orders(console_database: str) -> Endpoint:
    with_audit = EndpointSettings(audit_queue="audit")
    shop = Engine("Orders", console_database, settings=with_audit)
    shop.create_queues()
    shop.stop()
    return Endpoint.objects.create(name="Shop.Orders", schema="public", table="Orders", desired_processes=1)


def said(response: Answer) -> str:
    return html.unescape(response.content.decode()).replace("\u00a0", " ")


def faults(response: Answer) -> dict[str, str]:
    """The faults beside the fields, by field."""
    found = re.findall(r'<span class="err" id="id_(\w+)_error">(.*?)</span>', said(response), re.DOTALL)
    return {name: sentence.strip() for name, sentence in found}


def test_every_setting_is_saved_audited_and_undone(as_operator: Client, orders: Endpoint) -> None:
    assert save(as_operator, orders, **{name: typed for name, (typed, _) in NEW.items()}).status_code == 303
    orders.refresh_from_db()
    assert {name: getattr(orders, name) for name in NEW} == {name: value for name, (_, value) in NEW.items()}
    page = text(as_operator).replace("\u00a0", " ")
    assert "how long audit copies live forever → 7 d" in page
    undo = matched(r'action="(/endpoints/Shop.Orders/undo/\d+/)"', page)
    as_operator.post(undo, {"next": PAGE})
    orders.refresh_from_db()
    assert (orders.batch_size, orders.audit_queue, orders.audit_ttbr_seconds) == (1, "", None)
    assert [entry.verb for entry in AuditEntry.objects.order_by("id")] == ["set", "undo"]


def test_an_untouched_form_changes_nothing(as_operator: Client, orders: Endpoint) -> None:
    """The form shows stored values exactly, to the millisecond."""
    Endpoint.objects.update(peek_delay_ms=12_345, delayed_retry_step_ms=3_661_001, drain_seconds=3_599, notify=False)
    form = text(as_operator, f"{PAGE}?edit=1")
    fields = dict(re.findall(r'<input id="id_(\w+)" name="\w+" value="([^"]*)"', form))
    chosen = dict(re.findall(r'<select name="(\w+)".*?<option value="(\w+)" selected', form, re.DOTALL))
    assert set(fields) | set(chosen) == set(SETTINGS) - {"notify"}
    as_operator.post(f"{PAGE}settings/", {**fields, **chosen, "version": "1"})
    assert not AuditEntry.objects.exists()


def test_the_form_and_the_table_stand_in_groups(as_operator: Client, orders: Endpoint) -> None:
    for address, tag in ((f"{PAGE}?edit=1", "legend"), (PAGE, "th")):
        found = re.findall(rf"<{tag}[^>]*>(Receiving|Retries|Audit|Process)</{tag}>", text(as_operator, address))
        assert found == ["Receiving", "Retries", "Audit", "Process"]


def test_every_fault_is_told_at_once_beside_its_field(as_operator: Client, orders: Endpoint) -> None:
    wrong = {
        "peek_delay_ms": "soon",
        "concurrency": "65",
        "batch_size": "10",
        "transaction_mode": "none",
        "immediate_retries": "-1",
        "on_exhausted": "error_queue",
        "audit_ttbr_seconds": "1 h",
    }
    response = save(as_operator, orders, **wrong)
    assert response.status_code == 422
    found = faults(response)
    assert set(found) == {
        "peek_delay_ms", "concurrency", "batch_size", "immediate_retries", "delayed_retries", "error_queue",
        "audit_queue",
    }  # fmt: skip
    assert found["immediate_retries"] == "Immediate retries is a whole number from 0 to 1,000; -1 is not."
    assert "deleted before its handler runs and cannot be retried" in found["delayed_retries"]
    assert "Name the queue whose copies are to expire" in found["audit_queue"]
    orders.refresh_from_db()
    assert orders.version == 1


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("nowhere", "does not exist"),
        ("Orders", "copied again, without end"),
        ("x" * 56, "may have 55 bytes"),
        ("shop.", "names no queue table"),
    ],
)
def test_an_audit_queue_that_could_fail_every_message_is_refused(
    as_operator: Client, orders: Endpoint, address: str, sentence: str
) -> None:
    response = save(as_operator, orders, audit_queue=address)
    assert response.status_code == 422
    assert sentence in faults(response)["audit_queue"]


def test_a_missing_queue_is_told_with_the_statement_that_makes_it(
    as_operator: Client, orders: Endpoint, connect: Connect, console_database: str
) -> None:
    found = faults(save(as_operator, orders, on_exhausted="error_queue", error_queue="parking"))
    connect(console_database).run(found["error_queue"].partition("Mended with: ")[2])
    assert save(as_operator, orders, on_exhausted="error_queue", error_queue="parking").status_code == 303


def test_a_table_that_went_away_forbids_no_other_change(as_operator: Client, orders: Endpoint) -> None:
    Endpoint.objects.update(audit_queue="was-here-once")
    assert save(as_operator, orders, audit_queue="was-here-once", batch_size="5").status_code == 303


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("Routes", "does not exist"),
        ("Orders", "holds messages and no subscriptions"),
        ("x" * 56, "a table may have 55"),
    ],
)
def test_a_subscription_table_that_nobody_could_write_to_is_refused(
    as_operator: Client, orders: Endpoint, address: str, sentence: str
) -> None:
    assert sentence in faults(save(as_operator, orders, subscription_table=address))["subscription_table"]


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("none", "a process that ends loses what it has in flight"),
        ("receive_only", "is handled again, and everything it sends is sent twice"),
    ],
)
def test_a_mode_that_risks_messages_is_explained_first(
    as_operator: Client, orders: Endpoint, mode: str, sentence: str
) -> None:
    chosen = {"transaction_mode": mode, "immediate_retries": "0", "delayed_retries": "0"}
    first = save(as_operator, orders, **chosen)
    assert first.status_code == 422
    assert sentence in re.sub(r"\s+", " ", said(first))
    seen = matched(r'name="seen" value="([^"]+)"', said(first))
    assert save(as_operator, orders, **chosen, seen=seen).status_code == 303
    orders.refresh_from_db()
    assert orders.transaction_mode == mode


def test_a_form_that_asks_again_still_knows_what_was_read(as_operator: Client, orders: Endpoint) -> None:
    chosen = {"transaction_mode": "none", "immediate_retries": "0", "delayed_retries": "0"}
    endpoints.save_settings("Shop.Orders", {"concurrency": 8}, "tomas", "console")
    asked = save(as_operator, orders, **chosen)
    assert asked.status_code == 422
    assert matched(r'name="version" value="(\d+)"', said(asked)) == str(orders.version)


def test_confirmation_of_one_value_does_not_save_another(as_operator: Client, orders: Endpoint) -> None:
    once = {"immediate_retries": "0", "delayed_retries": "0"}
    assert save(as_operator, orders, transaction_mode="none", **once, seen="receive_only").status_code == 422


def test_a_viewer_sees_them_and_changes_none(as_viewer: Client, orders: Endpoint) -> None:
    assert "messages a transaction" in text(as_viewer).lower()
    assert save(as_viewer, orders, batch_size="50").status_code == 303
    orders.refresh_from_db()
    assert orders.batch_size == 1


def test_of_a_foreign_endpoint_only_what_warnings_judge_is_declared(as_operator: Client, orders: Endpoint) -> None:
    Endpoint.objects.update(ours=False)
    assert "transaction mode" not in text(as_operator).lower()
    assert "id_batch_size" not in text(as_operator, f"{PAGE}?edit=1")


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        (name, allowed)
        for groups in GROUPS.values()
        for names in groups.values()
        for name, allowed in names.items()
        if Endpoint._meta.get_field(name).get_internal_type() == COUNT
    ],
)
def test_the_column_allowed_has_the_numbers_that_refuse(name: str, allowed: str) -> None:
    refused = endpoint_validation.faults(Endpoint(name="Sales", table="Sales", **{name: 10**12})).get(name, "")
    (span,) = re.findall(r" from (.* to .*);", refused)
    assert allowed.startswith(span)


def test_an_outbox_needs_its_table_and_the_mode_that_goes_with_it(
    as_operator: Client, orders: Endpoint, connect: Connect, console_database: str
) -> None:
    """O10; the page shows the statement that creates the missing table."""
    Endpoint.objects.update(name="Orders")
    page = "/endpoints/Orders/"

    def refused(**typed: str) -> dict[str, str]:
        response = as_operator.post(
            f"{page}settings/", {**SETTINGS, "version": str(Endpoint.objects.get().version), **typed}
        )
        return faults(response) if response.status_code == 422 else {}

    assert "none is needed" in refused(outbox="optimistic")["outbox"]
    assert "Mended with: create table" in refused(outbox="optimistic", transaction_mode="receive_only")["outbox"]
    postgresql().outbox_store(Address("public", "Orders_OutboxData")).create(connect(console_database))
    with_batches = {"outbox": "optimistic", "transaction_mode": "receive_only", "batch_size": "5"}
    assert "a commit of its own" in refused(**with_batches)["batch_size"]
    assert refused(outbox="optimistic", transaction_mode="receive_only", outbox_keep_seconds="2 d") == {}
    row = Endpoint.objects.get()
    assert (row.outbox, row.outbox_keep_seconds) == ("optimistic", 2 * 86_400)
    assert "outbox off → optimistic" in text(as_operator, page).replace("\u00a0", " ")


def test_the_mode_none_switches_the_outbox_off_and_that_is_said(
    as_operator: Client, orders: Endpoint, connect: Connect, console_database: str
) -> None:
    """O10, like the engine: no table is needed, and the page says what the mode means before it is saved."""
    Endpoint.objects.update(name="Orders")
    once = {"transaction_mode": "none", "immediate_retries": "0", "delayed_retries": "0"}

    def saved(**typed: str) -> Any:
        version = str(Endpoint.objects.get().version)
        return as_operator.post("/endpoints/Orders/settings/", {**SETTINGS, **once, "version": version, **typed})

    first = saved(outbox="optimistic")
    assert first.status_code == 422
    assert faults(first) == {}
    assert "The mode none switches the outbox off" in said(first)
    assert "deleted before its handler runs" in said(first)
    seen = matched(r'name="seen" value="([^"]+)"', said(first))
    assert saved(outbox="optimistic", seen=seen).status_code == 303
    row = Endpoint.objects.get()
    assert (row.outbox, row.transaction_mode, row.has_outbox) == ("optimistic", "none", False)
    assert of_row(row).faults() == []
    assert "It has no outbox." in text(as_operator, "/endpoints/Orders/")
    assert outbox_owners.by_table() == {}
    atomic = saved(outbox="optimistic", transaction_mode="sends_atomic_with_receive", seen=seen)
    assert "none is needed" in faults(atomic)["outbox"]
    assert saved(transaction_mode="receive_only", outbox="optimistic").status_code == 422, "then it needs its table"


def test_a_purge_of_what_has_expired_is_switched_on_for_the_next_start(as_operator: Client, orders: Endpoint) -> None:
    assert "Delete expired messages at a start" in text(as_operator, f"{PAGE}?edit=1")
    assert not of_row(orders).purge_expired_at_start
    assert save(as_operator, orders, purge_expired_at_start="on").status_code == 303
    assert of_row(Endpoint.objects.get()).purge_expired_at_start
    assert "expired messages are deleted at a start off → on" in text(as_operator).replace("\u00a0", " ")


STOCK = {"stock": "postgresql://stock-host/stock"}


def test_the_default_isolation_says_what_it_means_here(
    as_operator: Client, orders: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O6: the engine's default, which differs with several databases."""
    assert "the default is Read Committed here" in text(as_operator)
    assert isolation(Endpoint(outbox="optimistic")) == "read_committed"
    monkeypatch.setitem(settings.PGQUEUE, "OUTBOX_DATABASES", STOCK)
    assert "the default is Serializable here, since handlers may enlist other databases" in text(as_operator)
    assert isolation(Endpoint(outbox="optimistic")) == "serializable"
    assert isolation(Endpoint(outbox="optimistic", outbox_isolation="read_committed")) == "read_committed"


def isolation(row: Endpoint) -> str:
    outbox = of_row(row).outbox
    assert isinstance(outbox, OutboxSettings)
    return outbox.isolation_level


def test_an_isolation_that_a_database_lacks_is_refused_by_name(
    as_operator: Client, orders: Endpoint, connect: Connect, console_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Endpoint.objects.update(name="Orders")
    postgresql().outbox_store(Address("public", "Orders_OutboxData")).create(connect(console_database))
    snapshot = {"outbox": "optimistic", "transaction_mode": "receive_only", "outbox_isolation": "snapshot"}

    def saved() -> Any:
        typed = {**SETTINGS, **snapshot, "version": str(Endpoint.objects.get().version)}
        return as_operator.post("/endpoints/Orders/settings/", typed)

    monkeypatch.setitem(settings.PGQUEUE, "OUTBOX_DATABASES", {"ledger": "mysql://h/ledger"})
    assert faults(saved()) == {
        "outbox_isolation": "Snapshot is none of mysql, where ledger is: it has Read Committed, Repeatable Read, "
        "Serializable."
    }
    monkeypatch.setitem(settings.PGQUEUE, "OUTBOX_DATABASES", STOCK)
    assert saved().status_code == 303
    assert Endpoint.objects.get().outbox_isolation == "snapshot"


LEASE = "/endpoints/Thumbs/"


@pytest.fixture
def thumbs(console_database: str) -> Endpoint:
    where = {"kind": "lease", "schema": "messages", "table": "message"}
    return Endpoint.objects.create(name="Thumbs", desired_processes=1, **where)


def test_an_endpoint_of_the_lease_queue_has_its_own(as_operator: Client, thumbs: Endpoint) -> None:
    """And none of the transport's settings, which have no meaning there."""
    for address, tag in ((f"{LEASE}?edit=1", "legend"), (LEASE, "th")):
        page = text(as_operator, address)
        found = re.findall(rf"<{tag}[^>]*>(Locks and concurrency|Handling|Retries|Process|Audit)</{tag}>", page)
        assert found == ["Locks and concurrency", "Handling", "Retries", "Process"]
        assert "peek" not in page.partition('id="settings"')[2].partition('id="processes"')[0].lower()
    form = text(as_operator, f"{LEASE}?edit=1")
    fields = dict(re.findall(r'<input id="id_(\w+)" name="\w+" value="([^"]*)"', form))
    assert fields["lock_seconds"].replace("\u00a0", " ") == "1 min"
    typed = {**fields, "lock_seconds": "30 s", "on_lock_expired": "release", "archive_success": "on", "version": "1"}
    shown = " ".join(said(as_operator.post(f"{LEASE}settings/effect/", typed)).split())
    assert "locked for 30 s (now 1 min), and longer while it is handled. Should its process die, it comes back" in shown
    assert as_operator.post(f"{LEASE}settings/", typed).status_code == 303
    thumbs.refresh_from_db()
    assert (thumbs.lock_seconds, thumbs.on_lock_expired, thumbs.archive_success) == (30, "release", True)
    page = text(as_operator, LEASE).replace("\u00a0", " ")
    assert "lock 1 min → 30 s" in page
    assert "when a lock expires archived as lock_expired → released for another go" in page
    as_operator.post(matched(r'action="(/endpoints/Thumbs/undo/\d+/)"', page), {"next": LEASE})
    thumbs.refresh_from_db()
    assert (thumbs.lock_seconds, thumbs.on_lock_expired) == (60, "archive")


def test_lease_endpoint_is_listed_among_endpoints(as_operator: Client, thumbs: Endpoint) -> None:
    page = text(as_operator, "/endpoints/")
    assert "waits for NOTIFY" in page
    page = text(as_operator, LEASE)
    assert "works on the lease queue" in page
    assert "Expired unread" not in page
    assert "Thumbs" not in matched(r'id="peek"(.*?)</section>', text(as_operator, "/settings/"), re.DOTALL)


def test_faults_of_the_lease_queue_stand_beside_their_fields(as_operator: Client, thumbs: Endpoint) -> None:
    wrong = {"lock_seconds": "0 s", "renewed_for_seconds": "2 d", "on_lock_expired": "burn", "delayed_retries": "-1"}
    typed = {"concurrency": "2", "delayed_retry_step_ms": "1 s", "drain_seconds": "30 s", "version": "1", **wrong}
    response = as_operator.post(f"{LEASE}settings/", typed)
    assert response.status_code == 422
    assert set(faults(response)) == set(wrong)


def effect(client: Client, **typed: str) -> str:
    return " ".join(said(client.post(f"{PAGE}settings/effect/", {**SETTINGS, **typed})).split())


def test_three_fields_stand_first_and_the_others_are_folded(as_operator: Client, orders: Endpoint) -> None:
    form = matched(r'<form class="sheet form"(.*?)</form>', text(as_operator, f"{PAGE}?edit=1"), re.DOTALL)
    first, _, others = form.partition('<details class="rest">')
    assert re.findall(r'<input id="id_(\w+)"', first) == ["peek_delay_ms", "max_records_to_peek", "concurrency"]
    assert "All settings" in others
    assert 'id="id_batch_size"' in others
    assert f'hx-post="{PAGE}settings/effect/"' in first


def test_the_effect_is_said_as_it_is_typed_and_nothing_is_saved(as_operator: Client, orders: Endpoint) -> None:
    html = effect(as_operator, peek_delay_ms="5 days", concurrency="8")
    assert "Peek delay is from 1 ms to 1 d; 5 d is not." in html
    html = effect(as_operator, peek_delay_ms="12 seconds", concurrency="8")
    assert "An idle Shop.Orders is looked at every 12 s (now 1 s)." in html
    assert "up to 8 messages at once (now 2)" in html
    assert "Peek delay is 12 s, allowed is 100 ms to 10 s." in html  # before anybody saves
    assert "is not a duration. Try" in effect(as_operator, peek_delay_ms="soon")
    orders.refresh_from_db()
    assert (orders.peek_delay_ms, orders.concurrency) == (1000, 2)
    assert not AuditEntry.objects.exists()


def test_without_scripts_a_button_says_it(as_operator: Client, orders: Endpoint) -> None:
    assert '<noscript><button class="b" name="look">' in text(as_operator, f"{PAGE}?edit=1")
    response = save(as_operator, orders, concurrency="8", look="1")
    assert response.status_code == 200
    assert "up to 8 messages at once (now 2)" in " ".join(said(response).split())
    orders.refresh_from_db()
    assert orders.concurrency == 2


def test_the_form_stays_on_the_page_that_it_stands_on(as_operator: Client, orders: Endpoint) -> None:
    """Also with a fault, or when it asks for confirmation."""
    Queue.objects.create(schema=orders.schema, table=orders.table, kind="input")
    place = f"/queues/{orders.schema}/{orders.table}/"
    for typed, status in (("soon", 422), ("12 s", 422)):
        response = save(as_operator, orders, peek_delay_ms=typed, next=f"{place}#settings")
        assert response.status_code == status
        assert "Head and tail" in said(response)
        assert f'value="{typed}"' in said(response)
        assert f'name="next" value="{place}#settings"' in said(response)
    response = save(as_operator, orders, peek_delay_ms="2 s", next=f"{place}#settings")
    assert response["Location"] == f"{place}#settings"


def test_a_fault_among_the_folded_ones_is_not_hidden(as_operator: Client, orders: Endpoint) -> None:
    assert '<details class="rest" open>' in said(save(as_operator, orders, batch_size="0"))
