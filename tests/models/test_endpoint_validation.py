"""The engine accepts all settings of an endpoint that the console accepts: their limits are the same."""

from itertools import product
from typing import get_args

import pytest

from pgqueue_admin.models import Endpoint, endpoint_validation
from pgqueue_admin.models.endpoint_validation import faults
from pgqueue_admin.transport import settings as engine
from pgqueue_admin.workers.processes.endpoint_settings import of_row

ODD = [
    {"batch_size": 0},
    {"batch_size": 1001},
    {"transaction_mode": "sometimes"},
    {"repeek_after": "never"},
    {"transaction_mode": "none"},
    {"transaction_mode": "none", "immediate_retries": 0, "delayed_retries": 0, "batch_size": 2},
    {"audit_ttbr_seconds": 60},
    {"audit_ttbr_seconds": 0, "audit_queue": "audit"},
    {"immediate_retries": -1},
    {"delayed_retry_step_ms": 86_400_001},
    {"concurrency": 0},
    {"max_records_to_peek": 0},
    {"peek_delay_ms": 0},
    {"strict_peek_range": True, "peek_delay_ms": 50},
    {"subscription_table": "ops."},
    {"subscription_table": "x" * 56},
]
FINE = [
    {},
    {"batch_size": 1000, "transaction_mode": "receive_only", "repeek_after": "handlers", "notify": False},
    {"transaction_mode": "none", "immediate_retries": 0, "delayed_retries": 0},
    {"audit_queue": '"ops"."audit"', "audit_ttbr_seconds": 604_800},
    {"subscription_table": '"ops"."SubscriptionRouting"'},
    {"on_exhausted": "error_queue", "error_queue": "error", "delayed_retry_step_ms": 0},
]


def row(**settings: object) -> Endpoint:
    return Endpoint(name="Sales", table="Sales", **settings)


@pytest.mark.parametrize("settings", ODD)
def test_invalid_setting_is_reported_at_its_field(settings: dict[str, object]) -> None:
    found = faults(row(**settings))
    assert set(found) & {*settings, "immediate_retries", "delayed_retries", "audit_queue"}
    assert all(sentence.endswith(".") for sentence in found.values())


@pytest.mark.parametrize("settings", FINE)
def test_settings_the_console_accepts_are_accepted_by_the_engine(settings: dict[str, object]) -> None:
    assert faults(row(**settings)) == {}
    assert of_row(row(**settings)).faults() == []


@pytest.mark.parametrize("settings", ODD)
def test_settings_the_engine_refuses_are_refused_by_the_console(settings: dict[str, object]) -> None:
    if of_row(row(**settings)).faults():
        assert faults(row(**settings))


def test_both_have_the_same_limits() -> None:
    """The limits exist twice: the engine works without Django, and the console's models without the engine."""
    assert endpoint_validation.PEEK_RANGE_MS == (engine.LEAST_PEEK_DELAY * 1000, engine.MOST_PEEK_DELAY * 1000)
    assert endpoint_validation.LONGEST_PEEK_DELAY_MS == engine.LONGEST_PEEK_DELAY * 1000
    assert endpoint_validation.LONGEST_RETRY_STEP_MS == engine.LONGEST_RETRY_STEP * 1000
    assert engine.LEAST_AUDIT_TTBR <= 1
    assert endpoint_validation.LONGEST_AUDIT_SECONDS <= engine.MOST_AUDIT_TTBR


def test_both_have_the_same_choices() -> None:
    assert set(Endpoint.Mode.values) == set(get_args(engine.TransactionMode))
    assert set(Endpoint.Repeek.values) == set(get_args(engine.Repeek))
    assert set(Endpoint.Exhausted.values) == set(get_args(engine.OnExhausted))


@pytest.mark.parametrize("mode", Endpoint.Mode.values)
def test_both_refuse_the_same_of_each_mode(mode: str) -> None:
    for immediate, delayed, batch in product((0, 1), (0, 1), (1, 2)):
        settings = {"immediate_retries": immediate, "delayed_retries": delayed, "batch_size": batch}
        chosen = row(transaction_mode=mode, **settings)
        refused = {fault.split(" and ")[1].split(" is ")[0] for fault in of_row(chosen).faults()}
        assert set(faults(chosen)) == refused


@pytest.mark.parametrize("field", ["error_queue", "audit_queue"])
def test_an_endpoints_own_queue_is_no_place_to_put_things(field: str) -> None:
    assert "own queue" in faults(row(**{field: '"public"."Sales"'}))[field]
    assert faults(Endpoint(name="Sales", table="Sales", ours=False, **{field: "Sales"})) == {}
