"""Mails that the mail server did not accept.

First step: Read the server's answer on Mails; check `EMAIL_URL` and `PGQUEUE_ALERT_TO`.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings


def find(look: AlertSnapshot) -> Iterator[Finding]:
    if look.failed_mails:
        said = warnings.mail_failing(len(look.failed_mails), look.failed_mails[0].error)
        yield Finding("mail_failing", "EMAIL_URL", said)


KIND = AlertKind("mail_failing", "mail not sent", find)
