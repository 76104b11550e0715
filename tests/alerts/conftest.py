"""A real SMTP server, deaths in a real archive, and the alerter as a process."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from django.contrib.auth.models import User
from django.test import Client

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects import Connection
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
BILLING = '"public"."Billing"'


class Mailbox:
    """aiosmtpd's handler. ``answer`` is the reply to the end of DATA; ``around`` is a context entered around it."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.around: Callable[[], AbstractContextManager[None]] | None = None
        self.answer = "250 2.0.0 taken"
        self.refuse_recipients = ""
        self.refused_address = ""  # if set, only this address is refused; otherwise all
        self.taken_for: list[list[str]] = []  # the envelope of each mail

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.refuse_recipients and self.refused_address in ("", address):
            return self.refuse_recipients
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 ok"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.answer.startswith("250"):
            mail = message_from_bytes(envelope.content or b"", policy=policy.default)  # type: ignore[arg-type]
            self.mails.append(mail)
            self.taken_for.append(list(envelope.rcpt_tos))
        if self.around:
            with self.around():
                await server.push(self.answer)
        return self.answer


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


class Server(Controller):
    """An SMTP server on a port reserved for it."""

    def __init__(self, mailbox: Mailbox, kept: socket.socket):
        host, port = kept.getsockname()
        super().__init__(mailbox, hostname=host, port=port, ready_timeout=PATIENCE)
        self._kept = kept

    def _create_server(self) -> Any:
        return self.loop.create_server(self._factory_invoker, sock=self._kept)


@pytest.fixture
def kept() -> Iterator[socket.socket]:
    """Reserve a port: no other process gets it, and it refuses connections until a server listens."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield kept


@pytest.fixture
def port(kept: socket.socket) -> int:
    return int(kept.getsockname()[1])


@pytest.fixture
def smtp(mailbox: Mailbox, kept: socket.socket) -> Iterator[Controller]:
    controller = Server(mailbox, kept)
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture
def die(connect: Callable[[str], Connection], console_database: str) -> Callable[..., None]:
    """Archive deaths in one transaction: ``die(3, "Shop.Refused")``."""
    connection = connect(console_database)

    def die(number: int = 1, exception: str = "Shop.Refused", queue: str = BILLING, **facts: Any) -> None:
        with connection.transaction():  # or the alerter could read between two of them
            for _ in range(number):
                store.archive_failed(connection, DeadMessage(queue=queue, exception_type=exception, **facts))

    return die


class Alerter:
    """A ``manage.py alerter`` process on the test's databases and mail server."""

    def __init__(self, environ: dict[str, str], log: Path):
        self.environ, self.log = environ, log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **changes: str) -> "Alerter":
        with self.log.open("ab") as log:
            command = [sys.executable, "manage.py", "alerter"]
            environ = {**self.environ, **changes}
            self.process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=log, stderr=log)
        return self

    def kill(self) -> None:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def freeze(self) -> None:
        """Suspend the process; return when the kernel reports that every thread is stopped."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)

    @property
    def said(self) -> str:
        return self.log.read_text()


@pytest.fixture
def alerter(console_database: str, smtp: Controller, port: int, tmp_path: Path, var_folder: Path) -> Iterator[Alerter]:
    environ = {
        "PATH": os.environ["PATH"],
        "PGQUEUE_STATE_DIR": str(var_folder),
        "DATABASE_URL": console_database,
        "EMAIL_URL": f"smtp://127.0.0.1:{port}",
        "PGQUEUE_EMAIL_FROM": "pgqueue@ravenhill.example",
        "PGQUEUE_ALERT_TO": "oncall@ravenhill.example",
        "ENVIRONMENT": "production",
        "PUBLIC_URL": "https://pgqueue.ravenhill.example",
        "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings",
    }
    alerter = Alerter(environ, tmp_path / "alerter.log")
    yield alerter
    alerter.stop()


@pytest.fixture
def operator(console_database: str) -> Client:
    """A browser without scripts, signed in with all rights."""
    client = Client()
    client.force_login(User.objects.create_superuser("ana"))
    return client
