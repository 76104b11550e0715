"""Sends waiting mails: at least once, and again under the same Message-ID."""

import logging
import smtplib
import socket
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from email.errors import MessageError
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.mail.backends.smtp import EmailBackend
from django.db import transaction
from django.db.models import Q

from pgqueue_admin.alerts.mail import mail_settings
from pgqueue_admin.alerts.snapshot import TRIED_FOR
from pgqueue_admin.models import AlertMail, database_clock


# Django's SMTP backend, but greeting by our setting, not by the machine's name, and raising if some of several
# recipients were refused.
class PartlyRefused(smtplib.SMTPRecipientsRefused):
    """The server accepted the mail for the others: ``taken``, by position among the recipients."""

    def __init__(self, refused: dict[str, tuple[int, bytes]], asked: list[str]):
        super().__init__(refused)
        self.taken = [place for place, address in enumerate(asked) if address not in refused]


class _Telling(smtplib.SMTP):
    def ehlo(self, name: str = "") -> tuple[int, bytes]:
        return super().ehlo(name or self._greeting())

    def helo(self, name: str = "") -> tuple[int, bytes]:
        return super().helo(name or self._greeting())

    def _greeting(self) -> str:
        """Return the name for EHLO by RFC 5321 (4.1.1.1): a full name, else the address that the server sees, in
        brackets.
        """
        return settings.PGQUEUE["EMAIL_HELO"] or _literal(self.sock)

    def sendmail(self, from_addr: str, to_addrs: Any, *mail: Any, **options: Any) -> dict[str, tuple[int, bytes]]:
        refused = super().sendmail(from_addr, to_addrs, *mail, **options)
        if refused:
            raise PartlyRefused(refused, to_addrs)
        return refused


class _Encrypted(_Telling, smtplib.SMTP_SSL):
    pass


def _literal(wire: socket.socket | None) -> str:
    ours = wire.getsockname()[0] if wire else "127.0.0.1"
    return f"[IPv6:{ours}]" if ":" in ours else f"[{ours}]"


class SmtpBackend(EmailBackend):
    @property
    def connection_class(self) -> Any:
        return _Encrypted if self.use_ssl else _Telling


log = logging.getLogger("pgqueue.alerts")
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)
NOT_ADDRESSED = (ValueError, MessageError)  # a recipient, the sender or a header is invalid
State = AlertMail.State


def deliver(now: datetime, alive: Callable[[], None] = lambda: None) -> int:
    """Send mails that are due; return how many rows changed. They share a connection, so a dead server costs one
    timeout.

    ``alive`` is called before each mail: a slow server may take long over many.
    """
    due = [mail.pk for mail in outstanding(now) if is_due(mail, now)]
    if not due:
        return 0
    server = _server()
    try:
        server.open()
    except (OSError, smtplib.SMTPException) as error:
        return failed(due, said(error), now)
    try:
        return sum(_one_by_one(server, due, now, alive))
    finally:
        _quit(server)


def _server() -> Any:
    server = get_connection()
    return SmtpBackend() if isinstance(server, EmailBackend) else server


def _one_by_one(server: Any, due: list[int], now: datetime, alive: Callable[[], None]) -> Iterator[int]:
    for number in due:
        alive()
        yield deliver_one(server, number, now)


def outstanding(now: datetime) -> list[AlertMail]:
    """Return mails to send, untried ones first. One that failed for a day stays failed and is shown."""
    wanted = Q(state=State.WAITING) | Q(state=State.FAILED, created_at__gt=now - TRIED_FOR)
    return list(AlertMail.objects.filter(wanted).order_by("attempts", "id"))


def is_due(mail: AlertMail, now: datetime) -> bool:
    if mail.state == State.WAITING or mail.tried_at is None:
        return True
    pause = min(FIRST_PAUSE * 2 ** min(mail.attempts - 1, 10), LONGEST_PAUSE)
    return now - mail.tried_at >= pause


def deliver_one(server: Any, number: int, now: datetime) -> int:
    """Send one mail. Its row is locked until the server answers, so that two alerters never send the same mail at once.

    After a kill between the server's 250 and the commit it is sent again: the only case of a duplicate.
    """
    with transaction.atomic():
        mail = AlertMail.objects.select_for_update(skip_locked=True).filter(pk=number).exclude(state=State.SENT).first()
        if mail is None:
            return 0
        try:
            server.send_messages([message(mail)])
        except (OSError, smtplib.SMTPException, *NOT_ADDRESSED) as error:
            _keep_taken(mail, error)
            return failed([number], said(error), now)
        mail.state, mail.error, mail.sent_at, mail.tried_at = State.SENT, "", database_clock.now(), now
        mail.attempts += 1
        mail.save(update_fields=["state", "error", "sent_at", "tried_at", "attempts"])
        return 1


def _keep_taken(mail: AlertMail, error: Exception) -> None:
    """Record recipients who have the mail: it is sent again only to those refused."""
    if isinstance(error, PartlyRefused):
        left = mail.left
        mail.accepted_recipients = ", ".join(
            [*filter(None, [mail.accepted_recipients]), *(left[place] for place in error.taken)]
        )
        mail.save(update_fields=["accepted_recipients"])


def failed(numbers: list[int], error: str, now: datetime) -> int:
    """Record that these mails were not sent; return how many."""
    log.warning("%d mails could not be sent: %s", len(numbers), error)
    mails = list(AlertMail.objects.filter(pk__in=numbers))
    for mail in mails:
        mail.state, mail.error, mail.tried_at, mail.attempts = State.FAILED, error, now, mail.attempts + 1
    return AlertMail.objects.bulk_update(mails, ["state", "error", "tried_at", "attempts"])


class AlertMessage(EmailMultiAlternatives):
    """A mail whose subject of 78 characters stays on one line: some readers show the blanks of a folded one."""

    left: list[str]  # recipients without it yet; To names all

    def recipients(self) -> list[str]:
        return self.left

    def message(self, **options: Any) -> Any:
        made = super().message(**options)
        made.policy = made.policy.clone(max_line_length=200)
        return made


def message(mail: AlertMail) -> AlertMessage:
    """Build the mail. Date and Message-ID are the row's: a copy sent again is the same mail."""
    box = mail_settings.configured()
    made = AlertMessage(mail.subject, mail.text, box.from_header, mail.to.split(", "), headers=headers(mail, box))
    made.left = mail.left
    made.attach_alternative(mail.html, "text/html")
    return made


def headers(mail: AlertMail, box: mail_settings.MailSettings) -> dict[str, str]:
    made = {
        "Message-ID": mail.message_id,
        "Date": mail.created_at.strftime("%a, %d %b %Y %H:%M:%S +0000"),
        "List-Id": f"pgqueue warnings <warnings.{box.domain}>",
        "Auto-Submitted": "auto-generated",
        "X-Pgqueue-Alert": f"{mail.alert_id or 'test'}; {mail.about}",
    }
    if mail.in_reply_to:
        made |= {"In-Reply-To": mail.in_reply_to, "References": mail.in_reply_to}
    return made


def said(error: Exception) -> str:
    """Return the server's words, if any."""
    if isinstance(error, NOT_ADDRESSED):
        return f"It cannot be addressed: {error}"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return "; ".join(f"{to}: {code} {_text(words)}" for to, (code, words) in error.recipients.items())
    if isinstance(error, smtplib.SMTPHeloError):
        words = f"{error.smtp_code} {_text(error.smtp_error)}".rstrip(".")
        return f"{words}. That was its answer to our greeting: PGQUEUE_EMAIL_HELO says how the mail server is greeted"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {_text(error.smtp_error)}"
    return f"The mail server does not answer: {error}"


def _text(words: bytes | str) -> str:
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)


def _quit(server: Any) -> None:
    try:
        server.close()
    except (OSError, smtplib.SMTPException):
        log.debug("the mail server hung up first", exc_info=True)
