"""``/metrics`` gives the figures of the pages, to this machine only; unknown figures are absent."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse
from pytest_django import Settings

from pgqueue_admin.api import figures
from pgqueue_admin.models import Alert, Endpoint, LatestSample, Operation, Queue
from tests.console.sampled import elsewhere, many_queues, read_only
from tests.console.test_query_errors import NOBODY_ANSWERS

pytestmark = pytest.mark.usefixtures("console_database")
ROOT = Path(__file__).resolve().parents[2]
HOSTILE = '"} 1\npgqueue_archive_dead 666\\n{a="<script>'

Series = tuple[str, frozenset[tuple[str, str]]]


def scraped(**headers: str) -> dict[Series, float]:
    """Value by name and labels; a duplicate series fails, as in Prometheus."""
    answer = Client().get("/metrics", headers=headers)
    assert answer.status_code == 200
    samples = [sample for family in parse(answer.content.decode()) for sample in family.samples]
    found = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(found) == len(samples)
    return found


def of(name: str, found: dict[Series, float]) -> list[float]:
    return [value for (each, _), value in found.items() if each == name]


def dead_warning(cause: str, count: int, queue: str = "public.Sales") -> None:
    now = timezone.now()
    about: dict[str, Any] = {"severity": "critical", "sentence": "", "opened_at": now, "last_seen_at": now}
    Alert.objects.create(kind="dead_message", subject=queue, queue=queue, cause=cause, count=count, **about)


def test_figures_are_those_of_the_newest_sample() -> None:
    many_queues(2)
    found = scraped()
    assert of("pgqueue_queue_ready", found) == [2_147_483_647] * 2
    assert of("pgqueue_queue_in_per_second", found) == [24.0] * 2
    assert of("pgqueue_queue_dead", found) == [0, 0]
    assert all(299 < age < 330 for age in of("pgqueue_queue_oldest_age_seconds", found))
    assert of("pgqueue_queue_counted", found) == [1, 1]
    assert of("pgqueue_samples_stale", found) == [0]


def test_unknown_figures_are_absent_and_never_0() -> None:
    many_queues(3)
    first, second, _ = LatestSample.objects.order_by("pk")
    LatestSample.objects.filter(pk=first.pk).update(ready=None, oldest_at=None, how="capped")
    LatestSample.objects.filter(pk=second.pk).update(error="permission denied", ready=5)
    found = scraped()
    assert of("pgqueue_queue_ready", found) == [2_147_483_647]
    assert len(of("pgqueue_queue_oldest_age_seconds", found)) == 1
    assert len(of("pgqueue_queue_depth", found)) == 2
    assert of("pgqueue_queue_counted", found) == [0, 1]
    assert of("pgqueue_queue_readable", found) == [1, 0, 1]
    assert of("pgqueue_archive_dead", found) == []
    assert of("pgqueue_history_complete_to_timestamp_seconds", found) == []


def test_stale_figures_are_absent_and_their_age_is_said() -> None:
    many_queues(1)
    dead_warning("X", 3)
    LatestSample.objects.update(at=timezone.now() - timedelta(minutes=5))
    found = scraped()
    names = {name for name, _ in found}
    assert of("pgqueue_samples_stale", found) == [1]
    assert 299 < of("pgqueue_sample_age_seconds", found)[0] < 330
    assert not [name for name in names if name.startswith(("pgqueue_queue", "pgqueue_dead", "pgqueue_archive"))]


def test_before_the_first_sample_there_is_no_age() -> None:
    found = scraped()
    assert of("pgqueue_sample_age_seconds", found) == []
    assert of("pgqueue_samples_stale", found) == [1]


def test_hostile_names_are_escaped_in_both_formats() -> None:
    many_queues(1)
    Queue.objects.update(table=HOSTILE)
    dead_warning(HOSTILE, 7)
    found = scraped()
    assert of("pgqueue_archive_dead", found) == []
    assert [dict(labels)["queue"] for name, labels in found if name == "pgqueue_queue_ready"] == [HOSTILE]
    answer = Client().get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert answer["Content-Type"].startswith("application/openmetrics-text")
    families = {family.name: family for family in parse_openmetrics(answer.content.decode())}
    assert families["pgqueue_dead_by_cause"].samples[0].labels["cause"] == HOSTILE
    assert families["pgqueue_dead_by_cause"].samples[0].value == 7


def test_labels_are_bounded_and_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_QUEUES", 3)
    monkeypatch.setattr(figures, "MOST_CAUSES", 2)
    many_queues(5)
    for number in range(4):
        dead_warning(f"{'x' * figures.LONGEST_CAUSE}{number % 2}", 10 + number, f"queue {number // 2}")
    dead_warning("small", 1)
    found = scraped()
    assert (of("pgqueue_queues", found), of("pgqueue_queues_left_out", found)) == ([5], [2])
    assert len(of("pgqueue_queue_ready", found)) == 3
    assert sorted(of("pgqueue_dead_by_cause", found)) == [21, 25]


def test_processes_operations_and_warnings_are_counted() -> None:
    Endpoint.objects.create(name="Sales", table="Sales", desired_processes=2)
    Operation.objects.create(kind="retry", state="running", who="ana", origin="console")
    dead_warning("X", 3)
    found = scraped()
    assert found["pgqueue_endpoint_processes_wanted", frozenset({("endpoint", "Sales")})] == 2
    assert found["pgqueue_endpoint_processes_running", frozenset({("endpoint", "Sales")})] == 0
    assert found["pgqueue_operations", frozenset({("state", "running")})] == 1
    assert found["pgqueue_warnings", frozenset({("severity", "critical")})] == 1


@pytest.mark.parametrize("peer", ["10.2.0.71", "::ffff:10.2.0.71", "", "127.0.0.1.example.org"])
def test_other_machines_are_refused(peer: str) -> None:
    assert Client().get("/metrics", REMOTE_ADDR=peer).status_code == 403


@pytest.mark.parametrize("header", ["forwarded", "via", "x-forwarded-for", "x-forwarded-proto", "x-real-ip"])
def test_a_proxy_on_this_machine_is_refused(header: str) -> None:
    assert Client().get("/metrics", headers={header: "127.0.0.1"}).status_code == 403


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_this_machine_is_answered_over_plain_http_by_its_own_names(settings: Settings, peer: str) -> None:
    settings.SECURE_SSL_REDIRECT, settings.ALLOWED_HOSTS = True, ["console.example.org"]
    for host in ("127.0.0.1:8000", "localhost:8000", "[::1]:8000", "console.example.org"):
        assert Client().get("/metrics", headers={"host": host}, REMOTE_ADDR=peer).status_code == 200
    assert Client().get("/metrics", headers={"host": "rebound.example"}, REMOTE_ADDR=peer).status_code == 400


def test_nothing_is_written_and_a_post_is_refused() -> None:
    many_queues(3)
    with CaptureQueriesContext(connections["default"]) as asked:
        scraped()
    assert len(asked) <= 12
    with read_only("default"):
        scraped()
    assert Client().post("/metrics").status_code == 405


def test_a_console_database_that_is_away_is_503_and_not_an_empty_page() -> None:
    with elsewhere("default", PORT=NOBODY_ANSWERS):
        assert Client().get("/metrics").status_code == 503


def offered() -> set[str]:
    many_queues(1)
    return {family.name for family in parse(Client().get("/metrics").content.decode())}


def test_each_expression_of_the_dashboard_names_metrics_that_exist() -> None:
    board = json.loads((ROOT / "deploy/grafana/pgqueue-admin.json").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    named = [set(re.findall(r"pgqueue_\w+", expression)) for expression in expressions]
    assert all(named)
    assert set().union(*named) - offered() == set()


def test_the_reference_lists_each_metric() -> None:
    page = (ROOT / "docs/reference/metric-list.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(pgqueue_\w+)`", "\n".join(re.findall(r"^\| `.*$", page, re.M)))) == offered()


@pytest.mark.parametrize(
    "accept", ["application/openmetrics-text; version=x", "application/openmetrics-text; version=", ";"]
)
def test_an_odd_accept_header_gets_figures_all_the_same(accept: str) -> None:
    assert Client().get("/metrics", headers={"accept": accept}).status_code == 200
