"""Mail reaches nobody: no server, or no address.

First step: Set `EMAIL_URL` and `PGQUEUE_ALERT_TO`, and send a test mail from Mails.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.mail.mail_settings import MailSettings
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings


def missing(mail: MailSettings) -> Iterator[Finding]:
    if not mail.server:
        yield Finding("mail_not_configured", "EMAIL_URL", warnings.mail_not_configured(mail.folder))
    elif not mail.to:
        yield Finding("mail_not_configured", "PGQUEUE_ALERT_TO", warnings.nobody_is_mailed())


def find(look: AlertSnapshot) -> Iterator[Finding]:
    return missing(look.mail)


KIND = AlertKind("mail_not_configured", "mail reaches nobody", find)
