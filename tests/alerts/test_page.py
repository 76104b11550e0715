"""The Warnings page: open warnings, who was notified, acknowledging, mails (C6)."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from pgqueue_admin.alerts.mail import composer
from pgqueue_admin.alerts.mail.mail_settings import MailSettings
from pgqueue_admin.console.alerts import rows
from pgqueue_admin.console.overview import activity
from pgqueue_admin.live import topics
from pgqueue_admin.models import Alert, AlertMail, AuditEntry, Process
from pgqueue_admin.models.processes import HEARTBEAT_LOST
from tests.console.pages import matched

pytestmark = pytest.mark.usefixtures("console_database")


def warning(**facts: Any) -> Alert:
    at = datetime.now(UTC) - timedelta(minutes=14, seconds=30)  # half a minute of tolerance: clocks differ
    usual = {
        "kind": "peek_range", "subject": "Notifications", "severity": "warning", "sentence": "Peek delay is 12 s",
        "meaning": "Set it lower.", "value": "12 s", "threshold": "10 s", "opened_at": at, "last_seen_at": at,
    }  # fmt: skip
    return Alert.objects.create(**{**usual, **facts})


def dead(**facts: Any) -> Alert:
    usual = {"kind": "dead_message", "subject": '"public"."Billing"', "queue": '"public"."Billing"', "cause": "Refused"}
    return warning(**{**usual, "severity": "critical", "count": 3, "value": "3 dead", "threshold": "0", **facts})


def viewer() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("vera"))
    return client


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    said = re.sub(r"<[^>]*>", " ", answer.content.decode().partition("<main")[2])
    return re.sub(r"\s+", " ", said).replace("&gt;", ">").replace("&quot;", '"')


def test_the_page_opens_with_its_answer(operator: Client) -> None:
    dead()
    warning()
    said = text(operator, "/alerts/")
    assert "2 open: 1 critical, 1 can wait" in said
    assert said.index("critical Billing · dead messages") < said.index(
        "warning Notifications · peek delay out of range"
    )
    assert "Peek delay is 12 s . Set it lower. Open its settings 12 s 10 s" in said
    assert "14 min" in said
    assert "screen and log" in said


def test_each_empty_list_teaches(operator: Client) -> None:
    assert "Nothing open" in text(operator, "/alerts/")
    assert "Acknowledge an open warning to say that you know" in text(operator, "/alerts/?state=acknowledged")
    assert "comes here by itself when its cause is gone" in text(operator, "/alerts/?state=resolved")
    assert "A test mail shows whether mail arrives at all" in text(operator, "/alerts/mail/")


def test_bad_values_fall_back(operator: Client) -> None:
    warning()
    assert "Notifications" in text(operator, "/alerts/?state=nonsense&after=~~")
    for path, said in (("/alerts/999999/", "no warning 999999"), ("/alerts/mail/999999/", "no mail 999999")):
        answer = operator.get(path)
        assert (answer.status_code, said in answer.content.decode()) == (404, True)


def test_acknowledge_and_take_back(operator: Client) -> None:
    alert = warning()
    answer = operator.post(f"/alerts/{alert.pk}/acknowledgement/", {"next": "/alerts/?state=open"})
    assert (answer.status_code, answer["Location"]) == (303, "/alerts/?state=open")
    said = text(operator, "/alerts/")
    assert f"Acknowledged: Notifications, {alert.sentence}. Shown grey; a mail is sent only when it ends." in said
    assert "or when it becomes critical." in said
    assert "Nothing open, 1 acknowledged" in said
    assert "ana, " in text(operator, "/alerts/?state=acknowledged")
    operator.post(f"/alerts/{alert.pk}/acknowledgement/")
    assert "ana acknowledged this warning" in text(operator, "/alerts/")
    operator.post(f"/alerts/{alert.pk}/acknowledgement/", {"withdraw": "yes"})
    assert "1 can wait" in text(operator, "/alerts/")
    assert list(AuditEntry.objects.order_by("id").values_list("verb", flat=True)) == ["acknowledge", "withdraw"]


def test_acts_need_the_right_and_a_post() -> None:
    alert, client = warning(), viewer()
    assert (
        "needs the right “Can change peek settings and targets”, which an administrator gives in Django admin"
        in text(client, "/alerts/")
    )
    for path in (f"/alerts/{alert.pk}/acknowledgement/", "/alerts/mail/"):
        client.post(path)
        assert "Nothing was changed" in (said := text(client, "/alerts/")) or "No mail was sent" in said
    assert client.get(f"/alerts/{alert.pk}/acknowledgement/").status_code == 405
    alert.refresh_from_db()
    assert alert.acknowledged_at is None
    assert not AlertMail.objects.exists()


def test_strangers_see_nothing() -> None:
    warning()
    for path in ("/alerts/", "/alerts/1/", "/alerts/mail/", "/alerts/mail/1/"):
        answer = Client().get(path)
        assert (answer.status_code, answer["Location"]) == (302, f"/sign-in/?next={path}")


def test_page_says_when_the_alerter_is_not_running(operator: Client) -> None:
    assert "The alerter never ran here" in text(operator, "/alerts/")
    now = datetime.now(UTC)
    just_now = now + timedelta(minutes=1)  # a busy machine renders slowly
    process = Process(role="alerter", host="a", pid=1, start_ticks=1, started_at=now, heartbeat_at=just_now)
    process.save()
    assert "alerter" not in text(operator, "/alerts/")
    Process.objects.update(heartbeat_at=datetime.now(UTC) - HEARTBEAT_LOST - timedelta(seconds=1))
    assert "The alerter has not reported for 1" in text(operator, "/alerts/"), "lost for Workers, lost for all"
    Process.objects.update(heartbeat_at=now - timedelta(minutes=40))
    assert "The alerter has not reported for 40 min" in text(operator, "/alerts/")


def test_page_shows_the_recipients_and_state_of_mails(operator: Client) -> None:
    alert = dead(notified_count=3)
    assert "not mailed: older than this console" in text(operator, "/alerts/")
    mail = AlertMail.objects.create(alert=alert, message_id="<1@x>", to="oncall@x", subject="[p] s", text="t")
    assert "mail to oncall@x waits" in text(operator, "/alerts/")
    mail.state, mail.error, mail.tried_at = "failed", "550 no such user", datetime.now(UTC)
    mail.save()
    assert "550 no such user" in text(operator, "/alerts/")
    mail.state, mail.sent_at = "sent", datetime.now(UTC)
    mail.save()
    assert f"oncall@x, {mail.sent_at:%H:%M}" in text(operator, "/alerts/")


def test_a_test_mail_is_written_and_shown(operator: Client, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ALERT_TO": ["oncall@example.org"]}
    answer = operator.post("/alerts/mail/", {"next": "/alerts/mail/"})
    assert (answer.status_code, answer["Location"]) == (303, "/alerts/mail/")
    mail = AlertMail.objects.get()
    assert (mail.about, mail.to, mail.state) == ("test", "oncall@example.org", "waiting")
    assert "waits for the alerter" in text(operator, "/alerts/mail/")
    assert "ana asked for this one" in text(operator, f"/alerts/mail/{mail.pk}/")


def test_test_mails_are_audited_and_one_a_minute(operator: Client, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ALERT_TO": ["oncall@example.org"]}
    for _ in range(3):
        operator.post("/alerts/mail/")
    assert AlertMail.objects.count() == 1
    assert "one a minute is" in text(operator, "/alerts/mail/")
    (entry,) = AuditEntry.objects.all()
    assert (entry.who, entry.verb, entry.noun, entry.subject) == (
        "ana",
        "send",
        "mail",
        "a test mail to oncall@example.org",
    )
    AlertMail.objects.update(created_at=datetime.now(UTC) - timedelta(seconds=61))
    operator.post("/alerts/mail/")
    assert AlertMail.objects.count() == 2
    assert activity.of_entry(entry).did == "sent a test mail to oncall@example.org"


def test_without_an_address_no_test_mail_is_pretended(operator: Client, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    operator.post("/alerts/mail/")
    assert "set PGQUEUE_ALERT_TO" in text(operator, "/alerts/mail/")
    assert not AlertMail.objects.exists()


def test_resolved_ones_are_paged_by_when_they_were_over(operator: Client) -> None:
    now = datetime.now(UTC)
    for number in range(51):
        warning(subject=f"Endpoint{number:02}", resolved_at=now - timedelta(seconds=number))
    first = operator.get("/alerts/?state=resolved").content.decode()
    assert "Endpoint49" in first
    assert "Endpoint50" not in first
    older = re.search(r'href="(\?[^"]*after=[^"]*)"', first)
    assert older
    assert "Endpoint50" in text(operator, "/alerts/" + older[1].replace("&amp;", "&"))


def test_open_ones_are_paged_the_gravest_first(operator: Client) -> None:
    now = datetime.now(UTC)
    for number in range(60):
        warning(subject=f"Endpoint{number:02}", opened_at=now - timedelta(seconds=number))
    for number in range(45):
        warning(subject=f"Grave{number:02}", opened_at=now - timedelta(days=1), severity="critical")
    for state in ("open", "acknowledged"):
        seen, path = [], f"/alerts/?state={state}&by=list"
        while path:
            page = operator.get(path).content.decode()
            rows = re.findall(r"((?:Endpoint|Grave)\d\d) ·", page.partition("<tbody")[2])
            seen += list(dict.fromkeys(rows))
            more = re.search(r'href="(\?[^"]*after=[^"]*)">More', page)
            path = "/alerts/" + more[1].replace("&amp;", "&") if more else ""
        assert len(seen) == len(set(seen)) == 105
        assert all(name.startswith("Grave") for name in seen[:45])
        assert seen[45:] == [f"Endpoint{number:02}" for number in range(60)]
        Alert.objects.update(acknowledged_at=now, acknowledged_by="ana")


def test_hostile_names_are_text(operator: Client) -> None:
    alert = dead(queue='"public"."<script>alert(1)</script>"', sentence="<b>", cause="<i>", meaning="<u>")
    mail = composer.write_test(MailSettings(environment="<env>"), "<who>", "plum")
    for path in ("/alerts/", f"/alerts/{alert.pk}/", f"/alerts/mail/{mail.pk}/"):
        body = operator.get(path).content.decode()
        assert not re.search("<script>alert|<b>\\s*<|<i>|<u>|<who>|<env>", body.partition("<main")[2])


def test_looking_changes_nothing(operator: Client) -> None:
    alert = dead()
    mail = AlertMail.objects.create(alert=alert, message_id="<1@x>", to="oncall@x", subject="[p] s", text="t")
    before = [list(model.objects.values()) for model in (Alert, AlertMail, AuditEntry)]
    for path in ("/alerts/", f"/alerts/{alert.pk}/", "/alerts/mail/", f"/alerts/mail/{mail.pk}/"):
        text(operator, path)
    assert [list(model.objects.values()) for model in (Alert, AlertMail, AuditEntry)] == before


# An open Warnings page receives the counts, and only the rows that it shows.
def followed(client: Client, path: str) -> dict[str, str]:
    """The values of the page's topics."""
    said: dict[str, str] = {}
    for address in matched(r'data-topics="([^"]*)"', client.get(path).content.decode()).split():
        if found := topics.find(address):
            said |= found[0].render(found[1])
    return said


def test_live_page_receives_only_the_warnings_that_it_shows(operator: Client) -> None:
    made = [warning(subject=f"Sales{number}") for number in range(rows.PAGE + 5)]
    newest, oldest = made[-1].pk, made[0].pk
    said = followed(operator, "/alerts/?by=list")
    assert said["alerts.open"] == str(len(made))
    assert sum(key.endswith(".sentence") for key in said) == rows.PAGE
    assert f"alert.{newest}.told" in said
    assert f"alert.{oldest}.told" not in said
    assert f"alert.{oldest}.told" in followed(operator, f"/alerts/{oldest}/")


def test_the_next_page_is_told_its_own(operator: Client) -> None:
    made = [warning(subject=f"Sales{number}") for number in range(rows.PAGE + 5)]
    after = matched(r'href="\?([^"]*after=[^"]*)"', operator.get("/alerts/?by=list").content.decode()).replace(
        "&amp;", "&"
    )
    said = followed(operator, f"/alerts/?{after}")
    assert {key for key in said if key.endswith(".value")} == {f"alert.{each.pk}.value" for each in made[:5]}


def test_a_page_without_warnings_follows_the_counts(operator: Client) -> None:
    assert followed(operator, "/alerts/")["alerts.open"] == "0"
