"""A test mail, asked for by a person: audited, and one a minute, for each goes to all who are on call."""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction

from pgqueue_admin.alerts import letter, mailbox
from pgqueue_admin.records import clock
from pgqueue_admin.records.models import AlertMail, AuditEntry
from pgqueue_admin.wording.times import ago

PAUSE = timedelta(minutes=1)


def ask(person: User | AnonymousUser, origin: str) -> str:
    """ "" when it waits for the alerter, else the sentence that says why no mail was sent."""
    box, who = mailbox.configured(), person.get_username()
    if not box.takes_mail:
        return "No mail was sent. No address is configured: set ALERT_TO."
    with transaction.atomic():
        list(User.objects.select_for_update().filter(username=who))  # who presses twice at once waits for the first
        now = clock.now()
        last = AlertMail.objects.filter(about=AlertMail.About.TEST, created_at__gt=now - PAUSE).first()
        if last:
            return f"No mail was sent. A test mail was written {ago(last.created_at, now)}: one a minute is."
        mail = letter.write_test(box, who, settings.PGQUEUE["ENVIRONMENT_COLOUR"])
        about = {"noun": "mail", "subject": f"a test mail to {mail.to}"[:400], "origin": origin}
        AuditEntry.objects.create(who=who, verb="send", **about)
    return ""
