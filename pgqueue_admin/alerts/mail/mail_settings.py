"""Mail settings: sender, recipients, and whether a server or only a folder accepts mail."""

from dataclasses import dataclass
from email.utils import formataddr, parseaddr

from django.conf import settings

_FOLDER_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
NOBODY_YET = "nobody@pgqueue.invalid"


@dataclass(frozen=True, slots=True)
class MailSettings:
    sender: str = "pgqueue@localhost"
    to: tuple[str, ...] = ()
    server: bool = True
    folder: str = "var/mail"
    environment: str = ""

    @property
    def takes_mail(self) -> bool:
        """A server needs recipients; a folder accepts mails without any."""
        return bool(self.to) or not self.server

    @property
    def recipients(self) -> list[str]:
        return list(self.to) or [NOBODY_YET]

    @property
    def domain(self) -> str:
        return parseaddr(self.sender)[1].rpartition("@")[2] or "localhost"

    @property
    def from_header(self) -> str:
        """``pgqueue production <pgqueue@example.org>``, unless the setting has a name of its own."""
        name, address = parseaddr(self.sender)
        return formataddr((name or f"pgqueue {self.environment}".strip(), address))


def configured() -> MailSettings:
    return MailSettings(
        sender=settings.DEFAULT_FROM_EMAIL,
        to=tuple(settings.PGQUEUE["ALERT_TO"]),
        server=settings.EMAIL_BACKEND != _FOLDER_BACKEND,
        folder=str(getattr(settings, "EMAIL_FILE_PATH", "") or ""),
        environment=settings.PGQUEUE["ENVIRONMENT"],
    )
