"""Opening, updating, resolving and acknowledging warnings, and which mails are due."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from pgqueue_admin.alerts import acknowledgements
from pgqueue_admin.alerts.dead_message_cursor import DeadGroup, NewDeaths
from pgqueue_admin.alerts.evaluation import AlertChanges, Evaluation
from pgqueue_admin.alerts.mail import policy
from pgqueue_admin.alerts.mail.mail_settings import MailSettings
from pgqueue_admin.alerts.mail.policy import RateLimit
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.archive import fingerprints
from pgqueue_admin.models import Alert, AlertMail, AuditEntry, Endpoint, FailureGroup, LatestSample, MaskingRule, Queue
from pgqueue_admin.models.queue_database import queue_database
from tests.alerts.conftest import BILLING

START = datetime(2026, 11, 20, 2, 47, tzinfo=UTC)
BOX = MailSettings(sender="pgqueue@example.org", to=("oncall@example.org",), environment="production")

pytestmark = pytest.mark.usefixtures("console_database")


class Clock:
    """Runs the alerter's passes at times that the test chooses."""

    def __init__(self) -> None:
        self.now = START

    def look(self, minutes: float = 0, died: dict[str, int] | None = None, **facts: Any) -> AlertSnapshot:
        self.now += timedelta(minutes=minutes)
        deaths = [NewDeaths(BILLING, cause, count, self.now) for cause, count in (died or {}).items()]
        lying = facts.pop("lying", [DeadGroup(*each) for each in self.lying(died)])
        about = {"environment": "production", "mail": BOX, "lying": lying, "deaths": deaths, **facts}
        return AlertSnapshot(now=self.now, watching_since=self.now, **about)

    def lying(self, died: dict[str, int] | None) -> list[tuple[str, str, int, datetime]]:
        known = {alert.cause: alert.count for alert in Alert.objects.filter(resolved_at=None, kind="dead_message")}
        for cause, count in (died or {}).items():
            known[cause] = known.get(cause, 0) + count
        return [(BILLING, cause, count, START) for cause, count in known.items()]

    def run_once(self, minutes: float = 0, died: dict[str, int] | None = None, **facts: Any) -> list[str]:
        """Return the subjects of this pass's mails."""
        seen = self.look(minutes, died, **facts)
        with transaction.atomic():
            changes = Evaluation(seen).run()
            written = policy.write(seen, changes)
        AlertMail.objects.filter(pk__in=[mail.pk for mail in written]).update(created_at=self.now)
        return [mail.subject for mail in written]


@pytest.fixture
def clock() -> Clock:
    return Clock()


def endpoint(delay: int) -> list[Endpoint]:
    return [Endpoint(name="Notifications", schema="public", table="Notifications", peek_delay_ms=delay)]


def evaluate(seen: AlertSnapshot) -> AlertChanges:
    return Evaluation(seen).run()


def test_warning_stays_one_open_row_until_resolved(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    first = evaluate(clock.look(endpoints=endpoint(12_000)))
    assert [alert.kind for alert in first.opened if alert.queue] == ["peek_range"]
    again = evaluate(clock.look(1, endpoints=endpoint(12_000)))
    assert not again
    longer = evaluate(clock.look(1, endpoints=endpoint(15_000)))
    assert [alert.value for alert in longer.updated] == ["15\u00a0s"]
    over = evaluate(clock.look(1, endpoints=endpoint(1_000)))
    assert [alert.kind for alert in over.resolved] == ["peek_range"]
    alert = Alert.objects.get(kind="peek_range")
    assert alert.resolved_at == clock.now
    assert caplog.text.count("Peek delay is") == 1  # logged only on opening
    evaluate(clock.look(1, endpoints=endpoint(12_000)))
    assert Alert.objects.filter(kind="peek_range").count() == 2


def test_warning_stays_open_while_the_archive_is_unreadable(clock: Clock) -> None:
    evaluate(clock.look(died={"Refused": 1}))
    changes = evaluate(clock.look(1, lying=None, archive_error="The database does not answer."))
    assert not changes.resolved
    assert Alert.objects.get(kind="dead_message").resolved_at is None


def test_queue_warning_stays_open_while_the_queue_is_unreadable(clock: Clock) -> None:
    queue = Queue(schema="public", table="Billing", kind="input", target_depth=1, first_seen_at=START)
    queue.latest = LatestSample(queue=queue, at=START, changed_at=START, depth=5, ready=0)
    others = Queue(schema="public", table="Sales", kind="input", first_seen_at=START)
    others.latest = LatestSample(queue=others, at=START, changed_at=START)
    evaluate(clock.look(queues=[queue, others]))
    queue.latest.error = "The database role may not do this."
    others.latest.at = START + timedelta(minutes=2)
    changes = evaluate(clock.look(2, queues=[queue, others]))
    assert not changes.resolved
    assert [alert.kind for alert in changes.opened] == ["queue_unreadable"]
    queue.latest.error, queue.latest.depth, queue.latest.at = "", 0, others.latest.at
    over = evaluate(clock.look(0.01, queues=[queue, others]))
    assert {alert.kind for alert in over.resolved} == {"queue_depth", "queue_unreadable"}


def test_first_mail_then_on_doubling_not_sooner_than_5_minutes(clock: Clock) -> None:
    assert clock.run_once(died={"Refused": 3}) == [
        "[production] critical: Billing 3 dead (Refused), target 0, since 02:47"
    ]
    assert clock.run_once(1, died={"Refused": 3}) == []  # doubled, but too soon
    assert clock.run_once(3.9, died={"Refused": 1}) == []
    assert clock.run_once(0.1) == ["[production] critical: now Billing 7 died (Refused), target 0, since 02:47"]
    assert clock.run_once(60, died={"Refused": 6}) == []  # late enough, but not doubled
    assert clock.run_once(0, died={"Refused": 1}) != []


def test_a_server_whose_clock_is_ahead_delays_no_mail(clock: Clock) -> None:
    """Deaths carry the server's time; passes use the clock of the console's database."""
    at = START + timedelta(minutes=5)
    deaths, lying = [NewDeaths(BILLING, "Refused", 1, at)], [DeadGroup(BILLING, "Refused", 1, at)]
    assert len(clock.run_once(deaths=deaths, lying=lying)) == 1


def test_the_last_mail_tells_when_it_is_over(clock: Clock) -> None:
    clock.run_once(died={"Refused": 3})
    (over,) = clock.run_once(71, lying=[])
    assert over.replace("\u00a0", " ") == "[production] resolved: Billing dead messages (Refused), after 1 h 11 min"
    first, last = AlertMail.objects.order_by("id")
    assert last.in_reply_to == first.message_id
    assert clock.run_once(1, lying=[]) == []


def test_warning_never_mailed_sends_no_resolution_mail(clock: Clock) -> None:
    clock.run_once(lying=[DeadGroup(BILLING, "Old", 3, START)])
    assert clock.run_once(1, lying=[]) == []
    assert Alert.objects.get(kind="dead_message").resolved_at


def test_a_death_that_was_retried_at_once_is_mailed_and_then_over(clock: Clock) -> None:
    seen = clock.look(died={"Refused": 1}, lying=[])
    assert len(policy.write(seen, Evaluation(seen).run())) == 1
    assert len(clock.run_once(1, lying=[])) == 1
    assert set(AlertMail.objects.values_list("about", flat=True)) == {"opened", "resolved"}


def test_acknowledged_ones_are_silent_until_the_end(clock: Clock) -> None:
    clock.run_once(died={"Refused": 4})
    alert = Alert.objects.get(kind="dead_message")
    ana = User.objects.create_user("ana")
    assert acknowledgements.acknowledge(alert.pk, ana, "console") == ""
    assert clock.run_once(10, died={"Refused": 3}) == []
    assert len(clock.run_once(1, lying=[])) == 1


def test_an_acknowledgement_ends_when_the_count_has_doubled_since(clock: Clock) -> None:
    clock.run_once(died={"Refused": 1})
    alert = Alert.objects.get(kind="dead_message")
    ana = User.objects.create_user("ana")
    acknowledgements.acknowledge(alert.pk, ana, "console")
    said = f"{alert.pk}, Billing: 1 dead message by Refused, target 0"
    assert AuditEntry.objects.get().subject.replace("\u00a0", " ").startswith(said)
    [subject] = clock.run_once(10, died={"Refused": 1})
    assert "critical: now Billing 2 died" in subject
    alert.refresh_from_db()
    assert (alert.acknowledged_at, alert.acknowledged_by) == (None, "")
    assert [(entry.who, entry.verb) for entry in AuditEntry.objects.order_by("id")] == [
        ("ana", "acknowledge"),
        ("the console", "withdraw"),
    ]
    acknowledgements.acknowledge(alert.pk, ana, "console")
    assert clock.run_once(10, died={"Refused": 1}) == []
    assert len(clock.run_once(10, died={"Refused": 1})) == 1


def test_an_acknowledgement_ends_at_its_time(clock: Clock) -> None:
    clock.run_once(died={"Refused": 4})
    alert, ana = Alert.objects.get(kind="dead_message"), User.objects.create_user("ana")
    acknowledgements.acknowledge(alert.pk, ana, "console", reason="known", lasts=timedelta(hours=1), now=clock.now)
    clock.run_once(59)
    alert.refresh_from_db()
    assert (alert.acknowledged_by, alert.acknowledged_reason) == ("ana", "known")
    clock.run_once(2)
    alert.refresh_from_db()
    assert (alert.acknowledged_at, alert.acknowledged_until, alert.acknowledged_reason) == (None, None, "")


def test_acknowledgement_expires_while_its_kind_is_unknown(clock: Clock) -> None:
    clock.run_once(died={"Refused": 4})
    alert, ana = Alert.objects.get(kind="dead_message"), User.objects.create_user("ana")
    acknowledgements.acknowledge(alert.pk, ana, "console", lasts=timedelta(hours=1), now=clock.now)
    clock.run_once(61, lying=None)
    alert.refresh_from_db()
    assert (alert.acknowledged_at, alert.resolved_at) == (None, None)


def test_an_acknowledgement_ends_when_it_becomes_critical(clock: Clock) -> None:
    billing = Queue.objects.create(schema="public", table="Billing", kind="input", target_dead=10)
    clock.run_once(died={"Refused": 6}, queues=[billing])
    alert = Alert.objects.get(kind="dead_message")
    assert alert.severity == "warning"
    acknowledgements.acknowledge(alert.pk, User.objects.create_user("ana"), "console")
    clock.run_once(10, died={"Refused": 5}, queues=[billing])
    alert.refresh_from_db()
    assert (alert.severity, alert.acknowledged_at) == ("critical", None)


def test_the_second_to_acknowledge_is_told_who_was_first(clock: Clock) -> None:
    clock.run_once(died={"Refused": 1})
    alert = Alert.objects.get(kind="dead_message")
    ana, tomas = User.objects.create_user("ana"), User.objects.create_user("tomas")
    acknowledgements.acknowledge(alert.pk, ana, "console")
    assert "ana acknowledged this warning" in acknowledgements.acknowledge(alert.pk, tomas, "console")
    alert.refresh_from_db()
    assert alert.acknowledged_by == "ana"
    assert acknowledgements.withdraw(alert.pk, tomas, "console") == ""
    assert "not acknowledged" in acknowledgements.withdraw(alert.pk, tomas, "console")
    assert [(entry.who, entry.verb) for entry in AuditEntry.objects.order_by("id")] == [
        ("ana", "acknowledge"),
        ("tomas", "withdraw"),
    ]


def of_queues(counts: dict[str, int], cause: str = "Refused") -> dict[str, Any]:
    """New deaths and dead messages by queue."""
    dead = [(f'"public"."{name}"', cause, count, START) for name, count in counts.items()]
    return {"deaths": [NewDeaths(*each) for each in dead], "lying": [DeadGroup(*each) for each in dead]}


def last_text() -> str:
    last = AlertMail.objects.order_by("id").last()
    assert last is not None
    return " ".join(last.text.split())


def test_a_mail_carries_what_is_known_of_its_error(clock: Clock) -> None:
    said = {"owner": "Ivo", "ticket": "SHOP-7", "note": "Relay mx-2\ndrops us", "frame": "mailer.send"}
    FailureGroup.objects.create(fingerprint="a" * 16, exception="Refused", **said)
    FailureGroup.objects.create(fingerprint="b" * 16, exception="Refused")
    FailureGroup.objects.create(fingerprint="c" * 16, exception="Other", owner="Tomas")
    clock.run_once(died={"Refused": 2})
    assert "KNOWN OF THIS ERROR owner Ivo, SHOP-7; Relay mx-2 drops us (at mailer.send)" in last_text()
    assert "Tomas" not in last_text()
    assert "/failures/?q=" in last_text()


def test_a_mail_leads_to_the_failure_that_its_messages_are_of(clock: Clock, die: Callable[..., None]) -> None:
    """Another failure of the same error may have another owner."""
    die(2, "Refused")
    with queue_database().write_session() as connection:
        fingerprints.catch_up(connection)
        digest = connection.value("select min(fingerprint) from messages.message_archive")
    FailureGroup.objects.create(fingerprint=digest, exception="Refused", owner="Ivo")
    FailureGroup.objects.create(fingerprint="c" * 16, exception="Refused", owner="Tomas")
    clock.run_once(died={"Refused": 2})
    assert f"/failures/{digest}/" in last_text()
    assert "owner Ivo" in last_text()
    assert "Tomas" not in last_text()


def test_a_mail_has_nothing_that_a_rule_hides(clock: Clock) -> None:
    """Mail readers have no account, so nobody could reveal a hidden value there."""
    FailureGroup.objects.create(fingerprint="a" * 16, exception="Refused", owner="Ivo", frame="Shop.Card4711.pay")
    MaskingRule.objects.create(name="Cards", kind="regex", pattern=r"Card\d+")
    clock.run_once(died={"Refused": 2})
    assert "owner Ivo (at Shop.⟦masked: Cards⟧.pay)" in last_text()


def test_many_causes_are_held_back_and_told_when_the_hour_has_room(clock: Clock) -> None:
    assert len(clock.run_once(died={f"Cause{number}": number for number in range(1, 9)})) == 5
    assert "last mail about this queue for now: 5 an hour" in last_text()
    assert set(AlertMail.objects.values_list("alert__cause", flat=True)) == {f"Cause{number}" for number in range(4, 9)}
    for alert in Alert.objects.filter(cause__in=["Cause1", "Cause8"]):
        assert RateLimit(clock.now).again(alert) == START + timedelta(hours=1)
    assert clock.run_once(59.9) == []
    assert len(clock.run_once(0.2)) == 3


def test_many_queues_are_held_back_likewise(clock: Clock) -> None:
    flood = of_queues({f"Queue{number}": 1 for number in range(30)})
    assert len(clock.run_once(**flood)) == 20
    assert "last mail for now: 20 an hour" in last_text()
    assert clock.run_once(59.9, lying=flood["lying"]) == []
    assert len(clock.run_once(0.2, lying=flood["lying"])) == 10


def test_no_flood_hides_the_outage_of_another_queue(clock: Clock) -> None:
    """Anybody may write queue names into messages; the first critical mail of an existing queue is still sent."""
    Queue.objects.create(schema="public", table="Payments", kind="input")
    flood = of_queues({f"Queue{number}": 9 for number in range(30)})
    clock.run_once(**flood)
    outage = of_queues({"Payments": 1, "Nowhere": 1})
    both = [*flood["lying"], *outage["lying"]]
    (mail,) = clock.run_once(1, lying=both, deaths=outage["deaths"])
    assert "Payments 1 dead" in mail
    (again,) = clock.run_once(60, lying=both)[:1]
    assert "Queue" in again


def test_of_each_queue_one_is_mailed_before_the_second_of_any(clock: Clock) -> None:
    causes = [(BILLING, f"Cause{number}", 50, START) for number in range(30)]
    dead = [*causes, ('"public"."Payments"', "Refused", 1, START)]
    subjects = clock.run_once(deaths=[NewDeaths(*each) for each in dead], lying=[DeadGroup(*each) for each in dead])
    assert "Payments 1 dead" in subjects[1]
    assert len(subjects) == 6


def test_without_an_address_nothing_is_written_and_nothing_forgotten(clock: Clock) -> None:
    assert clock.run_once(died={"Refused": 1}, mail=MailSettings(server=True)) == []
    assert len(clock.run_once(1)) == 1


def test_restored_messages_are_no_deaths(clock: Clock) -> None:
    assert clock.run_once(lying=[DeadGroup(BILLING, "Refused", 5, START)]) == []
    (subject,) = clock.run_once(1, died={"Refused": 1})
    assert subject == "[production] critical: Billing 6 dead (Refused), target 0, since 02:47"


def test_hostile_names_stay_in_their_place(clock: Clock) -> None:
    name = '"public"."Bil\nBcc: all@example.org\r\n<script>alert(1)</script>"'
    seen = AlertSnapshot(
        now=START,
        watching_since=START,
        environment="production\nX-Evil: 1",
        mail=BOX,
        lying=[DeadGroup(name, "A\nB", 1, START)],
        deaths=[NewDeaths(name, "A\nB", 1, START, 1, 0, ["T\nX: <b>"])],
    )
    (mail,) = policy.write(seen, Evaluation(seen).run())
    assert len(mail.subject.splitlines()) == 1
    assert "\nBcc:" not in mail.text
    assert "\nX-Evil" not in mail.text
    assert "<script>" not in mail.html
    assert "&lt;script&gt;" in mail.html
