"""Django's mail server, and what it keeps to itself: that of several recipients some were refused."""

import smtplib
from typing import Any

from django.core.mail.backends.smtp import EmailBackend


class PartlyRefused(smtplib.SMTPRecipientsRefused):
    """The server took the mail for the others: ``taken``, by their places among those asked."""

    def __init__(self, refused: dict[str, tuple[int, bytes]], asked: list[str]):
        super().__init__(refused)
        self.taken = [place for place, address in enumerate(asked) if address not in refused]


class _Telling(smtplib.SMTP):
    def sendmail(self, from_addr: str, to_addrs: Any, *mail: Any, **options: Any) -> dict[str, tuple[int, bytes]]:
        refused = super().sendmail(from_addr, to_addrs, *mail, **options)
        if refused:
            raise PartlyRefused(refused, to_addrs)
        return refused


class _Encrypted(_Telling, smtplib.SMTP_SSL):
    pass


class Server(EmailBackend):
    @property
    def connection_class(self) -> Any:
        return _Encrypted if self.use_ssl else _Telling
