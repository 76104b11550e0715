"""All pages share one verdict: an endpoint stopped by somebody, a paused one, unread queues."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.console import navigation
from pgqueue_admin.console.live_topics import queues
from pgqueue_admin.console.overview import last_visit, live
from pgqueue_admin.console.workers import cells
from pgqueue_admin.models import Alert, AuditEntry, Endpoint, LatestSample, Process, Queue, Sample, database_clock
from pgqueue_admin.services import endpoints
from tests.console.pages import Page, shown
from tests.said_times import SHORT

LATE = timedelta(minutes=5)


@pytest.fixture
def admin(console_database: str) -> User:
    return User.objects.create_user("admin")


@pytest.fixture
def page(as_operator: Client) -> Page:
    """The page's text, without tags."""
    return lambda path="/": words(shown(as_operator, path))


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", "", html)).replace("\u00a0", " ").split())


def endpoint(name: str, **figures: object) -> Endpoint:
    """A running endpoint and its queue as just sampled."""
    now = timezone.now()
    row = Endpoint.objects.create(name=name, table=name, desired_processes=1)
    queue = Queue.objects.create(
        schema="public", table=name, kind="input", endpoint=name, target_age_seconds=60, target_dead=0
    )
    known = {"ready": 0, "in_flight": 0, "delayed": 0, "expired": 0, "dead": 0, "depth": 0}
    LatestSample.objects.create(queue=queue, at=now, changed_at=now, **{**known, **figures})
    process(role="endpoint", endpoint=name)
    return row


def process(**facts: object) -> Process:
    now, pid = timezone.now(), Process.objects.count() + 1
    about = {"host": "app-1", "pid": pid, "start_ticks": 1, "state": "running", "started_at": now, "heartbeat_at": now}
    return Process.objects.create(**{**about, **facts})


@pytest.fixture
def incident(admin: User) -> None:
    """Demo.Orders was stopped with four waiting messages; Demo.Web is paused with nine."""
    process(role="supervisor")
    for name in ("Demo.Billing", "Demo.Shipping"):
        endpoint(name)
    endpoint("Demo.Orders", ready=4, depth=4, oldest_at=timezone.now())
    endpoint("Demo.Web", ready=9, depth=9, oldest_at=timezone.now() - LATE)
    endpoints.stop("Demo.Orders", admin, "console")
    endpoints.pause("Demo.Web", admin, "console")
    Process.objects.filter(endpoint="Demo.Orders").update(ended_at=timezone.now(), state="stopped")


def at(verb: str) -> str:
    return f"{AuditEntry.objects.get(verb=verb).at:%H:%M}"


def test_every_page_says_first_who_stopped_what_and_what_waits_for_it(incident: None, page: Page) -> None:
    stopped = f"Demo.Orders is stopped (by admin, {at('stop')}); 4 wait"
    paused = f"Demo.Web is paused (by admin, {at('pause')}); 9 wait"
    for path in ("/", "/workers/", "/endpoints/", "/queues/", "/queues/public/Demo.Orders/"):
        assert stopped in page(path), path
    for path in ("/", "/workers/", "/endpoints/", "/queues/", "/queues/public/Demo.Web/"):
        assert paused in page(path), path
    for path in ("/workers/", "/endpoints/"):
        assert "processes run." not in page(path).replace("3 of 3 wanted processes run.", "")
        assert "endpoints run" not in page(path)


def test_overview_opens_with_the_cause_and_its_act(incident: None, as_operator: Client) -> None:
    html = shown(as_operator, "/")
    opening = html[html.index('<h1 id="v"') : html.index("</ol>")]
    assert words(opening).startswith(f"Demo.Orders is stopped (by admin, {at('stop')}); 4 wait")
    assert 'action="/endpoints/Demo.Orders/start/"' in opening
    assert "Demo.Web" not in opening[opening.index("<ol") :], "what is paused needs nobody"
    assert "<title>Demo.Orders is stopped; 4 wait; 1 needs you · " in html
    as_operator.post("/endpoints/Demo.Orders/start/")
    assert "is stopped" not in words(shown(as_operator, "/"))


def test_cause_precedes_a_larger_pile_and_hides_its_consequences(incident: None, page: Page) -> None:
    pile = endpoint("Demo.Pile", dead=500)
    for kind, name, said in (
        ("dead_message", pile.name, "500 dead messages"),
        ("no_consumer", "Demo.Orders", "4 ready, nobody receives"),
        ("queue_age", "Demo.Orders", "Oldest ready message is 2 min old"),
    ):
        warn(name, kind=kind, sentence=said)
    said = page()
    assert said.index("Demo.Orders is stopped (by admin") < said.index("500 dead messages")
    assert "nobody receives" not in said
    assert "2 more warnings" not in said
    assert "nobody receives" not in page("/queues/public/Demo.Orders/")


def test_a_paused_queue_is_grey_and_its_age_is_not_judged_but_its_dead_are(
    incident: None, as_operator: Client, page: Page
) -> None:
    html = shown(as_operator, "/queues/public/Demo.Web/")
    assert re.search(r'data-live="now.state"[^>]*><span class="tag ">.*paused</span>', html)
    assert 'action="/endpoints/Demo.Web/resume/"' in html
    assert 'class="notice"' in html
    listed = page("/queues/")
    assert "1 queue off target" not in listed
    assert "1 paused, 3 within target" in listed
    assert page("/queues/?q=state:paused").count("Demo.Web") >= 1
    assert "Demo.Orders" not in page("/queues/?q=state:paused").partition("1 queue of 4")[2]
    assert past("queue_age") == []
    LatestSample.objects.filter(queue__table="Demo.Web").update(dead=1)
    assert "1 queue off target" in page("/queues/")
    Endpoint.objects.filter(name="Demo.Web").update(paused=False)
    assert past("queue_age") == ['"public"."Demo.Web"']


def past(kind: str) -> list[str]:
    """The queues that the alerter would warn of, from the same rows."""
    queues, rows = Queue.objects.select_related("latest"), Endpoint.objects.all()
    seen = AlertSnapshot(
        now=database_clock.now(), watching_since=database_clock.now() - LATE, queues=list(queues), endpoints=list(rows)
    )
    return [found.queue for found in BY_NAME[kind].find(seen)]


def test_the_rail_counts_who_should_run_and_does_not(incident: None) -> None:
    counts = navigation.NavigationBadges()
    assert (counts.endpoints, counts.workers) == (("2 of 4", "mild"), ("3 of 4", "mild"))
    endpoints.start("Demo.Orders", "admin", "console")
    endpoints.resume("Demo.Web", "admin", "console")
    process(role="endpoint", endpoint="Demo.Orders")
    counts = navigation.NavigationBadges()
    assert (counts.endpoints, counts.workers) == (("4", ""), ("4", ""))


def test_an_open_page_is_told_in_the_same_words(incident: None) -> None:
    told, first = cells.of_list(""), live.overview("")
    for said in (told["workers.verdict"], told["endpoints.verdict"], first["verdict"]):
        assert words(said).startswith(f"Demo.Orders is stopped (by admin, {at('stop')}); 4 wait")
    assert told["workers.verdict.tone"] == "verdict crit"
    assert told["@say"] == "Demo.Orders is stopped; 4 wait", "spoken words have no time"


def test_stopped_with_nothing_to_do_is_no_alarm_and_paused_is_none_at_all(admin: User, page: Page) -> None:
    process(role="supervisor")
    for name in ("Demo.Orders", "Demo.Web"):
        endpoint(name)
    endpoints.pause("Demo.Web", admin, "console")
    assert cells.live("")["workers.verdict.tone"] == "verdict paused"
    assert "1 of 2 queues are within target" in page()
    endpoints.stop("Demo.Orders", admin, "console")
    assert cells.live("")["workers.verdict.tone"] == "verdict warn"
    said = page()
    assert "queue needs you" not in said
    assert f"Demo.Orders is stopped (by admin, {at('stop')}). Demo.Web is paused (by admin, {at('pause')})." in said


def warn(table: str, minutes: float = 25, **facts: object) -> Alert:
    now = timezone.now()
    about = {"severity": "critical", "kind": "dead_message", "last_seen_at": now, "queue": f'"public"."{table}"'}
    given = {"subject": f"{table} {facts.get('kind')}", "value": "24 dead", "sentence": f"24 dead of {table}"}
    return Alert.objects.create(**{**about, **given, "opened_at": now - timedelta(minutes=minutes), **facts})


DEAD = "They stay dead until somebody retries or discards them."


def test_new_warnings_come_first_and_acknowledged_ones_are_grey(page: Page) -> None:
    for name, dead, minutes in (("Old", 900, 600), ("Small", 1, 5), ("Large", 50, 20), ("Known", 7, 600)):
        endpoint(name, dead=dead)
        warn(name, minutes, meaning=DEAD)
    Alert.objects.filter(queue__contains="Known").update(acknowledged_by="ivo", acknowledged_at=timezone.now())
    said = page()
    assert re.search(rf"2 new since {SHORT}, 1 older", said)
    places = [said.index(name) for name in ("24 dead of Large", "24 dead of Small", "24 dead of Old", "Known 24 dead")]
    assert places == sorted(places)
    assert said.count(DEAD) == 1
    assert "acknowledged by ivo" in said


def test_a_pile_that_grows_is_new_however_old_it_is(page: Page) -> None:
    endpoint("Old", dead=900)
    warn("Old", 600)
    queue = Queue.objects.get()
    assert re.search(rf"Nothing new since {SHORT}; 1 older is open", page())
    Sample.objects.create(queue=queue, at=database_clock.now() - timedelta(minutes=10), dead=883)
    said = page()
    assert "One queue needs you" in said
    assert "24 dead of Old; growing." in said


def test_new_counts_from_the_look_before_of_this_browser(as_operator: Client, admin: User) -> None:
    endpoint("Sales", dead=1)
    warn("Sales", 120)
    assert "older is open" in words(shown(as_operator, "/")), "of a browser that was never here: half an hour"
    for ago in (180, 181):  # a visit three hours ago, and again a minute earlier
        as_operator.cookies[last_visit.COOKIE] = f"{kept(600)}.{kept(ago)}"
        assert "One queue needs you" in words(shown(as_operator, "/"))
    assert "One queue needs you" in words(shown(as_operator, "/")), "loaded again it is the same look"
    as_operator.cookies[last_visit.COOKIE] = f"{kept(180)}.{kept(20)}"
    assert "older is open" in words(shown(as_operator, "/"))
    for hostile in ("", "x.y", "9" * 40, f"{kept(-600)}.{kept(-600)}", "-1.-1"):
        as_operator.cookies[last_visit.COOKIE] = hostile
        assert as_operator.get("/").status_code == 200


def kept(minutes: int) -> int:
    return int((database_clock.now() - timedelta(minutes=minutes)).timestamp())


def test_all_warnings_of_a_queue_are_acknowledged_from_overview(as_operator: Client, admin: User) -> None:
    endpoint("Sales", dead=3)
    numbers = [warn("Sales", kind=kind, sentence=f"a {kind}").pk for kind in ("dead_message", "queue_depth")]
    other = warn("Other")
    html = shown(as_operator, "/")
    assert "Acknowledge 2 warnings of Sales?" in html
    given = ",".join(str(number) for number in numbers)
    assert f'name="alerts" value="{given}"' in html
    answer = as_operator.post("/alerts/acknowledgements/", {"alerts": given, "next": "/"}, follow=True)
    said = words(answer.content.decode())
    assert "Acknowledged: Sales, 2 warnings. They are grey now" in said
    assert "Acknowledge 2 warnings of Sales?" not in said
    assert set(Alert.objects.exclude(acknowledged_at=None).values_list("pk", flat=True)) == set(numbers)
    assert AuditEntry.objects.filter(verb="acknowledge").count() == 2
    again = as_operator.post("/alerts/acknowledgements/", {"alerts": given}, follow=True)
    assert "Nothing was changed. ana acknowledged this warning" in words(again.content.decode())
    assert Alert.objects.get(pk=other.pk).acknowledged_at is None


def test_acknowledging_needs_its_right(as_viewer: Client, admin: User) -> None:
    endpoint("Sales", dead=3)
    alert = warn("Sales")
    html = shown(as_viewer, "/")
    assert "Acknowledge 1 warning" not in html
    assert words(html).count("acknowledge: needs") == 1
    answer = as_viewer.post("/alerts/acknowledgements/", {"alerts": str(alert.pk)}, follow=True)
    assert "Nothing was changed. Acknowledging needs" in words(answer.content.decode())
    nothing = as_viewer.post("/alerts/acknowledgements/", {"alerts": "x"}, follow=True)
    assert nothing.status_code == 200
    assert Alert.objects.get().acknowledged_at is None


def test_the_order_is_said_to_have_changed_only_by_how_grave_queues_are(admin: User, as_operator: Client) -> None:
    for name in ("A", "B"):
        endpoint(name, ready=1, depth=1, oldest_at=timezone.now())
    assert queues("")["@order"] == ""
    LatestSample.objects.filter(queue__table="B").update(ready=50, depth=50, in_per_second=9.0, out_per_second=1.0)
    assert queues("")["@order"] == "", "a figure alone changes no order"
    LatestSample.objects.filter(queue__table="B").update(dead=1)
    assert queues("")["@order"] == f",{Queue.objects.get(table='B').pk}:3"
    assert "@order" not in queues("-ready"), "who sorts by a figure knows that it moves"
