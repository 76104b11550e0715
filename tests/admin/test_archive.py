"""The archive in Django admin is read-only and capped, and its acts ask for confirmation (C4, CONSOLE 11)."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape, unescape
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import InternalError, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from pgqueue_admin.admin.list_cells import WIDEST
from pgqueue_admin.archive.message_edit import MessageEdit
from pgqueue_admin.models import AuditEntry, Operation, RetryPlan, database_role
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import edits, lifecycle, runner, selection, single
from pgqueue_admin.services.operations.plans import Planned
from tests.admin.conftest import VIEWER
from tests.archived_messages import BILLING, OPERATOR, REFUSED, archived, dead, number_in
from tests.waiting import until

SignIn = Callable[..., Client]
LIST = "/admin/pgqueue/archivedmessage/"
INLINE = re.compile(r'<script(?![^>]*\bsrc=)(?![^>]*type="application/json")|\sstyle=|\son\w+=|<style')


def text(response: Any) -> str:
    """The visible text with white space normalised."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def ask(client: Client, action: str, ids: list[int], **more: Any) -> Any:
    return client.post(LIST, {"action": action, "_selected_action": ids, **more}, follow=True)


def test_lists_filters_and_finds(sign_in: SignIn) -> None:
    client, message = sign_in("ana"), archived(dead(exception=REFUSED)[0].id)
    page = client.get(LIST, {"queue": BILLING, "exception_type": REFUSED, "state": "dead"})
    assert (page.status_code, page.context["cl"].result_count) == (200, 88)
    for copied in (message.id, message.message_id, message.row_id):
        assert str(message.id) in text(client.get(LIST, {"q": copied}))
    assert client.get(LIST, {"q": "no such id"}).context["cl"].result_count == 0


def test_finds_a_type_and_a_conversation(sign_in: SignIn) -> None:
    client, message = sign_in("ana"), dead(exception=REFUSED)[0]
    full = archived(message.id)
    of_type = client.get(LIST, {"q": full.message_type, "state": "dead"}).context["cl"].result_count
    assert of_type == len(dead(1000, type=full.message_type)) > 1
    short = re.split(r"[.+]", full.message_type or "")[-1]
    assert client.get(LIST, {"q": short, "state": "dead"}).context["cl"].result_count == len(dead(1000, type=short))
    conversation = json.loads(full.headers or "")["NServiceBus.ConversationId"]
    found = client.get(LIST, {"q": conversation})
    assert str(message.id) in text(found)
    assert 0 < found.context["cl"].result_count < 88


def test_columns_are_short_and_whole_under_the_pointer(sign_in: SignIn) -> None:
    html = sign_in("ana").get(LIST, {"exception_type": REFUSED}).content.decode()
    assert f'<span title="{REFUSED}">' in html
    assert f'<td class="field-in_queue"><span title="{escape(BILLING)}">Billing</span></td>' in html
    rows = re.findall(r'<td class="field-(?:in_queue|type|exception|handled|decided_by)">(.*?)</td>', html)
    assert rows
    assert all(len(unescape(re.sub(r"<[^>]+>", "", cell))) <= WIDEST for cell in rows)


def test_confirmation_shows_samples_and_headers_a_retry_removes(sign_in: SignIn) -> None:
    client, ids = sign_in("ana"), [message.id for message in dead(30, exception=REFUSED)]
    asked = ask(client, "retry", ids)
    said = text(asked)
    assert "10 of them" in said
    assert len(re.findall(r'href="/admin/pgqueue/archivedmessage/\d+/change/"', asked.content.decode())) == 10
    assert "− NServiceBus.FailedQ" in said
    assert re.search(r"− NServiceBus\.ExceptionInfo\.\* \(\d+ headers\)", said.replace("\u00a0", " "))
    assert "NServiceBus.MessageId" not in said
    discarded = text(ask(client, "discard", ids[:2]))
    assert "All of them" in discarded
    assert "What changes in each" not in discarded


def test_the_audit_says_before_and_after(sign_in: SignIn) -> None:
    audit = {"who": "ana", "verb": "set", "noun": "endpoint", "subject": "Billing", "origin": "console"}
    entry = AuditEntry.objects.create(
        **audit, before={"peek_delay_ms": 1000, "concurrency": 2}, after={"peek_delay_ms": 12_000, "concurrency": 4}
    )
    client = sign_in("viewer", VIEWER)
    for page in ("/admin/pgqueue/auditentry/", f"/admin/pgqueue/auditentry/{entry.pk}/change/"):
        said = text(client.get(page)).replace("\u00a0", " ")
        assert "peek delay 1 s → 12 s" in said
        assert "concurrency per process 2 → 4" in said


def test_celerys_tables_are_last_and_nobody_changes_them(sign_in: SignIn) -> None:
    root = sign_in("root", is_superuser=True)
    labels = [each["app_label"] for each in root.get("/admin/").context["available_apps"]]
    assert sorted(labels[-2:]) == ["django_celery_beat", "django_celery_results"]
    assert "pgqueue" in labels
    task = PeriodicTask.objects.create(
        name="thin", task="x", interval=IntervalSchedule.objects.create(every=1, period="days")
    )
    listed = "/admin/django_celery_beat/periodictask/"
    assert "thin" in text(root.get(listed))
    assert root.get(f"{listed}add/").status_code == 403
    assert root.post(f"{listed}{task.pk}/change/", {"name": "other"}).status_code == 403
    assert root.post(f"{listed}{task.pk}/delete/", {"post": "yes"}).status_code == 403
    root.post(listed, {"action": "run_tasks", "_selected_action": [task.pk]})
    task.refresh_from_db()
    assert task.name == "thin"
    for noun in ("intervalschedule", "crontabschedule", "solarschedule", "clockedschedule"):
        assert root.get(f"/admin/django_celery_beat/{noun}/").status_code == 200
    for noun in ("taskresult", "groupresult"):
        assert root.get(f"/admin/django_celery_results/{noun}/").status_code == 200
    assert sign_in("ana").get("/admin/django_celery_results/taskresult/").status_code == 403, "arguments stand there"


def test_counting_stops_at_the_cap(sign_in: SignIn, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "CAP": 100}
    client = sign_in("ana")
    with CaptureQueriesContext(connections["queues"]) as queries:
        page = client.get(LIST)
    assert page.context["cl"].result_count == 100
    counted = [each["sql"] for each in queries if "COUNT(" in each["sql"]]
    assert counted
    assert all("LIMIT 100" in sql for sql in counted)
    assert not any('"body"' in each["sql"] for each in queries)


def test_lists_read_no_headers(sign_in: SignIn) -> None:
    with CaptureQueriesContext(connections["queues"]) as queries:
        sign_in("ana").get(LIST)
    assert not any('"headers"' in each["sql"] or "stack_trace" in each["sql"] for each in queries)


def test_retry_asks_with_count_queues_and_environment(sign_in: SignIn, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ENVIRONMENT": "production"}
    client, before = sign_in("ana"), number_in(BILLING)
    ids = [message.id for message in dead(3, exception=REFUSED)]
    page = ask(client, "retry", ids)
    operation = Operation.objects.get()
    assert page.redirect_chain == [(f"/admin/pgqueue/operation/{operation.pk}/confirm/", 302)]
    said = text(page)
    assert "Retry 3 messages in production?" in said
    assert "&quot;public&quot;.&quot;Billing&quot; 3" in said
    assert 'value="Retry 3"' in page.content.decode()
    assert (operation.state, number_in(BILLING)) == ("frozen", before)

    done = client.post(page.redirect_chain[0][0], {"go": "Retry 3", "reason": "gateway is back"}, follow=True)
    operation.refresh_from_db()
    assert (operation.state, operation.started_by, operation.reason) == ("waiting", "ana", "gateway is back")
    assert (
        f'<a href="/admin/pgqueue/operation/{operation.pk}/change/">Operation {operation.pk}</a>'
        in done.content.decode()
    )
    runner.run(operation.pk)
    assert number_in(BILLING) == before + 3
    entry = AuditEntry.objects.get()
    assert (entry.origin, entry.verb, entry.count) == ("admin", "retry", 3)


def test_above_20_a_reason_and_above_100_discarded_the_count_are_asked_for(sign_in: SignIn) -> None:
    client = sign_in("ana")
    page = ask(client, "retry", [message.id for message in dead(21, exception=REFUSED)])
    confirm, operation = page.redirect_chain[0][0], Operation.objects.get()
    refused = client.post(confirm, {"go": "Retry 21", "reason": " "})
    assert "Above 20 messages a reason is asked for. Nothing has started." in text(refused)
    assert 'id="count"' not in refused.content.decode()
    operation.refresh_from_db()
    assert operation.state == "frozen"
    client.post(confirm, {"go": "Retry 21", "reason": "gateway is back"})
    operation.refresh_from_db()
    assert operation.state == "waiting"

    page = ask(client, "discard", [message.id for message in dead(101, queue=BILLING)])
    confirm, operation = page.redirect_chain[0][0], Operation.objects.latest("pk")
    refused = client.post(confirm, {"go": "Discard 101", "reason": "old", "count": "100"})
    assert "The set has 101 messages, you typed 100. Nothing has started." in text(refused)
    assert 'value="old"' in refused.content.decode()
    client.post(confirm, {"go": "Discard 101", "reason": "old", "count": "101"})
    operation.refresh_from_db()
    assert (operation.state, operation.reason) == ("waiting", "old")


def test_every_match_beyond_the_page_can_be_chosen(sign_in: SignIn) -> None:
    client = sign_in("ana")
    url = f"{LIST}?queue={BILLING}&state=dead"
    chosen = {"action": "discard", "select_across": "1", "_selected_action": [dead(queue=BILLING)[0].id]}
    client.post(url, chosen)
    assert Operation.objects.get().queues == {BILLING: 367}


def test_the_way_back_is_said_as_on_the_pages(sign_in: SignIn, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 30}
    page = ask(sign_in("operator"), "discard", [dead(exception=REFUSED)[0].id])
    assert "Each leaves the dead and is kept. Restore brings it back for 30 days." in text(page)


def test_keeping_them_changes_nothing(sign_in: SignIn) -> None:
    client = sign_in("ana")
    page = ask(client, "discard", [dead(exception=REFUSED)[0].id])
    said = client.post(page.redirect_chain[0][0], {"keep": "Keep them"}, follow=True)
    assert "Nothing was done." in text(said)
    assert Operation.objects.get().state == "cancelled"
    assert len(dead(100, exception=REFUSED)) == 88


def test_the_second_to_confirm_is_told_who_and_when(sign_in: SignIn) -> None:
    ana, bob = sign_in("ana"), sign_in("bob")
    confirm = ask(ana, "retry", [dead(exception=REFUSED)[0].id]).redirect_chain[0][0]
    ana.post(confirm, {"go": "Retry 1"})
    said = text(bob.post(confirm, {"go": "Retry 1"}, follow=True))
    assert re.search(r"Nothing more was retried: ana started operation \d+ at \d{4}-", said)
    assert bob.get(confirm).status_code == 302


def test_a_get_never_acts(sign_in: SignIn) -> None:
    client = sign_in("ana")
    confirm = ask(client, "retry", [dead(exception=REFUSED)[0].id]).redirect_chain[0][0]
    for url in (confirm, f"{confirm}?go=1", f"{LIST}?action=retry"):
        client.get(url)
    assert Operation.objects.get().state == "frozen"
    assert not AuditEntry.objects.exists()


def test_viewer_has_no_acts(sign_in: SignIn) -> None:
    viewer, message = sign_in("viewer", VIEWER), dead(exception=REFUSED)[0]
    page = viewer.get(LIST)
    assert page.status_code == 200
    assert page.context["action_form"] is None
    ask(viewer, "retry", [message.id])
    assert not Operation.objects.exists()
    frozen = selection.freeze("retry", [message.id], "ana", "console")
    confirm = reverse("admin:pgqueue_operation_confirm", args=[frozen.pk])
    assert viewer.post(confirm, {"go": "1"}).status_code == 403
    frozen.refresh_from_db()
    assert frozen.state == "frozen"


def test_each_act_needs_its_own_right(sign_in: SignIn) -> None:
    page = sign_in("ana", ("retry_message",)).get(LIST)
    assert [name for name, _ in page.context["action_form"].fields["action"].choices if name] == ["retry"]
    assert Permission.objects.filter(codename="discard_message").count() == 1


def test_messages_cannot_be_added_changed_or_deleted(sign_in: SignIn) -> None:
    root, message = sign_in("root", is_superuser=True), dead()[0]
    assert root.get(f"{LIST}add/").status_code == 403
    assert root.post(f"{LIST}{message.id}/delete/", {"post": "yes"}).status_code == 403
    assert root.post(f"{LIST}{message.id}/change/", {"state": "succeeded"}).status_code == 403
    assert "delete_selected" not in [name for name, _ in root.get(LIST).context["action_form"].fields["action"].choices]


def test_the_object_page_opens_in_the_console_and_tells_its_history(sign_in: SignIn) -> None:
    message = dead(words=("<script>",))[0]
    single.act("discard", message.id, "bob", "command")
    page = sign_in("ana").get(f"{LIST}{message.id}/change/")
    assert f'<a href="/archive/{message.id}/">Open in the console</a>' in page.content.decode()
    assert "bob: discarded" in text(page)
    assert "<script>alert" not in page.content.decode()


def test_without_the_engines_tables_it_names_the_command(sign_in: SignIn) -> None:
    client = sign_in("ana")
    with queue_database().write_session() as connection:
        connection.run("drop schema messages cascade")
    for url in (LIST, f"{LIST}5/change/"):
        page = client.get(url)
        assert page.status_code == 200
        assert "manage.py engine_schema" in text(page)


@pytest.mark.parametrize("noun", ["operation", "auditentry", "endpoint", "archivedmessage", "schedule"])
def test_every_noun_is_there_for_staff_that_may_view_it(sign_in: SignIn, noun: str) -> None:
    client = sign_in("viewer", VIEWER)
    assert client.get(f"/admin/pgqueue/{noun}/").status_code == 200
    assert f"/admin/pgqueue/{noun}/" in client.get("/admin/").content.decode()


def test_no_page_needs_more_than_the_strict_policy(sign_in: SignIn) -> None:
    client, message = sign_in("ana"), dead()[0]
    operation = selection.freeze("retry", [message.id], "ana", "console")
    pages = (LIST, f"{LIST}{message.id}/change/", f"/admin/pgqueue/operation/{operation.pk}/confirm/", "/admin/")
    for url in (*pages, f"/admin/pgqueue/operation/{operation.pk}/change/", "/admin/pgqueue/auditentry/"):
        page = client.get(url)
        html = page.content.decode()
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert "unsafe-inline" not in page.headers["Content-Security-Policy"]
        assert not re.search(
            r"<script(?![^>]*\bsrc=)(?![^>]*type=\"application/json\")|\sstyle=|\son\w+=|<style", html
        ), url


def test_bad_input_is_no_server_error(sign_in: SignIn) -> None:
    client = sign_in("ana")
    for query in ("q=%00", "queue=%00", "state=nonsense", "exception_type=x%00y", "p=99999", "id=abc", "q=" + "9" * 50):
        assert client.get(f"{LIST}?{query}", follow=True).status_code == 200, query
    for object_id in ("0", "99999999999999999999", "abc"):
        assert client.get(f"{LIST}{object_id}/change/", follow=True).status_code == 200, object_id
    confirm = ask(client, "retry", [dead()[0].id]).redirect_chain[0][0]
    assert client.post(confirm, {"go": "1", "reason": "a\0b"}).status_code == 302
    assert Operation.objects.get().reason == "ab"


def test_through_django_the_queues_are_only_looked_at(archived_console: str) -> None:
    with connections["queues"].cursor() as cursor, pytest.raises(InternalError, match="read-only transaction"):
        cursor.execute("delete from messages.message_archive")


@contextmanager
def queues_as(**changes: str) -> Iterator[None]:
    """Connect to the queue database under another name or role, for Django and for the source."""
    entry = connections["queues"].settings_dict
    before = {name: entry[name] for name in changes}
    connections["queues"].close()
    entry.update(changes)
    try:
        yield
    finally:
        connections["queues"].close()
        entry.update(before)


def test_a_role_that_may_only_select_sees_all_and_is_told(sign_in: SignIn) -> None:
    client, message = sign_in("ana"), dead()[0]
    with queue_database().write_session() as connection:
        connection.run("drop role if exists only_looks; create role only_looks login password 'looks'")
        connection.run("grant usage on schema messages to only_looks")
        connection.run("grant select on all tables in schema messages to only_looks")
    with queues_as(USER="only_looks", PASSWORD="looks"):
        until(database_role.current, 20, "the database was asked")
        assert str(message.id) in text(client.get(LIST))
        assert client.get(f"{LIST}{message.id}/change/").status_code == 200
        said = text(ask(client, "retry", [message.id]))
    assert "Nothing can be retried, discarded or restored: the database role only_looks may only SELECT." in said
    assert not Operation.objects.exists()


def test_a_queue_database_that_is_down_is_said(sign_in: SignIn) -> None:
    client = sign_in("ana")
    with queues_as(NAME="no_such_database"):
        page = client.get(LIST)
    assert page.status_code == 200
    assert "The database does not answer." in text(page)


def test_a_retry_of_many_is_offered_in_stages_and_steered(sign_in: SignIn) -> None:
    client = sign_in("ana")
    page = ask(client, "retry", [each.id for each in dead(21, exception=REFUSED)])
    said, confirm = page.content.decode(), page.redirect_chain[0][0]
    assert re.search(r'name="plan" value="careful" checked>\s*try 5, watch', said)
    client.post(confirm, {"go": "Retry 21", "reason": "gateway is back", "plan": "careful", "edit": ""})
    operation = Operation.objects.get()
    plan = RetryPlan.objects.get(pk=operation.pk)
    assert (operation.state, plan.try_first, plan.rest_rate) == ("waiting", 5, 20.0)

    def steer(action: str) -> str:
        posted = {"action": action, "_selected_action": [operation.pk]}
        answer = client.post("/admin/pgqueue/operation/", posted, follow=True)
        operation.refresh_from_db()
        return text(answer)

    assert f"Operations paused: {operation.pk}" in steer("pause")
    assert operation.state == "paused"
    assert "ana paused operation" in steer("pause")
    assert f"Operations resumed: {operation.pk}" in steer("resume")
    assert operation.state == "waiting"
    assert f"Operations cancelled: {operation.pk}" in steer("cancel_rest")
    assert operation.state == "cancelled"


def test_retry_without_the_right_cannot_be_paused(sign_in: SignIn) -> None:
    client = sign_in("bob", ("discard_message",))
    operation = selection.freeze("retry", [dead(exception=REFUSED)[0].id], "ana", "admin")
    lifecycle.start(operation.pk, "ana", planned=Planned())
    client.post("/admin/pgqueue/operation/", {"action": "pause", "_selected_action": [operation.pk]}, follow=True)
    operation.refresh_from_db()
    assert operation.state == "waiting"


def test_discard_right_cancels_a_discard_and_no_retry(sign_in: SignIn) -> None:
    client = sign_in("bob", ("discard_message",))
    found = [selection.freeze(kind, [dead(exception=REFUSED)[0].id], "ana", "admin") for kind in ("discard", "retry")]
    about = {"action": "cancel_rest", "_selected_action": [each.pk for each in found]}
    client.post("/admin/pgqueue/operation/", about, follow=True)
    for each in found:
        each.refresh_from_db()
    assert [each.state for each in found] == ["cancelled", "frozen"]


def test_retry_with_an_edit_confirms_the_change(sign_in: SignIn) -> None:
    client = sign_in("ana", (*OPERATOR, "read_message"))
    confirm = ask(client, "retry", [dead(exception=REFUSED)[0].id]).redirect_chain[0][0]
    edits.propose(Operation.objects.get().pk, MessageEdit("header", "Tenant", "add", "blue"), "tomas")
    assert "sets header Tenant to “blue”" in text(client.get(confirm))
    said = text(client.post(confirm, {"go": "Retry 1", "edit": ""}, follow=True))
    assert "set anew since you looked" in said
    assert Operation.objects.get().state == "frozen"
