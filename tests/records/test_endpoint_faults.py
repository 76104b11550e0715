"""What the console lets through, the engine takes: the two may never disagree about an endpoint's settings."""

import pytest

from pgqueue_admin.records.endpoint_faults import faults
from pgqueue_admin.records.models import Endpoint
from pgqueue_admin.workers.settings import of_row

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
]
FINE = [
    {},
    {"batch_size": 1000, "transaction_mode": "receive_only", "repeek_after": "handlers", "notify": False},
    {"transaction_mode": "none", "immediate_retries": 0, "delayed_retries": 0},
    {"audit_queue": '"ops"."audit"', "audit_ttbr_seconds": 604_800},
    {"on_exhausted": "error_queue", "error_queue": "error", "delayed_retry_step_ms": 0},
]


def row(**settings: object) -> Endpoint:
    return Endpoint(name="Sales", table="Sales", **settings)


@pytest.mark.parametrize("settings", ODD)
def test_what_cannot_be_is_told_of_its_own_field(settings: dict[str, object]) -> None:
    found = faults(row(**settings))
    assert set(found) & {*settings, "immediate_retries", "delayed_retries", "audit_queue"}
    assert all(sentence.endswith(".") for sentence in found.values())


@pytest.mark.parametrize("settings", FINE)
def test_what_is_let_through_is_taken_by_the_engine(settings: dict[str, object]) -> None:
    assert faults(row(**settings)) == {}
    assert of_row(row(**settings)).faults() == []


@pytest.mark.parametrize("settings", ODD)
def test_what_the_engine_refuses_is_never_let_through(settings: dict[str, object]) -> None:
    if of_row(row(**settings)).faults():
        assert faults(row(**settings))


@pytest.mark.parametrize("field", ["error_queue", "audit_queue"])
def test_an_endpoints_own_queue_is_no_place_to_put_things(field: str) -> None:
    assert "own queue" in faults(row(**{field: '"public"."Sales"'}))[field]
    assert faults(Endpoint(name="Sales", table="Sales", ours=False, **{field: "Sales"})) == {}
