"""Every kind of session that the product opens, at work: its search path around each statement."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded.reset import reset
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import Endpoint, ForeignOutbox, Queue
from pgqueue_admin.services.outbox.switches import this_database
from pgqueue_admin.transport import Endpoint as Transport
from tests.asking_relay import AskingRelay
from tests.databases import Databases
from tests.journeys.product import ROOT, Product
from tests.waiting import until
from tests.workers.process_tree import free_port

pytestmark = pytest.mark.chaos
CATALOG, CONSOLE = {"pg_catalog,pg_temp"}, {"pg_catalog,pgqueue_console,pg_temp"}
STRANGE = "public,pg_catalog"  # the database's default
Asked = tuple[Product, AskingRelay, str]
_PROGRAMS = (
    *("web", "celery beat", "celery worker", "supervise", "sampler", "ingester", "history", "lease", "worker"),
    "outbox_keeper",
)
# Each kind of session that must occur, by application name, with the paths it may have.
# All other sessions may only have the catalog's path.
KINDS: dict[str, set[str]] = {
    **{f"pgqueue-admin {program}": CONSOLE for program in (*_PROGRAMS, "prepare", "dead")},  # the models of each
    "pgqueue-admin alerter": CONSOLE | CATALOG,  # it listens too
    # pages and Celery's tasks: reads, acts, unmanaged models; before them, queries at start-up
    **{f"pgqueue-admin {what}": CATALOG for what in ("reads", "acts", "probes", "models", "start")},
    "pgqueue-admin": CATALOG,  # listens for pages
    "pgqueue-admin history [0-9a-f]{12}": CATALOG,  # Spark's read sessions
    # the engine's: start-up; claiming, renewing and expiring leases; sampling; locks of singletons
    **{f"pgqueue {what}": CATALOG for what in ("start", "Thumbs", "pgqueue expiry", "sampler reads")},
    **{f"pgqueue {what}": CATALOG for what in ("expirer", "sampler", "history", r"supervisor \S+ pid \d+")},
    **{rf"pgqueue worker {endpoint} pid \d+": CATALOG for endpoint in ("Sales", "Thumbs")},
    # beside its receives: the mover of due messages, and the listener that notifies
    **{f"pgqueue Sales {part}": CATALOG for part in ("mover", "wake-ups")},
    "pgqueue-admin outbox keeper": CATALOG,  # in other databases
    # its peeks and receives. Handlers use the latter with a path of their own; test_names_in_full proves that
    # statements of ours find nothing by it
    "pgqueue Sales": CATALOG | {STRANGE},
    # only reads the path of handlers' sessions, to warn of roles that may create there
    "pgqueue-admin alerts": {STRANGE},
}
PAGES = (
    *("/", "/queues/", "/queues/public/Sales/", "/queues/public/Sales/messages/", "/archive/?q=Order", "/archive/1/"),
    *("/failures/", "/outbox/", "/history/", "/trends/", "/schedules/", "/settings/", "/workers/", "/operations/"),
    *("/delayed/", "/subscriptions/", "/audit/", "/readyz", "/admin/", "/admin/pgqueue/archivedmessage/"),
)


@pytest.fixture
def product(databases: Databases) -> Iterator[Asked]:
    folder = Path(tempfile.mkdtemp(prefix="pgqueue-paths-"))
    folder.chmod(0o755)
    with databases.clone("ingested_console") as dsn, databases.as_django(dsn):
        relay = AskingRelay(dsn)
        made = Product(
            folder / "var",
            free_port(),
            DATABASE_URL=relay.dsn,
            PGQUEUE_QUEUE_SCHEMAS="public,Legacy,messages",
            PGQUEUE_HANDLER_APPS="tests.workers.shop,tests.workers.thumbs",
            SPARK_MASTER="local[1]",
            SECRET_KEY=settings.SECRET_KEY,
        )
        yield made, relay, dsn
        if made.process.poll() is None:
            made.stop()
        relay.close()
        reset(made.var)
        shutil.rmtree(folder)


def test_the_path_around_each_statement(product: Asked, connect: Callable[[str], Connection]) -> None:
    """The database's default differs; whatever ran before in a session, the next statement finds the right path."""
    made, relay, dsn = product
    _fill(dsn, connect(dsn))
    made.start()
    browser, queue = _signed_in(made), LeaseQueue(dsn)

    def not_seen() -> set[str]:
        answers = {path: browser.get(path).status_code for path in PAGES}
        assert {path: code for path, code in answers.items() if code != 200 and path != "/readyz"} == {}
        queue.publish({"kind": "render"})
        return {kind for kind in KINDS if not any(re.fullmatch(kind, name) for name in list(relay.paths))}

    _retry_by_hand(made)
    try:
        until(lambda: not not_seen(), 180, "each kind of session has asked something")
    except AssertionError:
        raise AssertionError(f"asked nothing: {not_seen()}") from None
    queue.close()
    assert made.stop() == 0
    assert {name: wrong for name in relay.paths if (wrong := _wrong(relay, name))} == {}


def _retry_by_hand(made: Product) -> None:
    """Retry dead messages whose queue is gone, in a separate process; the ingester may have added more by then."""
    command = [sys.executable, "manage.py", "dead", "retry", "--queue", "Newsletter", "--yes", "--reason", "of a test"]
    said = subprocess.run(command, cwd=ROOT, env=made.environment, capture_output=True, text=True, check=False)
    assert re.search(r"\b0 of [1-9]\d* done", said.stdout), said.stdout + said.stderr


def _wrong(relay: AskingRelay, name: str) -> object:
    wanted = [paths for kind, paths in KINDS.items() if re.fullmatch(kind, name)]
    allowed = wanted[0] if wanted else CATALOG  # also for unlisted kinds
    return {path: sorted(before)[:5] for path, before in relay.paths[name].items() if path not in allowed}


def _fill(dsn: str, look: Connection) -> None:
    look.run(f"alter database {dsn.rpartition('/')[2]} set search_path = public, pg_catalog")
    columns = "pid int, message_id text, row_id uuid, seq int, modules text[], at timestamptz default now()"
    look.run(f"create table public.handled ({columns})")
    Transport("Broken", dsn).create_queues()
    Endpoint.objects.create(name="Sales", table="Sales", desired_processes=1)
    lease = {"schema": "messages", "table": "message", "kind": "lease"}
    Endpoint.objects.create(name="Thumbs", desired_processes=1, **lease)
    Queue.objects.create(schema="public", table="error", kind="error", ingest=True)
    Queue.objects.create(schema="public", table="audit", kind="audit", ingest=True)
    kept = {"database": this_database(), "relay_seconds": 10, "keep_seconds": 86_400}
    ForeignOutbox.objects.create(schema="public", table="Billing_OutboxData", **kept)


def _signed_in(made: Product) -> httpx.Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    name = httpx.get(f"{made.url}/sign-in/").headers["set-cookie"].partition("=")[0].replace("csrftoken", "sessionid")
    return httpx.Client(base_url=made.url, headers={"Cookie": f"{name}={key}"}, timeout=30)
