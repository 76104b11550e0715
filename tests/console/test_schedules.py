"""Schedules: what the clock sends, did it run, when next; who may change them, and what is refused."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from pgqueue_admin.console.schedules import live
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.lease.schedules import runner
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.services import schedules
from pgqueue_admin.services.schedules import Act, ScheduleDraft
from pgqueue_admin.transport import Endpoint
from tests.console.pages import shown
from tests.console.sampled import elsewhere
from tests.lease.test_schedules import due
from tests.older_schema import set_back

Connect = Callable[..., Connection]
TYPED = {
    "name": "Nightly invoices", "to": schedules.LEASE, "zone": "Europe/Vienna", "minute": "30", "hour": "2", "day": "*",
    "month": "*", "weekday": "*", "message": '{"Day": "{{ due | date }}"}', "missed": "skip", "reason": "wanted",
}  # fmt: skip


@pytest.fixture
def engine(console_database: str, connect: Connect) -> Connection:
    return connect(console_database)


def text(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.replace("<wbr>", "")).split())


def made(name: str = "Nightly", **about: Any) -> int:
    given = {"to": schedules.LEASE, "message_type": "", "message": "{}", "expression": "30 2 * * *"}
    draft = ScheduleDraft(name=name, **{**given, "zone": "Europe/Vienna", "missed": "skip", **about})
    return schedules.add(draft, Act("ana", "command"))


def test_page_without_schedules_says_what_one_is(engine: Connection, as_operator: Client) -> None:
    page = shown(as_operator, "/schedules/")
    assert "No schedule yet" in text(page)
    assert 'href="/schedules/new/"' in page
    assert 'aria-current="page"' in page


def test_without_the_tables_it_says_what_makes_them(engine: Connection, as_operator: Client) -> None:
    set_back(engine, 4)
    assert "<code>manage.py engine_schema</code> makes them" in shown(as_operator, "/schedules/")
    assert as_operator.get("/schedules/1/").status_code == 404


def test_schedule_is_created_and_shown(engine: Connection, as_operator: Client) -> None:
    assert "At 06:00 every day, in UTC." in shown(as_operator, "/schedules/new/")
    answer = as_operator.post("/schedules/new/", TYPED)
    assert (answer.status_code, answer["Location"]) == (303, "/schedules/")
    page = text(shown(as_operator, "/schedules/"))
    assert "1 schedule: nothing is overdue, dead or missed" in page
    assert "At 02:30 every day 30 2 * * * Europe/Vienna" in page
    assert "not yet" in page
    (schedule,) = schedules_there(engine)
    form = shown(as_operator, f"/schedules/{schedule}/")
    assert 'name="minute" value="30"' in form
    assert "02:30 does not exist: it runs at 03:00" in form
    assert "ana</b> created" in form
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.who, entry.origin, entry.reason) == ("create", "ana", "console", "wanted")


def schedules_there(engine: Connection) -> list[int]:
    return [row.id for row in engine.all("select id from messages.schedule order by id")]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"weekday": "1-9"}, "weekday 1-9 cannot be read. Allowed: 0 or 7 is Sunday"),
        ({"day": "30", "month": "2"}, "never comes"),
        ({"zone": "Mars"}, "Mars is no time zone"),
        ({"date": "2020-01-01 06:00"}, "is over: it would never be sent"),
        ({"message": "{"}, "The message is no JSON"),
        ({"name": ""}, "This field is required"),
        ({"to": '"public"."Nowhere"'}, "not one of the available choices"),
    ],
)
def test_invalid_schedule_is_reported_at_its_field_and_not_saved(
    engine: Connection, as_operator: Client, typed: dict[str, str], said: str
) -> None:
    answer = as_operator.post("/schedules/new/", {**TYPED, **typed})
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert 'value="Nightly invoices"' in answer.content.decode() or "name" in typed
    assert schedules_there(engine) == []


def test_timetable_is_described_without_saving(engine: Connection, as_operator: Client) -> None:
    fragment = as_operator.post("/schedules/read/", {**TYPED, "minute": "0,30"}).content.decode()
    assert "At 02:00 and 02:30 every day, in Europe/Vienna." in fragment
    assert fragment.count("<li>") == 5
    assert "cannot be read" in as_operator.post("/schedules/read/", {**TYPED, "hour": "25"}).content.decode()
    looked = as_operator.post("/schedules/new/", {**TYPED, "look": "1"})  # scripts off
    assert "At 02:30 every day, in Europe/Vienna." in looked.content.decode()
    assert schedules_there(engine) == []


def test_a_change_says_what_it_was_and_is_not_written_over_anothers(engine: Connection, as_operator: Client) -> None:
    schedule = made()
    address = f"/schedules/{schedule}/"
    assert as_operator.post(address, {**TYPED, "name": "Nightly", "hour": "3", "version": "1"}).status_code == 303
    page = shown(as_operator, address)
    assert "30 2 * * * Europe/Vienna → 30 3 * * * Europe/Vienna" in page
    late = as_operator.post(address, {**TYPED, "hour": "4", "version": "1"})
    assert (late.status_code, "ana changed Nightly" in late.content.decode()) == (422, True)


def test_with_the_queue_database_down_one_is_not_said_to_be_gone(engine: Connection, as_operator: Client) -> None:
    """The typed text is still there to be saved."""
    address = f"/schedules/{made()}/"
    with elsewhere("queues", PORT=1):
        looked = as_operator.get(address)
        typed = as_operator.post(address, {**TYPED, "name": "Weekly", "version": "1"})
    assert (looked.status_code, typed.status_code) == (200, 422)
    for answer in (looked, typed):
        assert "The database does not answer." in answer.content.decode()
    assert "Save" not in looked.content.decode()
    assert 'value="Weekly"' in typed.content.decode()
    assert as_operator.post(address, {**TYPED, "name": "Weekly", "version": "1"}).status_code == 303


def test_pause_resume_run_and_remove(engine: Connection, as_operator: Client) -> None:
    schedule = made()
    assert as_operator.post(f"/schedules/{schedule}/pause/").status_code == 303
    page = text(shown(as_operator, "/schedules/"))
    assert "paused by ana" in page
    assert "It is paused: its due times pass without a message." in page
    as_operator.post(f"/schedules/{schedule}/resume/")
    as_operator.post(f"/schedules/{schedule}/run/", {"reason": "to try it"})
    page = text(shown(as_operator, "/schedules/"))
    assert re.search(r"waits .*by ana, in its queue", page)
    assert engine.value("select count(*) from messages.message") == 1
    gone = as_operator.post(f"/schedules/{schedule}/remove/", {"next": f"/schedules/{schedule}/"}, follow=True)
    assert "It is removed." in gone.content.decode()
    assert schedules_there(engine) == []
    verbs = list(AuditEntry.objects.order_by("id").values_list("verb", flat=True))
    assert verbs == ["create", "pause", "resume", "run now", "remove"]
    late = as_operator.post(f"/schedules/{schedule}/pause/", follow=True).content.decode()
    assert f"Nothing was changed. There is no schedule {schedule}." in late


def test_schedules_need_their_right(engine: Connection, as_viewer: Client) -> None:
    schedule = made()
    for address in ("/schedules/", f"/schedules/{schedule}/", "/schedules/new/"):
        assert "needs the right “Can change schedules and send their messages”" in shown(as_viewer, address)
    for address in ("new/", f"{schedule}/", *(f"{schedule}/{verb}/" for verb in ("pause", "resume", "run", "remove"))):
        assert as_viewer.post(f"/schedules/{address}", {**TYPED, "name": "mine"}).status_code == 303
    assert [verb for verb in AuditEntry.objects.values_list("verb", flat=True)] == ["create"]
    assert engine.value("select count(*) from messages.message") == 0


def test_outcome_of_each_scheduled_message_is_shown(
    engine: Connection, console_database: str, as_operator: Client
) -> None:
    queue = LeaseQueue(console_database)
    for name in ("failed", "done"):
        due(engine, made(name), timedelta(seconds=10))
        runner.run(engine, postgresql(), "beat on app-1")
        (lease,) = queue.claim(1)
        queue.finish(lease, "failed" if name == "failed" else "success", "KeyError")
    queue.close()
    endpoint = Endpoint("Billing", console_database)
    endpoint.create_queues()
    due(engine, made("bills", to="Billing", message_type="Shop.Bill"), timedelta(seconds=10))
    runner.run(engine, postgresql(), "beat on app-1")
    page = text(shown(as_operator, "/schedules/"))
    assert "3 schedules: 1 ended dead" in page
    assert "Beat on app-1 looked" in page
    found = re.findall(r"(failed|done|bills) (?:Shop.Bill → Billing|lease queue) .*?(dead|succeeded|waits) ", page)
    assert sorted(found) == [("bills", "waits"), ("done", "succeeded"), ("failed", "dead")]
    assert found[0][0] == "failed"  # trouble first
    engine.run('delete from "Billing"')
    assert re.search(r"bills Shop.Bill → Billing .*? taken ", text(shown(as_operator, "/schedules/")))
    engine.run('drop table "Billing"')
    assert re.search(
        r"bills Shop.Bill → Billing .*? sent .*what became of it cannot be seen",
        text(shown(as_operator, "/schedules/")),
    )


def test_unsent_due_schedule_is_the_first_sentence(engine: Connection, as_operator: Client) -> None:
    due(engine, made(), timedelta(minutes=10))
    page = text(shown(as_operator, "/schedules/"))
    assert "1 schedule: 1 is due, and nobody sends it" in page
    assert "Nobody has looked yet what is due" in page
    runner.run(engine, postgresql(), "beat on app-1")
    assert "1 schedule: 1 was missed" in text(shown(as_operator, "/schedules/"))


def test_the_filter_narrows_and_says_what_it_covered(engine: Connection, as_operator: Client) -> None:
    schedules.pause(made("one"), Act("ana", "command"))
    made("two")
    assert "1 of 2 schedules" in text(shown(as_operator, "/schedules/?q=state:paused"))
    assert "No schedule matches" in shown(as_operator, "/schedules/?q=result:dead")
    assert "There is no field owner:" in shown(as_operator, "/schedules/?q=owner:ana")


def test_names_and_messages_of_others_are_escaped(engine: Connection, as_operator: Client) -> None:
    schedule = made("<script>alert(1)</script>", message='"</textarea><script>"')
    for address in ("/schedules/", f"/schedules/{schedule}/"):
        page = shown(as_operator, address)
        assert "<script>alert" not in page
        assert "</textarea><script>" not in page


def test_an_open_page_is_told_what_the_page_would_say(engine: Connection, as_operator: Client) -> None:
    schedule = made()
    page = shown(as_operator, "/schedules/")
    assert 'data-topics="schedules"' in page
    said = live.live("")
    assert text(said[f"schedule.{schedule}.last"]) == "not yet"
    due(engine, schedule, timedelta(seconds=10))
    runner.run(engine, postgresql(), "beat on app-1")
    said = live.live("")
    assert "waits" in text(said[f"schedule.{schedule}.last"])
    assert said["@title"] == "1 schedule: nothing is overdue, dead or missed"
    assert {key for key in said if not key.startswith("@")} <= set(re.findall(r'data-live(?:-class)?="([^"]+)"', page))
    set_back(engine, 4)
    assert live.live("") == {}


def test_page_says_until_when_due_times_are_planned(engine: Connection, as_operator: Client) -> None:
    made()
    assert "Due times are written down until" not in shown(as_operator, "/schedules/")
    engine.run("update messages.schedule set planned_until = now() + interval '5 days'")
    assert "Due times are written down until" in shown(as_operator, "/schedules/")


def test_a_message_is_looked_for_where_it_was_sent_whatever_it_sends_now(
    engine: Connection, console_database: str, as_operator: Client
) -> None:
    for name in ("Billing", "Shipping"):
        Endpoint(name, console_database).create_queues()
    schedule = made("bills", to="Billing", message_type="Shop.Bill")
    ana = Act("ana", "command")
    schedules.run_now(schedule, ana)
    now_to = ScheduleDraft("bills", "Shipping", "Shop.Bill", "{}", "30 2 * * *", "UTC", "skip")
    schedules.save(schedule, now_to, ana)
    assert " waits " in text(shown(as_operator, "/schedules/"))
    schedules.save(schedule, replace(now_to, to=schedules.LEASE), ana)
    for address in ("/schedules/", f"/schedules/{schedule}/"):
        assert " waits " in text(shown(as_operator, address))
    engine.run('delete from "Billing"')
    assert " taken " in text(shown(as_operator, "/schedules/"))
