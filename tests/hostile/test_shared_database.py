"""Console and queues in one database, in whose ``public`` a stranger has made what would fit our statements better.

Its pages are walked once, below a path (PUBLIC_URL=https://host/below/): nothing of his runs, and nothing leads out.
"""

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from celery.app.task import Task
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client, override_settings
from django.urls import clear_url_caches, reverse
from django_celery_beat.schedulers import DatabaseScheduler

from pgqueue_admin.alerts.alerter import Alerter
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.config.celery import app
from pgqueue_admin.console import url_converters
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import connect_options
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.live import topics
from pgqueue_admin.models import Alert, Endpoint, LatestSample, Operation, Queue, notify
from pgqueue_admin.models.queue_database import console_dsn, queue_database
from pgqueue_admin.services.operations import lifecycle, runner, selection
from tests.console.sampled import sample
from tests.databases import Databases
from tests.hostile import crawl, links, overloads
from tests.hostile.hostile_site import World, in_one

CONSOLE, CATALOG = "pg_catalog, pgqueue_console, pg_temp", "pg_catalog,pg_temp"
BELOW = "/below/"


@pytest.fixture(scope="module")
def world(databases: Databases) -> Iterator[World]:
    """Kept as ``world`` is elsewhere in this folder, but in one database."""
    with in_one(databases) as world:
        connections.close_all()
        queue_database().close()
        with overloads.made(world.console, world.console_dsn):
            yield world


@pytest.fixture(autouse=True)
def nothing_ran(world: World) -> Iterator[None]:
    yield
    assert not ran(world), "the code of a stranger ran"


def ran(world: World) -> bool:
    return bool(world.console.value("select is_called from public.ran"))


def test_they_would_run_by_another_path(world: World) -> None:
    """In a session that names no path, as ours were: no cast is as good as theirs."""
    made = "select count(*) from pg_catalog.pg_{} where {} = 'public'::regnamespace"
    assert world.console.value(made.format("operator", "oprnamespace")) > 200
    assert world.console.value(made.format("proc", "pronamespace")) > 800
    for query in (
        "select username = 'root' from pgqueue_console.auth_user",
        "select count(id) from pgqueue_console.pgqueue_sample",
        "select 10::numeric / 2",
        "select mod(10::numeric, 2)",
        "select starts_with(username, 'r') from pgqueue_console.auth_user",
        "select username || 'x' from pgqueue_console.auth_user",
    ):
        with psycopg.connect(world.console_dsn) as as_before, pytest.raises(psycopg.Error, match="a stranger ran"):
            as_before.execute(query)
    assert ran(world)
    world.console.run("alter sequence public.ran restart")


@contextmanager
def below_a_path() -> Iterator[None]:
    with override_settings(ROOT_URLCONF="tests.hostile.below_a_path"):
        _forget_addresses()
        yield
    _forget_addresses()


def _forget_addresses() -> None:
    """Those of rows are kept for as long as a process lives."""
    clear_url_caches()
    for kept in (url_converters.queue, url_converters.failure, url_converters._around_archive_id):
        kept.cache_clear()


@pytest.fixture(scope="module")
def walked(world: World) -> list[SimpleNamespace]:
    """The one walk that the tests below judge."""
    with below_a_path():
        sample()
        client = world.client("root", raise_request_exception=False)
        return [_kept(*each) for each in crawl.get(client, crawl.few(crawl.paths(world), 3))]


def _kept(name: str, path: str, answer: Any) -> SimpleNamespace:
    html = answer.content.decode() if not answer.streaming and "html" in answer["Content-Type"] else ""
    sent = answer.get("Location", "")
    return SimpleNamespace(name=name, path=path, status=answer.status_code, html=html, leads_to=sent)


def test_every_page_answers(walked: list[SimpleNamespace]) -> None:
    assert len(walked) > 200
    failed = [each for each in walked if each.status >= 500 and each.name != "readyz"]
    assert [(each.path, each.status) for each in failed] == []


def test_no_page_below_a_path_leads_out_of_it(walked: list[SimpleNamespace]) -> None:
    assert len([each for each in walked if each.html]) > 100
    assert {each.path: found for each in walked if (found := links.out_of(BELOW, each.html))} == {}


def test_nobody_is_sent_out_of_a_path(walked: list[SimpleNamespace]) -> None:
    sent = {each.path: each.leads_to for each in walked if each.leads_to}
    assert sent
    assert {path: to for path, to in sent.items() if not urlsplit(to).path.startswith(BELOW)} == {}


def test_no_figure_that_changes_leads_out_of_a_path(world: World, walked: list[SimpleNamespace]) -> None:
    """What an open page is told is made elsewhere than the page."""
    said = "".join(each.html for each in walked)
    followed = {each for named in re.findall(r'data-topics="([^"]*)"', said) for each in named.split()}
    gone = f"waiting:{Queue.objects.get(schema='public', table='Sales').pk}:{uuid.uuid4()}"
    endpoint = f"endpoint:{Endpoint.objects.order_by('pk')[0].pk}"
    found = [each for each in map(topics.find, {*followed, "frame", gone, endpoint}) if each]
    with below_a_path():
        told = {f"{topic.name}:{about}": topic.render(about) for topic, about in found}
    assert topics._topics.keys() - {topic.name for topic, _ in found} == set()
    assert f"{BELOW}messages/" in told[gone]["message.left"]
    texts = {name: "".join(map(str, said.values())) for name, said in told.items()}
    assert {name: out for name, text in texts.items() if (out := links.out_of(BELOW, text))} == {}


def test_signing_in_and_out(world: World) -> None:
    client = Client()
    for password in ("wrong", "of the tests"):
        answer = client.post(reverse("sign_in"), {"username": "operator", "password": password})
    assert answer.status_code == 302
    assert client.get(reverse("overview")).status_code == 200
    assert client.post(reverse("sign_out")).status_code == 302


@pytest.mark.parametrize(
    "task", [each for each in vars(tasks).values() if isinstance(each, Task)], ids=lambda t: t.name
)
def test_every_task(world: World, task: Callable[[], Any]) -> None:
    task()


def test_beat(world: World) -> None:
    assert DatabaseScheduler(app=app).schedule


def test_the_sampler_stores(world: World) -> None:
    before = LatestSample.objects.order_by("-at")[0].at
    sample(2)
    assert LatestSample.objects.order_by("-at")[0].at > before
    assert not LatestSample.objects.filter(error__contains="stranger").exists()


def test_the_alerter_judges(world: World) -> None:
    Alert.objects.filter(kind="mail_not_configured").delete()
    Alerter().run_once()
    assert Alert.objects.filter(kind="mail_not_configured").exists()


def test_an_operation(world: World) -> None:
    frozen = selection.freeze(
        "retry", ArchiveFilter(), User.objects.get(username="operator"), "console", "after the outage"
    )
    lifecycle.start(frozen.pk, "operator")
    runner.run(frozen.pk)
    assert Operation.objects.get(pk=frozen.pk).done > 0


def of_django(alias: str) -> str:
    with connections[alias].cursor() as cursor:
        return str(cursor.execute("show search_path").fetchone()[0])


def of_listener() -> str:
    with notify.listen(notify.ENDPOINT) as session:
        return str(session.value("show search_path"))


def of_live() -> str:
    asked = connect_options.options(console_dsn(), "pgqueue-admin live", read_only=False, statement_timeout=None)
    with psycopg.connect(console_dsn(), **asked) as session:
        return str(session.execute("show search_path").fetchall()[0][0])


@pytest.mark.parametrize(
    ("shown", "path"),
    [
        (lambda: of_django("default"), CONSOLE),
        (lambda: of_django("queues"), CATALOG),
        (of_listener, CATALOG),
        (of_live, CATALOG),
    ],
    ids=["django", "django's queues", "listener", "live"],
)
def test_the_path_of_every_kind_of_session(
    world: World, connect: Callable[[str], Connection], shown: Callable[[], str], path: str
) -> None:
    """Whatever role and database say."""
    admin, name = connect(world.console_dsn), world.console_dsn.rpartition("/")[2]
    admin.run(f"alter database {name} set search_path = public, pg_catalog")
    try:
        connections.close_all()
        assert shown().replace(", ", ",") == path.replace(", ", ",")
    finally:
        admin.run(f"alter database {name} reset search_path")
