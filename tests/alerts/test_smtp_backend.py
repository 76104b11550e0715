"""A mail server that requires a full host name (RFC 5321, 4.1.1.1), and one with an untrusted certificate."""

import smtplib
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from pytest_django import Settings

from pgqueue_admin.alerts.dead_message_cursor import CursorReading
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.mail import composer, delivery
from pgqueue_admin.alerts.mail.mail_settings import MailSettings as Addresses
from pgqueue_admin.alerts.snapshot import look
from pgqueue_admin.embedded import ports
from pgqueue_admin.models import AlertMail
from tests.alerts.conftest import Mailbox
from tests.architecture.test_deployment import run
from tests.waiting import PATIENCE

NOW = datetime.now(UTC)
TLS = Path(__file__).resolve().parents[1] / "fixtures/tls"
pytestmark = pytest.mark.usefixtures("console_database")


class Strict(Mailbox):
    """Accepts mail only after a greeting with a full host name or an address literal."""

    def __init__(self) -> None:
        super().__init__()
        self.greeted: list[str] = []

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, name: str, answers: list[str]
    ) -> list[str]:
        session.host_name = name if self._is_full(name) else None
        return answers if self._is_full(name) else [f"504 5.5.2 <{name}>: need fully-qualified hostname"]

    async def handle_HELO(self, server: SMTP, session: Session, envelope: Envelope, name: str) -> str:
        session.host_name = name if self._is_full(name) else None
        return "250 well" if self._is_full(name) else f"504 5.5.2 <{name}>: need fully-qualified hostname"

    def _is_full(self, name: str) -> bool:
        self.greeted.append(name)
        return "." in name


@pytest.fixture
def strict() -> Strict:
    return Strict()


@pytest.fixture(params=["plain", "starttls", "smtps"])
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def mail_server(strict: Strict, wire: str, settings: Settings) -> Iterator[Controller]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    ways: dict[str, dict[str, Any]] = {
        "plain": {},
        "starttls": {"tls_context": context},
        "smtps": {"ssl_context": context},
    }
    how = ways[wire]
    controller = Controller(strict, hostname="127.0.0.1", port=ports.free(), ready_timeout=PATIENCE, **how)
    controller.start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = controller.hostname, controller.port
    settings.EMAIL_USE_TLS, settings.EMAIL_USE_SSL = wire == "starttls", wire == "smtps"
    yield controller
    controller.stop()


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the machine trust the server's certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "certificate.pem"))


def delivered(name: str, settings: Settings) -> AlertMail:
    """The mail after its delivery attempt with this greeting."""
    settings.PGQUEUE = {**settings.PGQUEUE, "EMAIL_HELO": name}
    mail = composer.write_test(Addresses(to=("ana@example.org",)), "ana", "plum")
    delivery.deliver(NOW)
    mail.refresh_from_db()
    return mail


@pytest.mark.usefixtures("mail_server", "trusted")
@pytest.mark.parametrize(("name", "told"), [("queues.example.com", "queues.example.com"), ("", "[127.0.0.1]")])
def test_helo_name_is_the_configured_one(name: str, told: str, strict: Strict, settings: Settings) -> None:
    assert delivered(name, settings).state == "sent"
    assert set(strict.greeted) == {told}
    assert len(strict.mails) == 1


@pytest.mark.usefixtures("mail_server", "trusted")
def test_a_greeting_that_is_refused_is_a_warning_until_a_mail_is_taken(strict: Strict, settings: Settings) -> None:
    mail = delivered("supervisor", settings)
    assert mail.state == "failed"
    assert mail.error.startswith("504 5.5.2 <supervisor>: need fully-qualified hostname. That was its answer to our ")
    assert "PGQUEUE_EMAIL_HELO" in mail.error
    for later in (timedelta(), timedelta(days=3)):
        AlertMail.objects.update(created_at=NOW - later)
        (found,) = BY_NAME["mail_failing"].find(look(NOW, NOW, CursorReading()))
        assert "PGQUEUE_EMAIL_HELO" in found.said.meaning
    assert delivered("queues.example.com", settings).state == "sent"
    assert not list(BY_NAME["mail_failing"].find(look(NOW, NOW, CursorReading())))


@pytest.mark.parametrize("wire", ["starttls", "smtps"], indirect=True)
@pytest.mark.usefixtures("mail_server")
def test_no_mail_goes_to_whoever_shows_any_certificate(strict: Strict, settings: Settings) -> None:
    mail = delivered("queues.example.com", settings)
    assert mail.state == "failed"
    assert "certificate verify failed" in mail.error
    assert not strict.mails


def greeted(**said: str) -> str:
    shown = run("-c", "from django.conf import settings; print(settings.PGQUEUE['EMAIL_HELO'])", **said)
    return shown.stdout.strip() or shown.stderr.strip()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, ""),
        (
            {"PUBLIC_URL": "https://queues.example.com/q", "PGQUEUE_EMAIL_FROM": "q@mail.example.org"},
            "queues.example.com",
        ),
        ({"PUBLIC_URL": "https://10.1.2.3", "PGQUEUE_EMAIL_FROM": "Q <q@mail.example.org>"}, "mail.example.org"),
        ({"PUBLIC_URL": "https://supervisor"}, ""),
        ({"PUBLIC_URL": "https://queues.example.com", "PGQUEUE_EMAIL_HELO": "out.example.net"}, "out.example.net"),
        ({"PGQUEUE_EMAIL_HELO": "[192.0.2.1]"}, "[192.0.2.1]"),
    ],
)
def test_the_name_is_that_of_the_settings_never_of_the_machine(said: dict[str, str], told: str) -> None:
    assert greeted(**said) == told


@pytest.mark.parametrize("said", ["supervisor", "a b.example.org", "192.0.2.1", "x.example.org\r\nMAIL FROM:<a>"])
def test_invalid_helo_name_is_refused_in_one_sentence(said: str) -> None:
    assert greeted(PGQUEUE_EMAIL_HELO=said).startswith("PGQUEUE_EMAIL_HELO must be a full host name such as ")


def test_smtplib_still_greets_by_what_is_replaced_here() -> None:
    assert {"ehlo", "helo"} <= vars(smtplib.SMTP).keys()
