"""Overview: is anything wrong, where, since when, what next? (C2)"""

import re
from datetime import timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone

from pgqueue_admin.archive import fingerprints, store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.console import navigation
from pgqueue_admin.console.overview import live
from pgqueue_admin.models import Alert, ArchiveSample, FailureGroup, LatestSample, Process, Queue, staleness
from tests.console.pages import Connect, Page, matched
from tests.console.sampled import as_when_recorded, many_queues, sample, signed_in


@pytest.fixture
def page(console_database: str) -> Page:
    client = signed_in()
    return lambda path="/": client.get(path).content.decode()


@pytest.fixture
def recorded_page(recorded_console: str) -> Page:
    sample(2)
    as_when_recorded()
    client = signed_in()
    return lambda path="/": client.get(path).content.decode()


def queue(table: str = "Billing", **figures: object) -> Queue:
    made = Queue.objects.create(schema="public", table=table, kind="input", target_age_seconds=60, target_dead=0)
    now = timezone.now()
    known = {"ready": 0, "in_flight": 0, "delayed": 0, "expired": 0, "dead": 0, "depth": 0}
    LatestSample.objects.create(queue=made, at=now, changed_at=now, **{**known, **figures})
    return made


def warn(about: Queue, **facts: object) -> Alert:
    now = timezone.now()
    given = {
        "kind": "dead_message",
        "subject": "x",
        "severity": "critical",
        "sentence": "24 dead messages",
        "last_seen_at": now,
    }
    address = f'"public"."{about.table}"'
    return Alert.objects.create(**{**given, "queue": address, "opened_at": now - timedelta(minutes=25), **facts})


def test_a_new_install_is_told_the_first_steps(page: Page) -> None:
    said = page()
    assert "No queue-shaped table has been found in" in said
    assert "Three steps" in said


def test_calm_is_ink_on_paper(page: Page) -> None:
    queue("Billing")
    queue("Sales")
    said = page()
    assert "All 2 queues are within target" in said
    assert '<li class="crit"' not in said


def test_sum_with_a_capped_count_says_at_least(page: Page) -> None:
    """2,598 plus at least 10,000 is no estimate; with an estimate it is both."""
    queue("Billing", ready=2_598, depth=2_598)
    queue("Sales", ready=10_000, depth=10_000, how="capped")
    assert ready_of(page()) == "12,598+"
    queue("Shipping", ready=50_000, depth=50_000, how="estimate")
    assert ready_of(page()) == "≈\u00a062,598+"


def ready_of(said: str) -> str:
    return matched(r'data-live="total.ready"[^>]*><span[^>]*>([^<]+)<', said)


def test_a_critical_warning_needs_somebody_with_one_next_step(page: Page) -> None:
    warn(queue("Billing"))
    queue("Sales")
    said = page()
    assert "One queue needs you" in said
    assert "<title>1 needs you: Billing · " in said
    assert said.count("24 dead messages") == 1
    assert "1 other queue is within target." in said
    assert "Open the failures" in said
    assert "/failures/?q=queue%3A%22public%22.%22Billing%22" in said.replace("&quot;", "%22")


@pytest.mark.parametrize(
    ("cause", "term"),
    [
        ("failed", 'result:failed error:=""'),
        ("lock_expired", 'result:lock_expired error:=""'),
        ("Shop.Refused", "error:=Shop.Refused"),
        ("two words", 'error:="two words"'),
    ],
)
def test_the_messages_of_a_cause_are_asked_for_as_the_archive_finds_them(page: Page, cause: str, term: str) -> None:
    warn(queue("Billing"), cause=cause)
    html = page()

    def asked(noun: str) -> list[str]:
        found = re.findall(rf'href="(/{noun}/\?[^"]*)"', html)
        return [parse_qs(urlsplit(unescape(path)).query)["q"][0] for path in found]

    assert asked("failures") == [f'queue:"public"."Billing" {term}'] * 2  # under needs you, and by cause


def test_a_cause_carries_what_is_known_of_it(page: Page) -> None:
    warn(queue("Billing"), cause="Shop.Refused")
    FailureGroup.objects.create(fingerprint="a" * 16, exception="Shop.Refused", owner="Ivo", note="<b>relay mx-2</b>")
    FailureGroup.objects.create(fingerprint="b" * 16, exception="Shop.Other", owner="Tomas")
    html = page()
    section = html[html.index("Dead messages by cause") :]
    assert "Ivo" in section
    assert "&lt;b&gt;relay mx-2" in section
    assert "Tomas" not in section


def test_a_cause_leads_to_its_failure_with_what_is_known_of_that_one(
    page: Page, console_database: str, connect: Connect
) -> None:
    """Two failures have one error: the archive tells which of them a queue's messages belong to."""
    archive = connect(console_database)
    for table, text in (("Billing", "card declined"), ("Sales", "no stock"), ("Sales", "no address")):
        store.archive_failed(
            archive,
            DeadMessage(queue=f'"public"."{table}"', exception_type="Shop.Refused", exception_message=text),
        )
        warn(queue(table), cause="Shop.Refused", subject=table) if not Queue.objects.filter(table=table) else None
    fingerprints.catch_up(archive)
    asked = "select fingerprint from messages.message_archive where exception_message = %(text)s"
    mine, other = (str(archive.value(asked, {"text": each})) for each in ("card declined", "no stock"))
    for digest, owner in ((mine, "Ivo"), (other, "Tomas")):
        FailureGroup.objects.create(fingerprint=digest, exception="Shop.Refused", owner=owner)
    html = page()
    rows = html[html.index("Dead messages by cause") :].split('<tr role="row" class="crit"')[1:3]
    billing, sales = sorted(rows, key=lambda row: "Sales" in row)
    assert f'href="/failures/{mine}/"' in billing
    assert "Ivo" in billing
    assert "Tomas" not in billing
    assert 'href="/failures/?q=' in sales
    assert "2 failures" in sales
    assert "Ivo" not in sales


@pytest.mark.parametrize(
    ("archived", "lying", "said"),
    [
        (4, 0, ["4 messages dead in the archive", "unknown until the alerter has looked"]),
        (4, 1, ["4 messages dead in the archive", "1 message dead, not in the archive"]),
        (0, 2, ["2 messages dead, not in the archive", "They wait in error queues."]),
        (0, 0, ["Nothing has died"]),
    ],
)
def test_dead_without_a_known_cause_are_shown_by_place(page: Page, archived: int, lying: int, said: list[str]) -> None:
    """Before the alerter's first look, or with their queue gone: dead messages of a queue are in the archive too."""
    queue("Billing", dead=archived)
    Queue.objects.filter(pk=queue("error", dead=lying).pk).update(kind="error")
    ArchiveSample.objects.create(at=timezone.now(), dead=archived)
    html = page()
    section = html[html.index("Dead messages by cause") :]
    headings = ["Nothing has died", "dead in the archive", "dead, not in the archive"]
    assert all(each in section for each in said)
    assert [each for each in headings if each in section] == [each for each in headings if any(each in s for s in said)]


@pytest.mark.parametrize(("missing", "said"), [(-1, False), (1, True)])
def test_samples_are_missing_when_every_other_page_says_so(
    page: Page, monkeypatch: pytest.MonkeyPatch, missing: int, said: bool
) -> None:
    monkeypatch.setattr(staleness, "MISSED_SAMPLES", 20)
    made = queue("Billing")
    at = timezone.now() - timedelta(seconds=staleness.limit() + missing * 5)
    LatestSample.objects.filter(queue=made).update(at=at)
    assert ("The console cannot see" in page()) is said


def test_single_unreadable_queue_does_not_blind_the_console(page: Page) -> None:
    """Another is read, and the sampler says why this one is not: the frame, /readyz and the alerter agree."""
    made, now = queue("Billing"), timezone.now()
    queue("Sales")
    about = {"host": "a", "pid": 1, "start_ticks": 1, "state": "running", "started_at": now}
    sampler = Process.objects.create(role="sampler", heartbeat_at=now, **about)
    LatestSample.objects.filter(queue=made).update(at=now - timedelta(minutes=5), error="permission denied")
    said = page()
    assert "The console cannot see" not in said
    assert "One queue is not read" in said
    assert "Nothing is broken" not in said
    LatestSample.objects.update(at=now - timedelta(minutes=5))
    Process.objects.filter(pk=sampler.pk).update(heartbeat_at=now - timedelta(minutes=5))
    assert "The console cannot see" in page()


def test_acknowledged_warnings_stay_quiet(page: Page) -> None:
    warn(queue("Billing"), acknowledged_by="ana", acknowledged_at=timezone.now())
    said = page()
    assert "The only queue is within target" in said
    assert "1 acknowledged warning stays quiet." in said
    warn(queue("Sales"), subject="y", acknowledged_by="ana", acknowledged_at=timezone.now())
    assert "2 acknowledged warnings stay quiet." in page()


def test_a_queue_off_target_needs_somebody_before_its_warning_is_opened(page: Page) -> None:
    queue("Billing", ready=3, depth=3, oldest_at=timezone.now() - timedelta(minutes=5))
    said = page()
    assert "One queue needs you" in said
    assert "Oldest ready message is past its target of 1" in said


def test_queues_under_all_others_are_marked_critical(page: Page) -> None:
    late = {"ready": 3, "depth": 3, "oldest_at": timezone.now() - timedelta(minutes=5)}
    for number in range(9):
        queue(f"Sales{number}", **late)
    queue("Calm", depth=7)
    others = page().partition("All others")[2]
    assert others.count('crit-t"><span class="fig" data-kind="counted">3</span> (critical)</span>') == 1
    assert '<span class="n"><span class="fig" data-kind="counted">7</span></span>' in others


def test_warnings_about_addresses_without_a_table_are_counted_apart(page: Page) -> None:
    warn(queue("Billing"))
    assert "no table;" not in page()
    warn(Queue(schema="public", table="Gone"), subject="y")
    said = page()
    assert "Two queues need you" in said
    assert "1 has no table; see its dead messages." in said


def test_only_warnings_can_wait(page: Page) -> None:
    warn(queue("Billing"), severity="warning", kind="peek_range", sentence="Peek delay 12 s")
    assert "Nothing is broken; 1 warning can wait" in page()


def test_a_console_that_cannot_see_says_so_and_keeps_the_figures(page: Page) -> None:
    made = queue("Billing", ready=17, depth=17)
    LatestSample.objects.filter(queue=made).update(at=timezone.now() - timedelta(seconds=40))
    said = page()
    assert re.search(r'The console cannot see: no sample since <time datetime="\S+Z" data-as="short"', said)
    assert "Figures are from" in said
    assert 'class="figures-stale"' in said
    assert ">17<" in said
    told = live.overview("")  # the browser shows the time in the user's zone; spoken text cannot be converted
    assert re.search(r'no sample since <time datetime="\S+Z" data-as="short"', told["verdict"])
    assert told["@say"] == "No sample"


def test_a_database_that_is_away_is_not_the_samplers_fault(page: Page) -> None:
    made, now = queue("Billing", ready=17, depth=17), timezone.now()
    LatestSample.objects.filter(queue=made).update(at=now - timedelta(seconds=40))
    row = Process.objects.create(
        role="sampler", host="a", pid=5, start_ticks=1, started_at=now, heartbeat_at=now,
        last_error="The database does not answer. Connection <refused>.\n\tIs it on?",
    )  # fmt: skip
    said = page()
    assert re.search("no sample since <time [^>]*>[^<]*</time>: the queues’ database does not answer", said)
    assert "The sampler cannot read the queues: The database does not answer. Connection &lt;refused&gt;." in said
    assert "The sampler has not reported" not in said
    told = live.overview("")
    assert "Connection &lt;refused&gt;." in told["verdict.rest"]
    assert told["@title"] == "The queues cannot be read"
    assert "Connection &lt;refused&gt;." in navigation.live("")["frame.why"]
    Process.objects.filter(pk=row.pk).update(heartbeat_at=now - timedelta(seconds=40))
    assert "The sampler has not reported since." in page()
    assert navigation.live("")["frame.why"] == "The sampler has not reported since."


def test_the_recorded_shop_worst_first(recorded_page: Page) -> None:
    said = recorded_page()
    backlog = said[said.index("Backlog, worst against its target first") :]
    assert backlog.index("error") < backlog.index("Invoicing") < backlog.index("Sales")
    assert 'data-kind="estimate"' in backlog  # Sales holds more than is counted
    assert "queues need you" in said


@pytest.mark.parametrize("window", ["1h", "6h", "24h", "nonsense"])
def test_the_ribbon_has_a_lane_for_each_queue_with_a_warning(page: Page, window: str) -> None:
    warn(queue("Billing"))
    said = page(f"/?w={window}")
    assert 'aria-label="Billing: critical from' in said


def test_the_two_hundredth_queue_does_not_break_it(page: Page) -> None:
    many_queues(200)
    said = page()
    assert "200 queues need you" in said
    assert "195 more queues – show all" in said
