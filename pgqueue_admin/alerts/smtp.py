"""Django's mail server, and what it keeps to itself: that of several recipients some were refused."""

import smtplib
from typing import Any

from django.core.mail.backends.smtp import EmailBackend


class PartlyRefused(smtplib.SMTPRecipientsRefused):
    """The server took the mail for the others: ``taken``, by their places among those asked."""

    def __init__(self, refused: dict[str, tuple[int, bytes]], asked: list[str]):
        super().__init__(refused)
        self.taken = [place for place, address in enumerate(asked) if address not in refused]


class _Telling:
    def sendmail(self, sender: str, asked: list[str], *mail: Any, **options: Any) -> dict[str, Any]:
        refused: dict[str, Any] = super().sendmail(sender, asked, *mail, **options)  # type: ignore[misc]
        if refused:
            raise PartlyRefused(refused, asked)
        return refused


class _Plain(_Telling, smtplib.SMTP):
    pass


class _Encrypted(_Telling, smtplib.SMTP_SSL):
    pass


class Server(EmailBackend):
    @property
    def connection_class(self) -> Any:
        return _Encrypted if self.use_ssl else _Plain
