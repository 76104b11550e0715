"""The server's cost of a page with two hundred queues, and of sampling them; ``make bench-console``."""

import http.client
import os
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import queues
from bench.folder import temporary
from bench.table import Row, publish, row
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded import ports
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.osproc.process_tree import seconds_of

QUEUES, DEEP_ROWS, EATEN = 200, 1_600_000, 600_000
ROUNDS = 60
PAGES = {"Overview": "/", "Queues": "/queues/", "Queue, 1,000,000 rows": "/queues/public/Deep/"}
ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(temporary())
        server = PostgreSQL(folder / "postgresql")
        server.start()
        stack.callback(server.stop)
        rows = measure(stack, server, folder)
    publish("console", rows)


def measure(stack: ExitStack, server: PostgreSQL, folder: Path) -> list[Row]:
    with postgresql().connect(server.dsn(), for_handlers=True) as admin:
        admin.run("create database bench")
    dsn = server.dsn("bench")
    port = ports.free()
    os.environ.update(
        DATABASE_URL=dsn,
        PGQUEUE_STATE_DIR=str(folder / "var"),
        PORT=str(port),
        SECRET_KEY=secrets.token_hex(32),
        DJANGO_SETTINGS_MODULE="pgqueue_admin.config.settings",
    )
    cookie = prepare()
    connection = stack.enter_context(postgresql().connect(dsn, for_handlers=True))
    queues.lay_out(connection, QUEUES, DEEP_ROWS)
    sampler = stack.enter_context(process("-m", "django", "sampler"))
    wait_for_samples()
    web = ("-m", "uvicorn", "pgqueue_admin.config.asgi:application", "--port", str(port), "--no-access-log")
    stack.enter_context(process(*web, DJANGO_SETTINGS_MODULE="pgqueue_admin.config.web_settings"))
    wait_until(lambda: ports.answers(port, "127.0.0.1"))
    rows = pages(port, cookie, "")
    rows.append(sampling(sampler.pid))
    stack.enter_context(queues.hold_snapshot(dsn))
    queues.eat_head(connection, EATEN)
    rows += pages(port, cookie, ", 600,000 dead rows held at its head")
    rows.append(sampling(sampler.pid, ", with the dead rows"))
    return rows


def prepare() -> str:
    """Create the console's tables and a signed-in user; return the session's cookie."""
    import django

    django.setup()
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.contrib.sessions.backends.db import SessionStore
    from django.core.management import call_command

    call_command("collectstatic", interactive=False, verbosity=0)
    call_command("migrate", verbosity=0)
    call_command("engine_schema", verbosity=0)
    person = get_user_model().objects.create_superuser("bench", password="bench")
    session = SessionStore()
    session["_auth_user_id"] = str(person.pk)
    session["_auth_user_backend"] = settings.AUTHENTICATION_BACKENDS[0]
    session["_auth_user_hash"] = person.get_session_auth_hash()
    session.save()
    return f"{settings.SESSION_COOKIE_NAME}={session.session_key}"


def pages(port: int, cookie: str, suffix: str) -> list[Row]:
    """p95 of each page over interleaved rounds; the floor is a page that does nothing."""
    client = http.client.HTTPConnection("127.0.0.1", port)
    taken: dict[str, list[float]] = {name: [] for name in [*PAGES, "floor"]}
    for number in range(ROUNDS + 5):
        for name, path in [*PAGES.items(), ("floor", "/healthz")]:
            spent = get(client, path, cookie)
            if number >= 5:
                taken[name].append(spent)
    floor = p95(taken["floor"])
    return [row(f"{name}{suffix}, p95", p95(taken[name]), "ms", floor=floor, target=50) for name in PAGES]


def get(client: http.client.HTTPConnection, path: str, cookie: str) -> float:
    began = time.perf_counter()
    client.request("GET", path, headers={"Cookie": cookie})
    answer = client.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path} answered {answer.status}: {body[:300]!r}")
    return (time.perf_counter() - began) * 1000


def p95(figures: list[float]) -> float:
    return statistics.quantiles(figures, n=20)[-1]


def sampling(pid: int, suffix: str = "", seconds: float = 20) -> Row:
    """CPU time of the sampler over ``seconds``, without the cost of its statements on the server."""
    before, began = seconds_of(pid), time.monotonic()
    time.sleep(seconds)
    share = (seconds_of(pid) - before) / (time.monotonic() - began) * 100
    return row(f"sampling {QUEUES} queues, of one core{suffix}", share, "%", floor=None, target=10)


def wait_for_samples() -> None:
    from pgqueue_admin.models import LatestSample

    wait_until(lambda: LatestSample.objects.count() >= QUEUES)


def wait_until(condition: Callable[[], bool], seconds: float = 60, what: str = "What was waited for came") -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"Not within {seconds:.0f} s: {what}.")
        time.sleep(0.1)


@contextmanager
def process(*words: str, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen([sys.executable, *words], cwd=ROOT, env={**os.environ, **environment})
    try:
        yield child
    finally:
        child.terminate()
        child.wait()


if __name__ == "__main__":
    main()
