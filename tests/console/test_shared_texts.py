"""What one user searched for, opened or was shown is visible to another only with the right to read messages."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection as console_database
from django.test.utils import CaptureQueriesContext

from pgqueue_admin.console.archive import shown_search
from pgqueue_admin.models import AuditEntry, Endpoint, MaskingReveal, MaskingRule, Operation, Process, database_clock
from pgqueue_admin.services import audit_exports, content_access
from pgqueue_admin.services.masking import reveals
from pgqueue_admin.services.operations import lifecycle, selection
from tests.console.operating import choose
from tests.console.pages import shown
from tests.console.recorded import Recorded

SECRET = "ORD-600052"
SEARCH = f"state:dead {SECRET}"


@pytest.fixture
def searched(recorded: Recorded, cards: list[int]) -> Operation:
    frozen = selection.freeze("retry", cards, "ana", "console", selection=SEARCH)
    audit_exports.begin("ana", SEARCH, "csv")
    audit_exports.begin("ana", f"{SEARCH} {'x' * 500}", "csv")
    return frozen


def test_a_typed_search_is_shown_to_who_might_search_so(recorded: Recorded, searched: Operation) -> None:
    page = f"/operations/{searched.pk}/"
    for path in (page, "/audit/"):
        assert SECRET in shown(recorded.viewer, path), path
        assert SECRET not in shown(recorded.counter, path), path
    assert shown_search.NOT_SHOWN in shown(recorded.counter, "/audit/")
    MaskingRule.objects.create(name="Orders", kind="regex", pattern="ORD-[0-9]+", types=[])
    for path in (page, "/audit/"):
        assert SECRET not in shown(recorded.viewer, path), path
    MaskingRule.objects.all().delete()
    lifecycle.start(searched.pk, "ana")
    assert SECRET not in shown(recorded.counter, page)
    assert "which you may not see" in shown(recorded.counter, page)
    for client in (recorded.operator, recorded.counter):
        assert SECRET not in shown(client, "/"), "the overview is one page for all"


def test_a_search_by_figures_is_shown_to_everybody(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "retry", all="matching", q="state:dead error:RefusedException")
    assert "error:RefusedException" in shown(recorded.counter, frozen["Location"])


def test_the_audits_own_search_is_no_oracle(recorded: Recorded, searched: Operation) -> None:
    for asked in (SECRET, f"on:{SECRET}"):
        assert "exported" in shown(recorded.viewer, f"/audit/?q={asked}")
        assert "exported" not in shown(recorded.counter, f"/audit/?q={asked}")


def test_admin_has_no_search_of_others(recorded: Recorded, searched: Operation, client: Any) -> None:
    person = User.objects.create_user("staff", password="x", is_staff=True)
    person.user_permissions.set(_all_but_reading())
    client.force_login(person)
    html = client.get("/admin/pgqueue/auditentry/").content.decode()
    assert "a search" in html
    assert SECRET not in html
    page = f"/admin/pgqueue/operation/{searched.pk}/change/"
    assert SECRET not in client.get(page).content.decode()
    person.user_permissions.add(Permission.objects.get(codename="read_message"))
    assert SECRET in client.get(page).content.decode()
    person.user_permissions.set(_all_but_reading())
    entry = AuditEntry.objects.filter(noun="archive")[0]
    assert SECRET not in client.get(f"/admin/pgqueue/auditentry/{entry.pk}/change/").content.decode()


def _all_but_reading() -> Any:
    return Permission.objects.filter(content_type__app_label="pgqueue").exclude(codename="read_message")


def revealing(recorded: Recorded) -> User:
    MaskingRule.objects.create(name="Orders", kind="regex", pattern="ORD-[0-9]+", types=[])
    assert recorded.operator
    person = User.objects.get(username="ana")
    reveals.begin(person, "SEC-7", "/archive/", "console")
    return person


def opened() -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(verb="open").order_by("pk"))


def test_each_message_that_is_opened_while_revealing_is_in_the_audit_once(recorded: Recorded, cards: list[int]) -> None:
    shown(recorded.operator, f"/archive/{cards[0]}/")
    assert not opened(), "nothing is hidden, so nothing is revealed"
    revealing(recorded)
    for path in (
        f"/archive/{cards[0]}/",
        f"/archive/{cards[0]}/edit/",
        f"/archive/{cards[0]}/",
        f"/archive/{cards[1]}/",
    ):
        shown(recorded.operator, path)
    assert recorded.operator.get(f"/archive/{cards[2]}/body/").status_code == 200
    row_id = recorded.connection.value('select id from "Sales" order by seq limit 1')
    shown(recorded.operator, f"/queues/public/Sales/messages/{row_id}/")
    found = [(entry.who, entry.reason, entry.after) for entry in opened()]
    archived = [("ana", "SEC-7", {"archive_id": each}) for each in cards[:3]]
    assert found == [*archived, ("ana", "SEC-7", {"row_id": str(row_id)})]
    assert "opened with masked parts shown" in shown(recorded.operator, "/audit/")
    shown(recorded.viewer, f"/archive/{cards[3]}/")
    assert len(opened()) == 4, "who sees bars is not named"


def test_the_entries_of_one_reveal_have_an_end(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reveals, "MOST_OPENED", 3)
    person = revealing(recorded)
    for number in (1, 2, 2, 3, 4, 5, 6):
        reveals.opened_archived(person, number, '"public"."Billing"')
    assert [entry.after for entry in opened()] == [{"archive_id": 1}, {"archive_id": 2}, {"archive_id": 3}, None]
    assert "more than 3 messages" in opened()[-1].subject
    reveals.begin(person, "SEC-8", "/archive/", "console")
    reveals.opened_archived(person, 1, '"public"."Billing"')
    assert len(opened()) == 5, "another reveal counts anew"
    assert MaskingReveal.objects.get().opened == ["archive 1"]


def test_nothing_is_asked_of_the_database_where_nothing_is_revealed(recorded: Recorded) -> None:
    assert recorded.viewer
    person = User.objects.get(username="ivo")
    content_access.of(person)
    with CaptureQueriesContext(console_database) as asked:
        reveals.opened_archived(person, 1, None)
    assert not asked.captured_queries


def process(said: str, role: str = "endpoint") -> Process:
    now = database_clock.counted()
    about = {"host": "app-1", "pid": 7, "started_at": now, "heartbeat_at": now, "last_error_at": now}
    return Process(role=role, last_error=said, state="running", **about)


RAISED = f"Shop.NoStock: order {SECRET} of Mrs Secret"


def test_handler_error_is_reduced_to_its_type_without_the_read_right() -> None:
    assert content_access.NOTHING.process_error(process(RAISED)) == "Shop.NoStock"
    assert content_access.ALL.process_error(process(RAISED)) == RAISED
    for said in ("settings version 3 refused: no such mode", "exit code 1", "connection refused: is it there?"):
        assert content_access.NOTHING.process_error(process(said)) == said
    told = "Blind: the database is down"
    assert content_access.NOTHING.process_error(process(told, "sampler")) == told


def test_handler_error_is_masked(recorded: Recorded) -> None:
    MaskingRule.objects.create(name="Orders", kind="regex", pattern="ORD-[0-9]+", types=[])
    masked = content_access.of_everybody()
    assert SECRET not in masked.process_error(process(RAISED))
    assert "Mrs Secret" in masked.process_error(process(RAISED))
    assert SECRET not in masked.process_error(process(f"exit code 1, {SECRET}"))
    cut = f"Shop.NoStock: {'x' * 3000}"[:2000]
    assert "xxx" not in masked.process_error(process(cut)), "what is cut may end within a hidden part"


def test_the_workers_page_and_the_overview_do_not_tell_it(recorded: Recorded) -> None:
    Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=1)
    broken, supervisor = process(RAISED), process("", "supervisor")
    broken.state, broken.endpoint, broken.start_ticks = "back-off", "Shipping", 1
    broken.ended_at = database_clock.now()
    broken.next_start_at = broken.ended_at + timedelta(minutes=2)
    supervisor.pid = supervisor.start_ticks = 1
    broken.save()
    supervisor.save()
    for path in ("/workers/", "/"):
        assert "Mrs Secret" not in shown(recorded.counter, path), path
    assert "Shop.NoStock" in shown(recorded.counter, "/workers/").replace("<wbr>", "")
    assert "Mrs Secret" in shown(recorded.operator, "/workers/")
