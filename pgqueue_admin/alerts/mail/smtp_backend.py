"""Django's mail server, which greets as we are configured, not as this machine is named; and what it keeps to itself:
that of several recipients some were refused.
"""

import smtplib
import socket
from typing import Any

from django.conf import settings
from django.core.mail.backends.smtp import EmailBackend


class PartlyRefused(smtplib.SMTPRecipientsRefused):
    """The server took the mail for the others: ``taken``, by their places among those asked."""

    def __init__(self, refused: dict[str, tuple[int, bytes]], asked: list[str]):
        super().__init__(refused)
        self.taken = [place for place, address in enumerate(asked) if address not in refused]


class _Telling(smtplib.SMTP):
    def ehlo(self, name: str = "") -> tuple[int, bytes]:
        return super().ehlo(name or self._greeting())

    def helo(self, name: str = "") -> tuple[int, bytes]:
        return super().helo(name or self._greeting())

    def _greeting(self) -> str:
        """As RFC 5321 has it (4.1.1.1): a full name, else the address that the server sees, in brackets."""
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
