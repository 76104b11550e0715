"""Databases watched beside the first: a silent sampler is warned of, and its alias is no endpoint."""

from typing import Any

import pytest

from pgqueue_admin.models import Endpoint, Process
from tests.alerts.test_kinds import NOW, ago, found, look, queue, severities


@pytest.fixture(autouse=True)
def billing(settings: Any) -> None:
    nobody = {"URL": "postgresql://nobody@127.0.0.1:1/none", "SCHEMAS": ["public"]}
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {"billing": nobody}}


def there(at: float, **facts: Any) -> Any:
    made = queue(sample={"at": ago(at)}, **facts)
    made.schema = "billing:public"
    return made


def test_a_first_sampler_that_is_silent_is_not_hidden_by_another() -> None:
    seen = look(queues=[queue(sample={"at": ago(60)}), there(0)])
    assert [each.subject for each in found("sampler_stale", seen)] == ["sampler"]
    assert seen.newest_sample == ago(60)


def test_stale_sampler_of_another_database_is_named() -> None:
    seen = look(queues=[queue(sample={"at": NOW}), there(60)])
    assert [each.subject for each in found("sampler_stale", seen)] == ["sampler of billing"]
    assert severities("sampler_stale", seen) == ["critical"]
    heard = Process(role="source-sampler", endpoint="billing", heartbeat_at=NOW)
    assert found("sampler_stale", look(queues=seen.queues, processes=[heard])) == []


def test_an_alias_is_no_endpoint() -> None:
    ours = Endpoint(name="billing", schema="public", table="Billing", ours=True, desired_processes=1)
    sampler = Process(role="source-sampler", endpoint="billing", heartbeat_at=NOW)
    assert look(processes=[sampler]).of(ours) == []
    ended = [
        Process(role="source-sampler", endpoint="billing", state="crashed", ended_at=ago(each), heartbeat_at=ago(each))
        for each in range(5)
    ]
    (said,) = found("worker_crashing", look(processes=ended))
    assert said.subject == "sampler of billing"
