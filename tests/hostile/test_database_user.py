"""Beside a database user who may create in ``public``: nothing of his is ever run, and nothing of his is in the way."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from pgqueue_admin.alerts.dead_message_cursor import DeadMessageCursor
from pgqueue_admin.archive import dead_messages
from pgqueue_admin.archive.ingester import ingest
from pgqueue_admin.config import env
from pgqueue_admin.dialects import Address
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.models import Cursor, LatestSample
from pgqueue_admin.models.queue_database import close as end_sessions
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers
from pgqueue_admin.transport.sending import bulk
from pgqueue_admin.workers.processes import archive_ports
from tests.console.sampled import elsewhere, sample
from tests.hostile import crawl, database_user
from tests.hostile.hostile_site import World
from tests.waiting import until

PLACED, PATH = "Shop.Placed", "pg_catalog,pg_temp"
SETTINGS = EndpointSettings(peek_delay=0.1, concurrency=1, delayed_retries=0, immediate_retries=0)
Kept = tuple[str, psycopg.Connection[Any]]


@pytest.fixture(params=[database_user.overload, database_user.help_out], ids=lambda made: made.__name__)
def beside(request: pytest.FixtureRequest, world: World) -> Iterator[World]:
    """The product's own sessions, begun when he has been there."""
    with database_user.stranger(world.queues) as stranger:
        request.param(stranger)
        stranger.run("set role none")
        with elsewhere("queues", **env.for_looking(env.database(world.queues_dsn, "QUEUES_URL"))):
            yield world


@pytest.fixture
def quiet(beside: World, server: PostgreSQL) -> Iterator[World]:
    """Nothing of his ran, and nothing was refused because of him: as the server itself wrote it down."""
    log = server.home / "postgresql.log"
    before = log.stat().st_size
    yield beside
    with log.open(encoding="utf-8", errors="replace") as lines:
        lines.seek(before)
        said = [line for line in lines if database_user.RAN in line or "is not unique" in line]
    assert said == []


def test_looking_runs_nothing_of_his(quiet: World) -> None:
    sample(2)
    wrong = LatestSample.objects.exclude(error="").values_list("queue__table", "error")
    assert [each for each in wrong if "permission" not in each[1]] == []
    client = quiet.client("root", raise_request_exception=False)
    statuses = [answer.status_code for _, _, answer in crawl.get(client, crawl.few(crawl.paths(quiet), 2))]
    assert len(statuses) > 200
    assert [status for status in statuses if status >= 500 and status != 503] == []


def test_acts_and_those_who_read_on_run_nothing_of_his(quiet: World) -> None:
    reading = DeadMessageCursor().read(queue_database(), Cursor(name="alerter"))
    assert reading.error == ""
    dead = quiet.dead[:40]
    with queue_database().write_session() as session:
        assert ingest(session, Address("public", "error")).full is False
        outcomes = dead_messages.retry(session, dead, "ana", ours=lambda address: True)
        assert {each.result for each in outcomes} <= {"done", "failed", "skipped"}
        dead_messages.discard(session, dead, "ana")
        dead_messages.restore(session, dead, "ana")
    with queue_database().read_session() as session:
        for each in sources(session):
            planning.plan_batch(session, each)


def test_the_engine_runs_nothing_of_his(quiet: World) -> None:
    """Also on a session whose path a handler has set to his schema."""
    handled: list[Any] = []
    handlers = Handlers()

    @handlers.handle(PLACED)
    def handle(body: Any, context: Any) -> None:
        handled.append(body)
        context.connection.raw.execute("set search_path = public, pg_catalog")
        context.send("Elsewhere", body, type=PLACED)
        context.publish(body, type="Shop.Shipped")
        if body == 1:
            raise ValueError("told to fail")

    elsewhere = Endpoint("Elsewhere", quiet.queues_dsn, settings=SETTINGS)
    endpoint = Endpoint(
        "Place", quiet.queues_dsn, settings=SETTINGS, handlers=handlers, exhausted=archive_ports.archive_failed
    )
    for each in (elsewhere, endpoint):
        each.create_queues()
    elsewhere.subscribe("Shop.Shipped")
    endpoint.send_many("Place", range(3), type=PLACED, ttbr=timedelta(hours=1))
    endpoint.send("Place", 3, type=PLACED, delay=timedelta(milliseconds=10))
    with psycopg.connect(quiet.queues_dsn) as caller:
        caller.execute("set search_path = public, pg_catalog")
        for many in (1, bulk.MANY + 1):
            endpoint.within(caller).send_many("Elsewhere", range(many), type=PLACED, ttbr=timedelta(hours=1))
        endpoint.within(caller).publish(4, type="Shop.Shipped")
    asked = "select count(*) from messages.message_archive where endpoint = 'Place'"
    before = quiet.queues.value(asked)
    endpoint.start()
    try:
        until(lambda: {0, 1, 2, 3} <= set(handled), what="all four were handled")
        until(lambda: quiet.queues.value(asked) == before + 1, what="the one that failed is archived")
    finally:
        endpoint.stop()
    assert elsewhere.purge() > bulk.MANY
    endpoint.purge(expired_only=True)


def test_every_session_of_ours_has_a_name_and_keeps_its_path(quiet: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked of the sessions themselves, when they are new and when they have been used."""
    opened: list[psycopg.Connection[Any]] = []
    connect, database = psycopg.Connection.connect.__func__, quiet.queues.raw.info.dbname  # type: ignore[attr-defined]

    def kept(cls: type[psycopg.Connection[Any]], *args: Any, **options: Any) -> psycopg.Connection[Any]:
        session: psycopg.Connection[Any] = connect(cls, *args, **options)
        if session.info.dbname == database:
            opened.append(session)
            assert shown(session, "search_path") == PATH
        return session

    end_sessions()
    monkeypatch.setattr(psycopg.Connection, "connect", classmethod(kept))
    monkeypatch.setattr(psycopg, "connect", psycopg.Connection.connect)
    sample()
    client = quiet.client("root")
    for _ in crawl.get(client, [each for each in crawl.paths(quiet) if each[0] in {"queues", "messages", "archive"}]):
        pass
    ours = [each for each in opened if not each.closed]
    assert ours
    for each in ours:
        assert shown(each, "search_path") == PATH
        assert shown(each, "application_name").startswith("pgqueue")


def shown(session: psycopg.Connection[Any], name: str) -> str:
    """Without leaving it in a transaction."""
    was_idle = session.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    (said,) = psycopg.Cursor(session, row_factory=psycopg.rows.tuple_row).execute(f"show {name}").fetchall()
    if was_idle:
        session.rollback()
    return str(said[0]).replace(", ", ",")
