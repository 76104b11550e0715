"""A database that never answers, in each program: logged, given up, and resumed when it is back."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connections
from django.test import Client
from django.urls import reverse

from pgqueue_admin.alerts.alerter import Alerter
from pgqueue_admin.config import env
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import NoAnswer
from pgqueue_admin.models import ForeignOutbox, Process, database_clock, notify
from pgqueue_admin.models.db_backend.base import only_short_ones_here
from pgqueue_admin.services import lease_rules
from pgqueue_admin.services.outbox.switches import this_database
from pgqueue_admin.workers.processes.advisory_lock import SessionLock
from pgqueue_admin.workers.processes.console_session import ConsoleSession
from pgqueue_admin.workers.processes.expirer_process import ExpirerProcess
from pgqueue_admin.workers.processes.ingester_process import IngesterProcess
from pgqueue_admin.workers.processes.outbox_keeper_process import OutboxKeeperProcess
from pgqueue_admin.workers.reporting import process_identity
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from pgqueue_admin.workers.supervisor.process_recorder import record
from tests.console.sampled import elsewhere
from tests.relay import Relay
from tests.waiting import until

LIMIT = 1.0


@pytest.fixture(autouse=True)
def _sooner(settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ANSWER_SECONDS": LIMIT}


@pytest.fixture
def relay(console_database: str) -> Iterator[Relay]:
    made = Relay(console_database)
    yield made
    made.end()


def again_until(act: Callable[[], object], seen: Callable[[], bool]) -> None:
    def once_more() -> bool:
        act()
        return seen()

    until(once_more)


def run(work: Callable[[], Any]) -> None:
    """Run it in a thread; it could block for ever."""
    failed: list[BaseException] = []

    def tried() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=tried, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it waits for an answer"
    for error in failed:
        raise error


class Beating:
    def __init__(self) -> None:
        self.sessions = self.beats = 0
        self.names: list[str] = []

    def connected(self, connection: Connection) -> None:
        self.sessions += 1

    def heard(self, names: list[str]) -> None:
        self.names += names

    def beat(self) -> None:
        record(process_identity.mine(), {"role": "endpoint", "heartbeat_at": database_clock.now()})
        self.beats += 1


def test_a_link_to_the_console(relay: Relay, caplog: pytest.LogCaptureFixture) -> None:
    """The thread of a supervisor or of an endpoint process, which writes through Django and listens."""
    work = Beating()
    with elsewhere("default", HOST="127.0.0.1", PORT=relay.port):
        link = ConsoleSession("pgqueue test", work, seconds=0.05)
        link.start()
        until(lambda: work.beats > 2)
        relay.stop()
        until(lambda: "The console's database does not answer" in caplog.text)
        assert "no answer for" in caplog.text
        relay.go_on()
        before = work.beats
        until(lambda: work.beats > before + 2 and work.sessions > 1)
        notify.announce(notify.ENDPOINT, "Sales")
        until(lambda: "Sales" in work.names)
        link.stop()


def test_listening_session(relay: Relay) -> None:
    with elsewhere("default", HOST="127.0.0.1", PORT=relay.port):
        session = notify.listen("pgqueue_test")
        relay.stop()
        with pytest.raises(NoAnswer):
            again_until(lambda: list(session.notifications(0)), lambda: False)
        assert session.closed


def test_the_sampler(relay: Relay, caplog: pytest.LogCaptureFixture) -> None:
    with elsewhere("queues", HOST="127.0.0.1", PORT=relay.port):
        sampling = SamplerProcess()
        sampling.run_once()
        relay.stop()
        again_until(sampling.run_once, lambda: "The queues' database does not answer" in caplog.text)
        assert Process.objects.get(role="sampler").last_error
        relay.go_on()
        again_until(sampling.run_once, lambda: "The queues' database answers again" in caplog.text)
        sampling.close()


def test_sampler_writes(relay: Relay, caplog: pytest.LogCaptureFixture) -> None:
    """The singleton's lock too: its own former session, if it still holds the lock, is terminated."""

    def turns() -> None:
        only_short_ones_here()
        sampling = SamplerProcess()
        sampling.run_once()
        relay.stop()
        again_until(sampling.run_once, lambda: "The console's database does not answer" in caplog.text)
        relay.replace()
        again_until(sampling.run_once, lambda: "The console's database answers again" in caplog.text)
        sampling.close()
        connections.close_all()

    with elsewhere("default", HOST="127.0.0.1", PORT=relay.port):
        run(turns)


def test_a_lock_is_taken_again_though_the_former_session_lives_on(
    console_database: str, relay: Relay, connect: Callable[..., Connection]
) -> None:
    """The relay between us and the server is stopped and keeps that session open: nothing else would end it."""
    lock, name = SessionLock("of a test"), {"application_name": "pgqueue supervisor here pid 7"}
    lock.use(connect(relay.dsn, **name))
    assert lock.take()
    relay.stop()
    other = SessionLock("of a test")
    other.use(connect(console_database, application_name="pgqueue supervisor here pid 8"))
    assert not other.take()
    lock.use(connect(console_database, **name))
    until(lock.take)
    assert not other.take()


def test_the_alerters_ears_and_its_turns(relay: Relay, caplog: pytest.LogCaptureFixture) -> None:
    with elsewhere("queues", HOST="127.0.0.1", PORT=relay.port):
        alerter = Alerter(every=0.05)
        alerter._open_ears()
        alerter.run_once()
        relay.stop()
        again_until(alerter._wait, lambda: alerter._ears is None)
        relay.go_on()
        alerter._ears_at = 0.0
        alerter._open_ears()
        assert alerter._ears is not None
        alerter.run_once()
        alerter._close_ears()


def test_the_expirer(relay: Relay, caplog: pytest.LogCaptureFixture) -> None:
    with elsewhere("queues", HOST="127.0.0.1", PORT=relay.port):
        expiring = ExpirerProcess()
        expiring.run_once()
        relay.stop()
        expiring._look_at = 0.0
        again_until(expiring.run_once, lambda: "does not answer" in caplog.text or "no answer" in caplog.text)
        relay.go_on()
        caplog.clear()
        again_until(expiring.run_once, lambda: "again" in caplog.text)
        expiring.close()


def test_the_ingester(relay: Relay, caplog: pytest.LogCaptureFixture) -> None:
    with elsewhere("queues", HOST="127.0.0.1", PORT=relay.port):
        ingesting = IngesterProcess()
        ingesting.run_once()
        relay.stop()
        again_until(ingesting.run_once, lambda: "does not answer" in caplog.text or "no answer" in caplog.text)
        relay.go_on()
        caplog.clear()
        again_until(ingesting.run_once, lambda: "again" in caplog.text)


def test_rules_of_the_lease_queue(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Acts may run statements of minutes; these are short, and a turn ends with them."""
    asked = lease_rules._is_due

    def asked_behind_silence(connection: Connection) -> bool:
        relay.stop()  # a session lent again answered a moment ago
        return asked(connection)

    def applied() -> None:
        with pytest.raises(NoAnswer):
            lease_rules.apply(0.1)

    with elsewhere("queues", HOST="127.0.0.1", PORT=relay.port):
        assert lease_rules.apply(0.1) == 0
        monkeypatch.setattr(lease_rules, "_is_due", asked_behind_silence)
        run(applied)


def test_the_keeper_of_others_outboxes(relay: Relay, caplog: pytest.LogCaptureFixture) -> None:
    with elsewhere("queues", HOST="127.0.0.1", PORT=relay.port):
        row = ForeignOutbox.objects.create(
            schema="public", table="Gone_OutboxData", database=this_database(), relay_seconds=0
        )
        keeping = OutboxKeeperProcess()

        def look() -> None:
            keeping._look_at = 0.0
            keeping.run_once()

        look()
        relay.stop()
        again_until(look, lambda: "Outboxes of others are not kept" in caplog.text)
        assert "no answer" in caplog.text
        relay.go_on()
        ForeignOutbox.objects.update(looked_at=None)
        again_until(look, lambda: ForeignOutbox.objects.filter(pk=row.pk, looked_at__isnull=False).exists())
        keeping.close()


def test_a_page(relay: Relay) -> None:
    """A page of a waiting web server names the database that is down; its thread and session are released."""

    def page() -> None:
        browser = Client(raise_request_exception=False)
        browser.force_login(User.objects.create_user("ivo"))
        assert browser.get(reverse("audit")).status_code == 200
        relay.stop()
        assert browser.get(reverse("audit")).status_code == 503
        relay.replace()
        connections["default"].close()
        until(lambda: browser.get(reverse("audit")).status_code == 200)
        connections["default"].close_pool()  # type: ignore[attr-defined]

    begun = env.limited(env.for_console(env.database(relay.dsn, "DATABASE_URL")), LIMIT)
    with elsewhere("default", **{**begun, "OPTIONS": {**begun["OPTIONS"], "pool": {"max_size": 1}}}):
        run(page)


def test_a_task_that_may_take_long(relay: Relay) -> None:
    """Such as one of Celery's, whose statements the server ends after minutes: its slot is free again after that."""

    def task() -> None:
        assert not Process.objects.exists()
        relay.stop()
        with pytest.raises(OperationalError, match="no answer for"):
            Process.objects.exists()

    with elsewhere("default", **env.limited(env.for_console(env.database(relay.dsn, "DATABASE_URL")), LIMIT)):
        run(task)
