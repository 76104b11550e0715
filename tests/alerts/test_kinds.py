"""Each warning kind by its thresholds."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.alerts.dead_message_cursor import DeadGroup, NewDeaths
from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds import BY_NAME, dead_message
from pgqueue_admin.alerts.mail.mail_settings import MailSettings
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting.numbers import NBSP
from pgqueue_admin.models import AlertMail, Endpoint, LatestSample, MinimumTtbr, Process, Queue

NOW = datetime(2026, 11, 20, 3, 12, 44, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def queue(table: str = "Billing", kind: str = "input", sample: dict[str, Any] | None = None, **facts: Any) -> Queue:
    facts = {"first_seen_at": ago(9_999), **facts}
    row = Queue(schema="public", table=table, kind=kind, **facts)
    row.latest = LatestSample(queue=row, **{"at": NOW, "changed_at": NOW, **(sample or {})})
    return row


def look(**facts: Any) -> AlertSnapshot:
    return AlertSnapshot(**{"now": NOW, "watching_since": ago(9_999), "environment": "production", **facts})


def found(kind: str, seen: AlertSnapshot) -> list[Finding]:
    return list(BY_NAME[kind].find(seen))


def severities(kind: str, seen: AlertSnapshot) -> list[str]:
    return [str(each.severity) for each in found(kind, seen)]


@pytest.mark.parametrize(("age", "expected"), [(59, []), (60, []), (61, ["critical"])])
def test_queue_age(age: int, expected: list[str]) -> None:
    sampled = queue(sample={"ready": 3, "oldest_at": ago(age)}, target_age_seconds=60)
    assert severities("queue_age", look(queues=[sampled])) == expected


def test_an_age_that_is_estimated_says_so() -> None:
    sampled = queue(sample={"ready": 3, "oldest_at": ago(105), "oldest_how": "estimate"}, target_age_seconds=60)
    (aged,) = found("queue_age", look(queues=[sampled]))
    assert aged.said.fact.replace("\u00a0", " ") == "Oldest ready message is ≈ 1 min 45 s old, target 1 min"


@pytest.mark.parametrize(("depth", "target", "expected"), [(10, 10, []), (11, 10, ["critical"]), (11, None, [])])
def test_queue_depth(depth: int, target: int | None, expected: list[str]) -> None:
    assert severities("queue_depth", look(queues=[queue(sample={"depth": depth}, target_depth=target)])) == expected


@pytest.mark.parametrize(("dead", "expected"), [(0, []), (1, ["critical"])])
def test_dead_count_of_an_error_queue(dead: int, expected: list[str]) -> None:
    assert severities("dead_count", look(queues=[queue("error", "error", {"dead": dead}, target_dead=0)])) == expected


def test_an_error_queue_past_the_cap_is_not_said_to_be_counted() -> None:
    for how, said in (("estimate", "≈ 41,200 dead messages"), ("capped", "10,000+ dead messages")):
        sample = {"dead": 41_200 if how == "estimate" else 10_000, "how": how}
        (dead,) = found("dead_count", look(queues=[queue("error", "error", sample, target_dead=0)]))
        assert dead.said.fact.replace(NBSP, " ").startswith(said)


def test_archived_dead_are_warned_of_by_cause_only() -> None:
    lying = [DeadGroup('"public"."Billing"', "Shop.Gateway+Refused", 3, ago(60))]
    seen = look(queues=[queue(sample={"dead": 3}, target_dead=0)], lying=lying)
    assert found("dead_count", seen) == []
    (dead,) = found("dead_message", seen)
    assert dead.said.fact == "3 dead messages by Refused, target 0"
    assert (dead.queue, dead.cause, dead.severity) == ('"public"."Billing"', "Shop.Gateway+Refused", "critical")


def test_a_sample_from_before_a_discard_is_no_warning() -> None:
    """The archive is read at each look: the last dead messages were discarded after the newest sample."""
    sampled = queue(sample={"dead": 167}, target_dead=0)
    for lying in ([], [DeadGroup('"public"."Sales"', "Shop.Refused", 3, ago(60))], None):
        assert found("dead_count", look(queues=[sampled], lying=lying)) == []


@pytest.mark.parametrize(("target", "severity"), [(0, "critical"), (2, "critical"), (3, "warning")])
def test_the_dead_of_a_queue_against_its_target(target: int, severity: str) -> None:
    lying = [DeadGroup('"public"."Billing"', "A", 2, NOW), DeadGroup('"public"."Billing"', "B", 1, NOW)]
    seen = look(queues=[queue(target_dead=target)], lying=lying)
    assert severities("dead_message", seen) == [severity, severity]


def test_new_deaths_are_counted_once_against_the_target() -> None:
    """The total includes the newest deaths: four are within a target of five."""
    four = [NewDeaths('"public"."Billing"', "A", 4, NOW)]
    for lying in ([DeadGroup('"public"."Billing"', "A", 4, NOW)], [], None):
        for target, severity in ((5, "warning"), (3, "critical")):
            seen = look(queues=[queue(target_dead=target)], lying=lying, deaths=four)
            assert dead_message.found(seen, four[0]).severity == severity


@pytest.mark.parametrize(
    ("left", "oldest", "expected"),
    [(119, 500, []), (120, 500, ["warning"]), (500, 119, []), (None, 500, ["warning"])],
)
def test_foreign_queue_without_departures_has_no_consumer(left: int | None, oldest: int, expected: list[str]) -> None:
    sample = {"ready": 4, "last_departure_at": ago(left) if left else None, "oldest_at": ago(oldest)}
    assert found("no_consumer", look(queues=[queue(sample={**sample, "in_flight": 1})])) == []
    seen = found("no_consumer", look(queues=[queue(sample=sample)]))
    assert [each.severity for each in seen] == expected
    assert seen == found("no_consumer", look(queues=[queue(sample=sample, kind="lease")]))
    assert all("no receiver seen" in each.sentence for each in seen)


REFUSED = "The database role may not do this. permission denied for table Billing"


def unread(seconds: float = 60, **facts: Any) -> Queue:
    """A queue beyond every target when it was last read; since then the database refuses."""
    sample = {
        "at": ago(seconds),
        "error": REFUSED,
        "sqlstate": "42501",
        "ready": 4,
        "dead": 1,
        "depth": 5,
        "sent_total": 9,
    }
    about = {"target_age_seconds": 60, "target_depth": 1, "target_dead": 0, "seq_end": 9}
    return queue(sample={**sample, "oldest_at": ago(500), "last_departure_at": ago(500)}, **{**about, **facts})


def test_unreadable_queue_has_no_other_warning() -> None:
    seen = look(queues=[unread(), queue("Sales")])
    for kind in ("queue_age", "queue_depth", "dead_count", "no_consumer", "sequence_exhaustion"):
        assert found(kind, seen) == []
    (said,) = found("queue_unreadable", seen)
    assert (said.severity, said.queue, said.since) == ("warning", '"public"."Billing"', ago(60))
    assert "the database says: The database role may not do this." in said.sentence
    assert "Grant SELECT" in said.sentence


def test_single_failed_read_of_a_queue_is_no_warning() -> None:
    assert found("queue_unreadable", look(queues=[unread(2), queue("Sales")])) == []


def test_a_database_that_is_away_is_not_said_of_each_queue() -> None:
    blind = Process(role="sampler", heartbeat_at=NOW, last_error="The database does not answer.")
    assert found("queue_unreadable", look(queues=[unread(), unread(table="Sales")], processes=[blind])) == []


def test_the_only_queue_is_said_to_be_unreadable_while_the_sampler_looks() -> None:
    """Shown for a queue that somebody has locked; without the right to read its only queue, the console is blind."""
    seen = look(queues=[unread()], processes=[Process(role="sampler", heartbeat_at=NOW)])
    assert found("queue_unreadable", seen) == []
    assert severities("blind", seen) == ["critical"]
    seen.queues[0].latest.sqlstate = "55P03"
    seen = look(queues=seen.queues, processes=seen.processes)
    assert found("blind", seen) == []
    assert len(found("queue_unreadable", seen)) == 1
    assert found("sampler_stale", seen) == []


def test_an_empty_queue_needs_nobody() -> None:
    assert found("no_consumer", look(queues=[queue(sample={"ready": 0, "last_departure_at": ago(9_999)})])) == []


@pytest.mark.parametrize(
    ("endpoint", "processes", "expected"),
    [
        ({}, [], ["critical"]),
        ({"paused": True}, [], []),
        ({}, [{"heartbeat_at": ago(1)}], []),
        ({}, [{"heartbeat_at": ago(11)}], ["critical"]),
        ({}, [{"heartbeat_at": ago(29), "ended_at": ago(29)}], []),
        ({}, [{"heartbeat_at": ago(30), "ended_at": ago(30)}], ["critical"]),
        ({"drain_seconds": 600}, [{"heartbeat_at": ago(1), "state": "draining", "drain_until": ago(-571)}], []),
        (
            {"drain_seconds": 600},
            [{"heartbeat_at": ago(1), "state": "draining", "drain_until": ago(-570)}],
            ["critical"],
        ),
        ({}, [{"heartbeat_at": ago(1), "state": "draining"}], []),  # told to drain by somebody else, at an unknown time
        ({}, [{"heartbeat_at": ago(at), "ended_at": ago(at)} for at in (99, 29, 98)], []),  # the last to end counts
    ],
)
def test_own_queue_without_a_running_process_has_no_consumer(
    endpoint: dict[str, Any], processes: list[dict[str, Any]], expected: list[str]
) -> None:
    ours = Endpoint(name="Billing", schema="public", table="Billing", **endpoint)
    running = [Process(role="endpoint", endpoint="Billing", **facts) for facts in processes]
    seen = look(queues=[queue(sample={"ready": 1})], endpoints=[ours], processes=running)
    assert severities("no_consumer", seen) == expected
    assert all("seems" not in each.sentence for each in found("no_consumer", seen))


def test_a_process_that_is_only_silent_is_not_to_be_started() -> None:
    ours = Endpoint(name="Billing", schema="public", table="Billing")
    silent = Process(role="endpoint", endpoint="Billing", heartbeat_at=ago(40))
    queues = [queue(sample={"ready": 1})]
    (seen,) = found("no_consumer", look(queues=queues, endpoints=[ours], processes=[silent]))
    assert "is not heard of" in seen.said.meaning
    assert "Start one" not in seen.said.meaning
    silent.ended_at = ago(35)
    (gone,) = found("no_consumer", look(queues=queues, endpoints=[ours], processes=[silent]))
    assert "Start it on Endpoints." in gone.said.meaning


HEARS = {"role": "endpoint", "endpoint": "Billing", "host": "h1", "pid": 7, "state": "running", "slots": 2}
HEARS |= {"heartbeat_at": NOW, "started_at": ago(900), "received_at": ago(90)}
BILLING = {"name": "Billing", "schema": "public", "table": "Billing"}


@pytest.mark.parametrize(
    ("facts", "paused", "oldest", "is_deaf"),
    [
        ({}, False, 70, True),
        ({"received_at": None}, False, 70, True),
        ({"received_at": ago(30)}, False, 70, False),
        ({"received_at": None, "started_at": ago(30)}, False, 70, False),
        ({"settings_at": ago(30)}, False, 70, False),
        ({"busy": 2}, False, 70, False),
        ({"busy": 1}, False, 70, True),
        ({"state": "draining"}, False, 70, False),
        ({"heartbeat_at": ago(60)}, False, 70, False),
        ({}, True, 70, False),
        ({}, False, 30, False),
    ],
)
def test_a_process_that_receives_nothing_is_deaf(
    facts: dict[str, Any], paused: bool, oldest: int, is_deaf: bool
) -> None:
    """It runs, sends heartbeats and has free slots, while ready messages wait: more such processes would not help."""
    waits = queue(sample={"ready": 40, "depth": 40, "oldest_at": ago(oldest)}, target_age_seconds=10, target_depth=5)
    ours = Endpoint(**BILLING, paused=paused)
    seen = look(queues=[waits], endpoints=[ours], processes=[Process(**{**HEARS, **facts})])
    advice = [each.sentence for kind in ("queue_age", "queue_depth") for each in found(kind, seen)]
    assert len(advice) == (0 if paused else 2), "that messages wait was decided"
    assert bool(found("deaf", seen)) is is_deaf
    assert paused or [("is deaf" in each, "raise concurrency" in each) for each in advice] == (
        [(True, False), (True, False)] if is_deaf else [(False, True), (False, False)]
    )


def test_deaf_process_is_named_with_its_start_and_backlog() -> None:
    waits = queue(sample={"ready": 40, "oldest_at": ago(70)})
    (one,) = found("deaf", look(queues=[waits], endpoints=[Endpoint(**BILLING)], processes=[Process(**HEARS)]))
    since = ago(90).strftime("%d %b %H:%M")
    assert one.said.fact == f"Deaf: process h1 pid 7 has received nothing since {since} UTC while 40 wait"


def test_peek_range_and_ttbr_conflict_of_each_endpoint() -> None:
    slow = Endpoint(name="Notifications", schema="public", table="Notifications", peek_delay_ms=12_000)
    declared = Endpoint(name="Mailer", ours=False, schema="public", table="Mailer", peek_delay_ms=5_000)
    seen = look(
        endpoints=[slow, declared],
        ttbrs={("public", "Mailer"): [MinimumTtbr(message_type="Shop.MailToSend", ttbr_ms=5_000)]},
    )
    assert [(each.subject, each.queue) for each in found("peek_range", seen)] == [
        ("Notifications", '"public"."Notifications"')
    ]
    (risk,) = found("ttbr_conflict", seen)
    assert (risk.subject, risk.cause, risk.severity) == ("Mailer", "Shop.MailToSend", "warning")
    assert "declared peek delay" in risk.sentence


@pytest.mark.parametrize(("ends", "expected"), [(2, []), (3, ["critical"])])
def test_worker_crashing(ends: int, expected: list[str]) -> None:
    crashed = [
        Process(
            role="endpoint", endpoint="Shipping", state="crashed", ended_at=ago(60 * n), last_error="ended by SIGKILL"
        )
        for n in range(ends)
    ]
    too_old = Process(role="endpoint", endpoint="Shipping", state="crashed", ended_at=ago(300))
    went_with_its_supervisor = Process(role="endpoint", endpoint="Shipping", state="lost", ended_at=ago(1))
    stopped = Process(role="endpoint", endpoint="Shipping", state="stopped", ended_at=ago(1))
    seen = look(processes=[*crashed, too_old, went_with_its_supervisor, stopped])
    assert severities("worker_crashing", seen) == expected
    assert all("The last one ended by SIGKILL." in each.sentence for each in found("worker_crashing", seen))


@pytest.mark.parametrize(("age", "every", "expected"), [(3, 1, []), (3.1, 1, ["critical"]), (29, 10, [])])
def test_sampler_stale(settings: Any, age: float, every: float, expected: list[str]) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SAMPLE_SECONDS": every}
    seen = look(queues=[queue(sample={"at": ago(age)})])
    assert severities("sampler_stale", seen) == expected


def test_old_sample_just_after_a_restart_is_not_stale() -> None:
    assert found("sampler_stale", look(queues=[queue(sample={"at": ago(86_400)})], watching_since=ago(2))) == []


def test_without_queues_the_samplers_heartbeat_counts() -> None:
    assert found("sampler_stale", look(processes=[Process(role="sampler", heartbeat_at=ago(1))])) == []
    (never,) = found("sampler_stale", look())
    assert never.said.fact == "No sample was ever taken"


@pytest.mark.parametrize("kind", ["queue_age", "queue_depth", "dead_count", "no_consumer", "sequence_exhaustion"])
def test_old_figures_are_not_judged(kind: str) -> None:
    stale = look(queues=[queue(sample={"at": ago(60)})])
    assert not BY_NAME[kind].can_tell(stale)
    assert BY_NAME[kind].can_tell(look(queues=[queue()]))


@pytest.mark.parametrize(
    ("last", "end", "expected"),
    [
        (1_825_361_099, 2**31 - 1, []),
        (1_825_361_100, 2**31 - 1, ["warning"]),
        (2_040_109_466, 2**31 - 1, ["critical"]),
        (5_000_000_000, 2**63 - 1, []),
        (5_000_000_000, None, []),
    ],
)
def test_sequence_near_end(last: int, end: int | None, expected: list[str]) -> None:
    assert severities("sequence_exhaustion", look(queues=[queue(sample={"sent_total": last}, seq_end=end)])) == expected


@pytest.mark.parametrize(
    ("box", "subjects"),
    [
        (MailSettings(server=False), ["EMAIL_URL"]),
        (MailSettings(server=True), ["PGQUEUE_ALERT_TO"]),
        (MailSettings(server=True, to=("ana@example.org",)), []),
    ],
)
def test_smtp_missing(box: MailSettings, subjects: list[str]) -> None:
    assert [each.subject for each in found("mail_not_configured", look(mail=box))] == subjects


def test_mail_failing() -> None:
    (failing,) = found("mail_failing", look(failed_mails=[AlertMail(error="550 no")] * 2))
    assert failing.said.fact == "2 mails could not be sent"
    assert "550 no" in failing.sentence


@pytest.mark.parametrize(("name", "number"), [("", 1), ("production", 0)])
def test_unnamed_environment(name: str, number: int) -> None:
    assert len(found("unnamed_environment", look(environment=name))) == number


def test_archive_unreadable() -> None:
    assert found("archive_unreadable", look()) == []
    (unreadable,) = found("archive_unreadable", look(archive_error="run manage.py engine_schema"))
    assert all(said in unreadable.sentence for said in ("engine_schema", "Nothing is lost"))


def test_breaker_open_is_one_warning_however_many_processes_it_is_open_in() -> None:
    broken = {"what": "Receiving from Sales", "error": "The database does not answer."}
    running = {"role": "endpoint", "endpoint": "Sales", "heartbeat_at": NOW, "started_at": NOW}
    seen = [Process(**running, breakers=[{**broken, "seconds": seconds}]) for seconds in (31.2, 64.9)]
    silent = Process(**{**running, "heartbeat_at": ago(60)}, breakers=[{**broken, "seconds": 900}])
    (said,) = found("circuit_breaker_open", look(processes=[*seen, silent, Process(**running)]))
    assert (said.subject, said.cause, said.severity) == ("Sales", "Receiving from Sales", "critical")
    assert said.said.fact.replace(NBSP, " ").startswith("Receiving from Sales has failed for 1 min 4 s in 2 processes,")
