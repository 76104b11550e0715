"""Mail reaches nobody: no server, or no address."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.alerts.mailbox import Mailbox
from pgqueue_admin.wording import warnings


def missing(mail: Mailbox) -> Iterator[Found]:
    if not mail.server:
        yield Found("smtp_missing", "EMAIL_URL", warnings.smtp_missing(mail.folder))
    elif not mail.to:
        yield Found("smtp_missing", "ALERT_TO", warnings.nobody_is_mailed())


def find(look: Look) -> Iterator[Found]:
    return missing(look.mail)


KIND = Kind("smtp_missing", "mail reaches nobody", find)
