"""Mails that the server did not take."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.wording import warnings


def find(look: Look) -> Iterator[Found]:
    if look.failed_mails:
        said = warnings.mail_failing(len(look.failed_mails), look.failed_mails[0].error)
        yield Found("mail_failing", "EMAIL_URL", said)


KIND = Kind("mail_failing", "mail not sent", find)
