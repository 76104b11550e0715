"""Delivering mails to a server that accepts them, refuses them or is unreachable."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from django.db import connections, transaction

from pgqueue_admin.alerts.dead_message_cursor import CursorReading
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.mail import composer, delivery
from pgqueue_admin.alerts.mail.mail_settings import MailSettings as Addresses
from pgqueue_admin.alerts.snapshot import look
from pgqueue_admin.models import AlertMail
from tests.alerts.conftest import Mailbox

NOW = datetime.now(UTC)

pytestmark = pytest.mark.usefixtures("console_database")


@pytest.fixture(autouse=True)
def _server(settings: Any, port: int) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
    settings.DEFAULT_FROM_EMAIL = "Queue watch <pgqueue@example.org>"


def waiting(*to: str) -> AlertMail:
    return composer.write_test(Addresses(to=to or ("ana@example.org",), environment="production"), "ana", "plum")


def test_a_mail_is_taken(smtp: Controller, mailbox: Mailbox) -> None:
    mail = waiting("ana@example.org", "oncall@example.org")
    assert delivery.deliver(NOW) == 1
    (taken,) = mailbox.mails
    assert taken["Subject"] == "[production] test: mail arrives, asked for by ana"
    assert taken["To"] == "ana@example.org, oncall@example.org"
    assert taken["From"] == "Queue watch <pgqueue@example.org>"
    mail.refresh_from_db()
    assert (mail.state, mail.attempts, mail.error) == ("sent", 1, "")
    assert delivery.deliver(NOW) == 0


def test_a_refused_recipient_is_quoted(smtp: Controller, mailbox: Mailbox) -> None:
    mailbox.refuse_recipients = "550 5.1.1 no such user"
    mail = waiting()
    delivery.deliver(NOW)
    mail.refresh_from_db()
    assert (mail.state, mail.error) == ("failed", "ana@example.org: 550 5.1.1 no such user")


def test_a_mail_that_cannot_be_addressed_is_failed_and_keeps_no_other_back(smtp: Controller, mailbox: Mailbox) -> None:
    wrong, right = waiting("oncall@example.org;dev@example.org"), waiting()
    assert delivery.deliver(NOW) == 2
    wrong.refresh_from_db()
    right.refresh_from_db()
    assert (wrong.state, wrong.attempts, right.state) == ("failed", 1, "sent")
    assert wrong.error.startswith("It cannot be addressed: Invalid address; only oncall@example.org could be parsed")
    assert (delivery.deliver(NOW), delivery.deliver(NOW + timedelta(seconds=5))) == (0, 1)
    AlertMail.objects.update(created_at=NOW - timedelta(days=2))
    assert delivery.deliver(NOW + timedelta(hours=1)) == 0


def test_unwritable_sender_address_fails_mails_until_corrected(
    smtp: Controller, mailbox: Mailbox, settings: Any
) -> None:
    settings.DEFAULT_FROM_EMAIL = "pgqueue@exämple.org"
    mail = waiting()
    assert delivery.deliver(NOW) == 1
    mail.refresh_from_db()
    assert (mail.state, mail.error.partition(":")[0]) == ("failed", "It cannot be addressed")
    settings.DEFAULT_FROM_EMAIL = "pgqueue@example.org"
    assert delivery.deliver(NOW + timedelta(seconds=5)) == 1
    assert len(mailbox.mails) == 1


def test_refused_recipient_warns_and_the_other_is_mailed_once(smtp: Controller, mailbox: Mailbox) -> None:
    mailbox.refuse_recipients, mailbox.refused_address = "550 5.1.1 no such user", "left@example.org"
    mail = waiting("ana@example.org", "left@example.org")
    delivery.deliver(NOW)
    mail.refresh_from_db()
    assert (mail.state, mail.error) == ("failed", "left@example.org: 550 5.1.1 no such user")
    seen = look(NOW, NOW, CursorReading())
    (failing,) = BY_NAME["mail_failing"].find(seen)
    assert "550 5.1.1 no such user" in failing.sentence
    delivery.deliver(NOW + timedelta(minutes=1))
    mailbox.refuse_recipients = ""
    delivery.deliver(NOW + timedelta(minutes=10))
    mail.refresh_from_db()
    assert mailbox.taken_for == [["ana@example.org"], ["left@example.org"]]
    assert (mail.state, mail.error, mail.to) == ("sent", "", "ana@example.org, left@example.org")
    assert {taken["To"] for taken in mailbox.mails} == {mail.to}


def test_a_server_that_is_not_there_costs_one_try_for_all() -> None:
    mails = [waiting(), waiting()]
    assert delivery.deliver(NOW) == 2
    for mail in mails:
        mail.refresh_from_db()
        assert mail.state == "failed"
        assert "The mail server does not answer" in mail.error
        assert "refused" in mail.error.lower()


def test_tries_come_further_apart_and_end_after_a_day(smtp: Controller, mailbox: Mailbox) -> None:
    mailbox.answer = "451 4.3.0 later"
    mail, now, tries = waiting(), NOW, []
    for _ in range(7):
        while not delivery.deliver(now):
            now += timedelta(seconds=1)
        tries.append(round((now - NOW).total_seconds()))
    assert [later - sooner for sooner, later in pairwise(tries)] == [5, 10, 20, 40, 80, 160]
    AlertMail.objects.update(created_at=NOW - timedelta(days=2))
    assert delivery.deliver(now + timedelta(hours=1)) == 0
    mail.refresh_from_db()
    assert (mail.state, mail.error) == ("failed", "451 4.3.0 later")


def test_a_mail_in_another_senders_hands_is_left_to_it(
    smtp: Controller, mailbox: Mailbox, console_database: str, connect: Any
) -> None:
    mail, other = waiting(), connect(console_database)
    with other.transaction():
        other.run("select from pgqueue_console.pgqueue_alertmail where id = %(id)s for update", {"id": mail.pk})
        assert delivery.deliver(NOW) == 0
    assert mailbox.mails == []
    assert delivery.deliver(NOW) == 1


def test_without_a_server_it_is_a_file(settings: Any, tmp_path: Path) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path / "mail")
    mail = waiting()
    assert delivery.deliver(NOW) == 1
    (written,) = (tmp_path / "mail").iterdir()
    assert mail.message_id in written.read_text()


def test_delivery_leaves_no_transaction_open(smtp: Controller) -> None:
    waiting()
    delivery.deliver(NOW)
    assert not transaction.get_connection().in_atomic_block
    assert connections["default"].get_autocommit()
