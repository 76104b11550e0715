"""The alerter as a process against a real archive and a real mail server (C7)."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from typing import Any

from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from pgqueue_admin.alerts.alerter import Alerter as InProcess
from pgqueue_admin.models import Alert, AlertMail, AuditEntry, Cursor, Process, Queue
from tests.alerts.conftest import Alerter, Mailbox
from tests.waiting import until, within

Die = Callable[..., None]


def watching() -> bool:
    return Cursor.objects.exists() and Process.objects.filter(role="alerter").exists()


def test_a_death_is_mailed_within_5_seconds(alerter: Alerter, mailbox: Mailbox, die: Die) -> None:
    alerter.start()
    until(watching, what="the alerter watches")
    died = time.monotonic()
    die(3, "Shop.Billing.Gateway+RefusedException", message_type="Shop.TakePayment")
    (mail,) = within(5, lambda: mailbox.mails, "a mail", died)
    assert mail["Subject"].startswith("[production] critical: Billing 3 dead (RefusedExcept")
    assert mail["To"] == "oncall@ravenhill.example"
    assert mail["From"] == "pgqueue production <pgqueue@ravenhill.example>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["List-Id"] == "pgqueue warnings <warnings.ravenhill.example>"
    assert mail["X-Pgqueue-Alert"] == f"{Alert.objects.get(kind='dead_message').pk}; opened"
    row = until(AlertMail.objects.filter(state="sent").first, what="it is noted as sent")
    assert mail["Message-ID"] == row.message_id


def test_mail_of_a_death_is_complete_in_plain_text(alerter: Alerter, mailbox: Mailbox, die: Die) -> None:
    alerter.start()
    until(watching, what="the alerter watches")
    secret = {"exception_message": "card 4111-1111", "body": b"secret body", "headers": '{"secret":"header"}'}
    die(1, "Shop.Refused", message_type="Shop.TakePayment", **secret)
    (mail,) = until(lambda: mailbox.mails, what="a mail")
    text, html = body_of(mail, "plain"), body_of(mail, "html")
    assert all(len(line) <= 72 for line in text.splitlines() if "https://" not in line)
    for part in (text, html):
        assert "Billing" in part
        assert "Shop.TakePayment" in part
        assert "Refused" in part
        assert "https://pgqueue.ravenhill.example/alerts/" in part
        assert not re.search("4111|secret", part)
    assert not re.search("<img|<script|<link", html)


def test_deaths_during_an_alerter_outage_are_mailed_after_its_restart(
    alerter: Alerter, mailbox: Mailbox, die: Die
) -> None:
    alerter.start()
    until(watching, what="the alerter watches")
    alerter.kill()
    die(3)
    alerter.start()
    (mail,) = until(lambda: mailbox.mails, what="a mail")
    assert "Billing 3 dead" in mail["Subject"]


def test_dead_messages_at_the_first_start_are_not_mailed(alerter: Alerter, mailbox: Mailbox, die: Die) -> None:
    die(4, "Shop.Old")
    alerter.start()
    until(watching, what="the alerter watches")
    seeded = until(Alert.objects.filter(kind="dead_message").first, what="it is shown all the same")
    assert (seeded.count, seeded.notified_count) == (4, 4)
    die(1, "Shop.New")
    until(lambda: mailbox.mails, what="a mail about the new one")
    assert list(AlertMail.objects.values_list("alert__cause", flat=True)) == ["Shop.New"]


def test_a_flood_makes_a_handful_of_mails(alerter: Alerter, mailbox: Mailbox, die: Die) -> None:
    alerter.start()
    until(watching, what="the alerter watches")
    for _ in range(10):
        die(25, "Shop.Refused")
        die(25, "Shop.Timeout")
    counted = lambda: sum(Alert.objects.filter(kind="dead_message").values_list("count", flat=True)) == 500  # noqa: E731
    until(counted, what="all 500 are counted")
    until(lambda: not AlertMail.objects.exclude(state="sent").exists(), what="nothing waits")
    assert len(mailbox.mails) == 2
    assert {alert.cause for alert in Alert.objects.filter(kind="dead_message")} == {"Shop.Refused", "Shop.Timeout"}


def test_killed_between_the_servers_250_and_the_commit(alerter: Alerter, mailbox: Mailbox, die: Die) -> None:
    """The mail is sent again with the same Message-ID: the only case of a duplicate mail."""
    killed = threading.Event()

    @contextmanager
    def frozen_and_killed() -> Iterator[None]:
        mailbox.around = None
        alerter.freeze()
        yield
        alerter.kill()
        killed.set()

    mailbox.around = frozen_and_killed
    alerter.start()
    until(watching, what="the alerter watches")
    die(1)
    assert killed.wait(60), "the server took it, and the sender is gone"
    assert len(mailbox.mails) == 1
    assert AlertMail.objects.get().state == "waiting"
    alerter.start()
    until(lambda: len(mailbox.mails) == 2, what="sent again")
    until(AlertMail.objects.filter(state="sent").first, what="it is noted as sent")
    first, again = mailbox.mails
    assert first["Message-ID"] == again["Message-ID"]
    assert (first["Subject"], first["Date"]) == (again["Subject"], again["Date"])


def test_a_server_that_refuses_is_quoted_and_tried_again(alerter: Alerter, mailbox: Mailbox, die: Die) -> None:
    mailbox.answer = "550 5.7.1 not from you"
    alerter.start()
    until(watching, what="the alerter watches")
    die(1)
    failed = until(AlertMail.objects.filter(state="failed").first, what="it failed")
    assert "550 5.7.1 not from you" in failed.error
    until(Alert.objects.filter(kind="mail_failing", resolved_at=None).first, what="a warning says so")
    mailbox.answer = "250 2.0.0 taken"
    until(AlertMail.objects.filter(state="sent").first, what="it is tried again")
    assert AlertMail.objects.get().attempts >= 2
    until(Alert.objects.filter(kind="mail_failing").exclude(resolved_at=None).first, what="and the warning is over")


def test_without_the_engines_tables_it_says_so_and_goes_on(
    alerter: Alerter, connect: Callable, console_database: str
) -> None:
    connect(console_database).run("drop schema messages cascade")
    alerter.start()
    warning = until(Alert.objects.filter(kind="archive_unreadable").first, what="a warning")
    assert "manage.py engine_schema" in warning.meaning
    assert alerter.process is not None
    assert alerter.process.poll() is None


def test_sigterm_ends_it(alerter: Alerter) -> None:
    alerter.start()
    until(watching, what="the alerter watches")
    alerter.stop()
    assert alerter.process is not None
    assert alerter.process.returncode == 0


def test_looking_at_every_link_of_a_mail_changes_nothing(
    alerter: Alerter, mailbox: Mailbox, die: Die, operator: Client
) -> None:
    Queue.objects.create(schema="public", table="Billing", kind="input")
    alerter.start()
    until(watching, what="the alerter watches")
    die(1)
    (mail,) = until(lambda: mailbox.mails, what="a mail")
    until(AlertMail.objects.filter(state="sent").first, what="it is noted as sent")
    alerter.stop()
    said = body_of(mail, "plain") + body_of(mail, "html")
    links = set(re.findall(r"https://pgqueue\.ravenhill\.example[^\s\"<]*", said))
    before = everything()
    for link in links:
        assert operator.get(link.removeprefix("https://pgqueue.ravenhill.example")).status_code == 200
    assert len(links) >= 3
    assert everything() == before


def test_thousands_of_causes_are_one_look(console_database: str, die: Die, settings: Any) -> None:
    """Counted in statements and heartbeats: a look costs the same however many causes there are."""
    settings.PGQUEUE = {**settings.PGQUEUE, "ALERT_TO": ["oncall@example.org"]}
    Queue.objects.create(schema="public", table="Payments", kind="input")
    alerter, beats = InProcess(), []
    alerter.look_round()
    for number in range(2_000):
        die(1, f"Evil.Exception{number}")
    with CaptureQueriesContext(connections["default"]) as asked:
        alerter.look_round(lambda: beats.append(1))
    assert Alert.objects.filter(kind="dead_message").count() == 21
    assert len(asked) < 300
    assert len(beats) >= 21
    assert Alert.objects.get(cause="", kind="dead_message").sentence.startswith(
        "1,980 dead messages by 1,980 other causes"
    )
    die(3, "Shop.Outage", queue='"public"."Payments"')
    alerter.look_round()
    assert Alert.objects.get(cause="Shop.Outage").mails.count() == 1


def body_of(mail: EmailMessage, kind: str) -> str:
    body = mail.get_body((kind,))
    assert body
    return str(body.get_content())


def everything() -> list[object]:
    return [list(model.objects.order_by("pk").values()) for model in (Alert, AlertMail, Cursor, Process, AuditEntry)]


def test_a_mail_links_to_the_console_and_nowhere_else(alerter: Alerter, die: Die, mailbox: Mailbox) -> None:
    """Mail readers turn anything that looks like a link into one, even in plain text."""
    alerter.start()
    until(watching, what="the alerter watches")
    die(2, "https://evil.example/Reset", message_type="www.evil.example/now, Shop")
    mail = until(lambda: next(iter(mailbox.mails), None), what="a mail")
    for part in ("plain", "html"):
        body = mail.get_body((part,))
        assert body
        text = body.get_content()
        assert "evil.example" in text
        links = re.findall(r"(?:\w+://|www\.|mailto:)[^\s\"<>]*", text)
        assert links
        assert [link for link in links if not link.startswith("https://pgqueue.ravenhill.example/")] == []
