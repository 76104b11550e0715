"""Endpoints: settings changed with their risks explained, and every change with an undo (C1, C5, C6)."""

import re
from datetime import timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import get_commands
from django.test import Client
from django.utils import timezone

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.console.archive import search
from pgqueue_admin.models import AuditEntry, Endpoint, MinimumTtbr, Process, Queue
from pgqueue_admin.services import endpoints
from pgqueue_admin.services.content_access import ALL
from tests.console.pages import Answer, matched, shown

SETTINGS = {
    "peek_delay_ms": "1 s", "max_records_to_peek": "", "concurrency": "2", "immediate_retries": "5",
    "delayed_retries": "3", "delayed_retry_step_ms": "10 s",
    "on_exhausted": "archive", "error_queue": "", "drain_seconds": "30 s", "batch_size": "1", "notify": "on",
    "transaction_mode": "sends_atomic_with_receive", "repeek_after": "receives", "audit_queue": "",
    "audit_ttbr_seconds": "", "subscription_table": "", "memory_mb": "", "memory_kill_mb": "",
    "outbox": "off", "outbox_isolation": "default", "outbox_keep_seconds": "7 d",
    "outbox_clean_seconds": "1 min", "outbox_relay_seconds": "1 min",
}  # fmt: skip
PAGE = "/endpoints/Shop.Orders/"


@pytest.fixture
def orders(console_database: str) -> Endpoint:
    queue = Queue.objects.create(schema="shop", table="Orders", kind="input")
    MinimumTtbr.objects.create(queue=queue, message_type="Shop.MailToSend", ttbr_ms=8_000, last_seen_at=timezone.now())
    return Endpoint.objects.create(name="Shop.Orders", schema="shop", table="Orders", desired_processes=1)


def text(client: Client, address: str = PAGE) -> str:
    return shown(client, address)


def save(client: Client, orders: Endpoint, **changes: str) -> Answer:
    return client.post(f"{PAGE}settings/", {**SETTINGS, "version": orders.version, **changes})


def test_a_change_is_saved_said_and_audited(as_operator: Client, orders: Endpoint) -> None:
    response = save(as_operator, orders, peek_delay_ms="500 ms", max_records_to_peek="50", reason="quicker")
    assert response.status_code == 303
    orders.refresh_from_db()
    assert (orders.peek_delay_ms, orders.max_records_to_peek) == (500, 50)
    html = text(as_operator, response["Location"])
    assert "peek delay 1 s → 500 ms" in html.replace("\u00a0", " ")
    entry = AuditEntry.objects.get()
    assert (entry.who, entry.reason, entry.before) == (
        "ana",
        "quicker",
        {"peek_delay_ms": 1000, "max_records_to_peek": None},
    )


def test_a_risky_delay_is_explained_first_and_saved_when_sent_again(as_operator: Client, orders: Endpoint) -> None:
    first = save(as_operator, orders, peek_delay_ms="12 s")
    html = first.content.decode().replace("\u00a0", " ")
    assert first.status_code == 422
    for said in (
        "Allowed, but read this first",
        "Peek delay is 12 s",
        "MailToSend expires after 8 s",
        "Nothing has changed yet",
    ):
        assert said in html
    orders.refresh_from_db()
    assert orders.peek_delay_ms == 1000
    seen = matched(r'name="seen" value="(\d+)"', html)
    assert save(as_operator, orders, peek_delay_ms="12 s", seen=seen).status_code == 303
    orders.refresh_from_db()
    assert orders.peek_delay_ms == 12_000


def test_a_strict_range_refuses(as_operator: Client, orders: Endpoint) -> None:
    response = save(as_operator, orders, peek_delay_ms="50 ms", strict_peek_range="on", seen="50")
    assert response.status_code == 422
    assert "The strict peek range allows" in response.content.decode()


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("peek_delay_ms", "soon", "“soon” is not a duration"),
        ("concurrency", "0", "Concurrency is a whole number from 1 to 64; 0 is not"),
        ("max_records_to_peek", "-1", "Peek batch is a whole number from 1"),
        ("on_exhausted", "explode", "Select a valid choice"),
        ("error_queue", "", "Name the error queue"),
    ],
)
def test_invalid_setting_is_reported_beside_its_field(
    as_operator: Client, orders: Endpoint, field: str, typed: str, said: str
) -> None:
    more = {"on_exhausted": "error_queue"} if field == "error_queue" else {}
    response = save(as_operator, orders, **{**more, field: typed})
    assert response.status_code == 422
    assert said in response.content.decode()
    orders.refresh_from_db()
    assert orders.version == 1


def test_concurrent_change_is_refused_with_its_author(as_operator: Client, orders: Endpoint) -> None:
    save(as_operator, orders, concurrency="4")
    response = save(as_operator, orders, concurrency="8")
    assert "ana changed Shop.Orders" in text(as_operator, response["Location"])
    orders.refresh_from_db()
    assert orders.concurrency == 4


def test_undo_takes_a_change_back(as_operator: Client, orders: Endpoint) -> None:
    save(as_operator, orders, concurrency="4")
    html = text(as_operator)
    undo = matched(r'action="(/endpoints/Shop.Orders/undo/\d+/)"', html)
    response = as_operator.post(undo, {"next": PAGE})
    assert response["Location"] == PAGE
    orders.refresh_from_db()
    assert orders.concurrency == 2
    assert "took back" in text(as_operator)


def test_a_start_or_stop_is_not_taken_back_through_settings(viewer: User, as_viewer: Client, orders: Endpoint) -> None:
    """The page offers no undo; a user with only the settings right could post it by hand."""
    viewer.user_permissions.add(Permission.objects.get(codename="change_settings"))
    endpoints.stop("Shop.Orders", "tomas", "console")
    endpoints.pause("Shop.Orders", "tomas", "console")
    for entry in AuditEntry.objects.all():
        response = as_viewer.post(f"{PAGE}undo/{entry.pk}/", {"next": PAGE})
        assert "Nothing was changed" in text(as_viewer, response["Location"])
    orders.refresh_from_db()
    assert (orders.desired_processes, orders.paused) == (0, True)
    assert not AuditEntry.objects.filter(verb="undo").exists()


def test_a_change_of_another_endpoint_is_not_taken_back_under_this_name(as_operator: Client, orders: Endpoint) -> None:
    Endpoint.objects.create(name="Billing", table="Billing", concurrency=2)
    endpoints.save_settings("Billing", {"concurrency": 8}, "tomas", "console")
    response = as_operator.post(f"{PAGE}undo/{AuditEntry.objects.get().pk}/", {"next": PAGE})
    assert "Nothing was changed" in text(as_operator, response["Location"])
    assert Endpoint.objects.get(name="Billing").concurrency == 8


@pytest.mark.parametrize(
    ("verb", "given", "field", "value"),
    [
        ("stop", {}, "desired_processes", 0),
        ("scale", {"processes": "3"}, "desired_processes", 3),
        ("pause", {}, "paused", True),
        ("start", {}, "desired_processes", 1),
    ],
)
def test_acts_on_processes(
    as_operator: Client, orders: Endpoint, verb: str, given: dict[str, str], field: str, value: int | bool
) -> None:
    response = as_operator.post(f"{PAGE}{verb}/", {"next": PAGE, **given})
    assert (response.status_code, response["Location"]) == (303, PAGE)
    orders.refresh_from_db()
    assert getattr(orders, field) == value
    assert AuditEntry.objects.get().verb == verb


def test_the_history_says_what_was_done_and_no_value_twice(as_operator: Client, orders: Endpoint) -> None:
    for verb, given in (("pause", {}), ("resume", {}), ("scale", {"processes": "3"}), ("restart", {}), ("stop", {})):
        as_operator.post(f"{PAGE}{verb}/", {"next": PAGE, **given})
    html = text(as_operator)
    said = " ".join(re.sub("<[^>]+>", " ", html[html.index('id="history"') :]).split())
    for done in ("paused it", "resumed it", "scaled processes 1 → 3", "restarted it", "stopped it: processes 3 → 0"):
        assert f"ana {done} " in said
    assert "off →" not in said
    assert "restarted one by one" not in said


@pytest.mark.parametrize("processes", ["", "-1", "0", "65", "many", "٣"])
def test_an_odd_scale_is_refused(as_operator: Client, orders: Endpoint, processes: str) -> None:
    response = as_operator.post(f"{PAGE}scale/", {"processes": processes, "next": PAGE})
    assert "Nothing was changed" in text(as_operator, response["Location"])
    orders.refresh_from_db()
    assert orders.desired_processes == 1


@pytest.mark.parametrize("verb", ["stop", "start", "scale", "pause", "resume", "settings"])
def test_a_viewer_changes_nothing(as_viewer: Client, orders: Endpoint, verb: str) -> None:
    assert "needs the right “Can " in text(as_viewer)
    response = as_viewer.post(f"{PAGE}{verb}/", {**SETTINGS, "concurrency": "9", "processes": "9", "next": PAGE})
    assert response.status_code == 303
    assert "needs the right “Can " in text(as_viewer, response["Location"])
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("verb", ["stop", "start", "scale", "pause", "resume", "settings", "withdraw"])
def test_a_look_is_no_act(as_operator: Client, orders: Endpoint, verb: str) -> None:
    assert as_operator.get(f"{PAGE}{verb}/").status_code == 405


@pytest.mark.parametrize(
    "given",
    [
        {"name": "Long" * 20, "queue": ""},
        {"name": "Legacy", "queue": f'"public"."{"ü" * 32}"'},
        {"name": "Legacy", "queue": f'"{"s" * 64}"."Orders"'},
    ],
)
def test_a_name_that_no_table_can_have_is_said(as_operator: Client, orders: Endpoint, given: dict[str, str]) -> None:
    response = as_operator.post("/endpoints/", {"peek_delay_ms": "1 s", **given})
    assert response.status_code == 422
    assert "63 bytes" in response.content.decode()
    assert Endpoint.objects.count() == 1


def test_a_foreign_endpoint_is_declared_labelled_and_withdrawn(as_operator: Client, orders: Endpoint) -> None:
    given = {"name": "Sales", "queue": "", "peek_delay_ms": "30 s"}
    html = text(as_operator, as_operator.post("/endpoints/", given)["Location"])
    assert "Sales is declared" in html
    assert "declared, runs elsewhere" in html
    assert "Declared peek delay is 30" in html
    declared = text(as_operator, "/endpoints/Sales/")
    assert "its own code decides" in declared
    assert "Scale" not in declared
    assert as_operator.post("/endpoints/Sales/stop/", {"next": "/endpoints/"}).status_code == 303
    as_operator.post("/endpoints/Sales/withdraw/", {"next": "/endpoints/"})
    assert not Endpoint.objects.filter(name="Sales").exists()
    as_operator.post(f"{PAGE}withdraw/", {"next": "/endpoints/"})
    assert Endpoint.objects.filter(name="Shop.Orders").exists()


def test_a_known_name_is_not_declared_again(as_operator: Client, orders: Endpoint) -> None:
    response = as_operator.post("/endpoints/", {"name": "Shop.Orders", "queue": "x", "peek_delay_ms": "1 s"})
    assert response.status_code == 422
    assert "There is an endpoint named Shop.Orders already" in response.content.decode()


def test_the_list_and_the_page_say_who_is_short(as_operator: Client, orders: Endpoint) -> None:
    assert "short of processes" in text(as_operator, "/endpoints/")
    now = timezone.now()
    facts = {"started_at": now - timedelta(minutes=5), "heartbeat_at": now, "state": "running", "slots": 2, "busy": 1}
    Process.objects.create(role="endpoint", endpoint="Shop.Orders", host="app-1", pid=7, start_ticks=1, **facts)
    html = text(as_operator)
    assert "1 of 1" in html
    assert "slots, now" in html


def test_endpoint_page_links_to_the_dead_of_its_queue(as_operator: Client, orders: Endpoint) -> None:
    Endpoint.objects.update(schema="shop eu", table='My "Orders"')
    asked = parse_qs(urlsplit(unescape(matched(r'<a href="([^"]*)">in the archive', text(as_operator)))).query)["q"][0]
    found = search.read(asked, ALL)
    assert (found.error, found.filter) == (None, ArchiveFilter(state="dead", queue='"shop eu"."My ""Orders"""'))


def test_hostile_names(as_operator: Client, console_database: str) -> None:
    Endpoint.objects.create(name='<script>alert(1)</script>/"', schema="shop", table="<b>")
    html = text(as_operator, "/endpoints/")
    address = matched(r'<th[^>]*>\s*<a href="(/endpoints/[^"]+)"', html)
    for each in (html, text(as_operator, address), text(as_operator, "/workers/"), text(as_operator, "/settings/")):
        assert "<script>alert" not in each


def test_an_unknown_endpoint_is_no_error(as_operator: Client, console_database: str) -> None:
    assert as_operator.get("/endpoints/Nobody/").status_code == 404
    assert as_operator.post("/endpoints/Nobody/stop/", {"next": "/endpoints/"}).status_code == 303


def test_the_list_says_how_its_figures_are_known(as_operator: Client, orders: Endpoint) -> None:
    html = text(as_operator, "/endpoints/")
    assert "Out, critical time and processing time are of the last minute" in html
    assert "In and Dead are the sampler's, of the endpoint's input queue" in " ".join(html.split())
    assert 'data-l="Critical time p50, p95"' in html, "two figures, and on a phone no head of the column"


def test_without_an_endpoint_it_says_what_makes_one(as_operator: Client, console_database: str) -> None:
    html = text(as_operator, "/endpoints/")
    assert "No endpoint is known" in html
    (command,) = re.findall(r"<code>manage\.py (\w+) Sales</code>", html)
    assert command in get_commands()
