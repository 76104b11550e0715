"""Sends a test mail on request: audited, and one a minute, as each goes to all on call."""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction

from pgqueue_admin.alerts.mail import composer, mail_settings
from pgqueue_admin.formatting.times import ago
from pgqueue_admin.models import AlertMail, AuditEntry, database_clock

PAUSE = timedelta(minutes=1)


def ask(person: User | AnonymousUser, origin: str) -> str:
    """Return "" if the mail waits for the alerter, else a sentence that says why not."""
    box, who = mail_settings.configured(), person.get_username()
    if not box.takes_mail:
        return "No mail was sent. No address is configured: set PGQUEUE_ALERT_TO."
    with transaction.atomic():
        list(User.objects.select_for_update().filter(username=who))  # a second concurrent click waits for the first
        now = database_clock.now()
        last = AlertMail.objects.filter(about=AlertMail.About.TEST, created_at__gt=now - PAUSE).first()
        if last:
            return f"No mail was sent. A test mail was written {ago(last.created_at, now)}: one a minute is."
        mail = composer.write_test(box, who, settings.PGQUEUE["ENVIRONMENT_COLOUR"])
        about = {"noun": "mail", "subject": f"a test mail to {mail.to}"[:400], "origin": origin}
        AuditEntry.objects.create(who=who, verb="send", **about)
    return ""
