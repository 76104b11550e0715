"""One frozen value; all faults are reported together (T15, T17)."""

import logging
from dataclasses import FrozenInstanceError, replace

import pytest

from pgqueue_admin.transport import Endpoint, EndpointSettings, SettingsRefused
from pgqueue_admin.transport.settings import warn_of_peek_delay

DSN = "postgresql://nobody@127.0.0.1:1/nowhere"


def test_the_defaults_hold():
    settings = EndpointSettings()
    assert settings.faults() == []
    assert (settings.peek_delay, settings.max_records_to_peek, settings.immediate_retries) == (1.0, None, 5)
    assert (settings.delayed_retries, settings.delayed_retry_step) == (3, 10.0)
    assert settings.transaction_mode == "sends_atomic_with_receive"
    assert settings.concurrency >= 2


def test_settings_are_immutable():
    with pytest.raises(FrozenInstanceError):
        EndpointSettings().peek_delay = 2  # type: ignore[misc]


def test_every_fault_at_once():
    settings = EndpointSettings(
        peek_delay=0,
        max_records_to_peek=0,
        concurrency=0,
        batch_size=0,
        immediate_retries=-1,
        delayed_retries=-1,
        delayed_retry_step=-1,
        transaction_mode="distributed",  # type: ignore[arg-type]
        error_queue="",
    )
    assert len(settings.faults()) == 9
    with pytest.raises(SettingsRefused) as refused:
        Endpoint("N" * 48, DSN, settings=settings)
    assert len(refused.value.faults) == 10
    assert str(refused.value).count("\n") == 9


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("peek_delay", "5"),
        ("concurrency", 2.5),
        ("immediate_retries", "3"),
        ("delayed_retries", None),
        ("max_records_to_peek", 1.5),
        ("batch_size", True),
        ("audit_ttbr", "60"),
    ],
)
def test_setting_that_is_no_number_is_named(name, value):
    (fault,) = EndpointSettings(**{"audit_queue": "copies", name: value}).faults()
    assert fault.startswith(f"{name} is {value!r}: it must be a ")


@pytest.mark.parametrize("ttbr", [0, 1e-5, 1e15, float("inf"), float("nan")])
def test_a_time_that_no_copy_can_have_is_refused(ttbr):
    """Otherwise each message would fail when its copy is made."""
    (fault,) = EndpointSettings(audit_queue="copies", audit_ttbr=ttbr).faults()
    assert "at least 0.001 s, at most 2,900,000 days" in fault


@pytest.mark.parametrize("delay", [0.099, 10.5])
def test_a_delay_out_of_range_is_refused_only_if_asked(delay):
    """T15."""
    assert EndpointSettings(peek_delay=delay).faults() == []
    (fault,) = EndpointSettings(peek_delay=delay, strict_peek_range=True).faults()
    assert "from 0.1 s to 10 s" in fault


@pytest.mark.parametrize("delay", [0.1, 10])
def test_the_ends_of_the_range_are_in_it(delay, caplog):
    settings = EndpointSettings(peek_delay=delay, strict_peek_range=True)
    assert settings.faults() == []
    warn_of_peek_delay("Sales", settings)
    assert caplog.records == []


@pytest.mark.parametrize("delay", [0, -1, 86_401, float("inf"), float("nan")])
def test_a_delay_that_cannot_be_waited_is_refused(delay):
    (fault,) = EndpointSettings(peek_delay=delay).faults()
    assert "more than 0, and at most a day" in fault


def test_retries_need_a_receive_transaction():
    immediate, delayed = EndpointSettings(transaction_mode="none").faults()
    assert "immediate_retries" in immediate
    assert "delayed_retries" in delayed
    assert EndpointSettings(transaction_mode="none", immediate_retries=0, delayed_retries=0).faults() == []


def test_copies_that_expire_need_a_queue():
    (fault,) = EndpointSettings(audit_ttbr=60).faults()
    assert "audit_queue is empty" in fault
    (fault,) = EndpointSettings(audit_queue="audit", audit_ttbr=0).faults()
    assert "more than 0" in fault


def test_a_batch_needs_one_too():
    """Deleted and unhandled messages would be lost in a crash."""
    none = EndpointSettings(transaction_mode="none", immediate_retries=0, delayed_retries=0, batch_size=2)
    assert ["batch_size" in fault for fault in none.faults()] == [True]


@pytest.mark.parametrize(("delay", "limit"), [(0.05, "100 ms or more"), (15, "10 s or less")])
def test_a_delay_out_of_range_is_logged(make_endpoint, caplog, delay, limit):
    """T15: at the start and on a change, not each time settings are applied."""
    endpoint = make_endpoint()
    endpoint.start()
    with caplog.at_level(logging.WARNING, "pgqueue_admin.transport"):
        endpoint.apply(replace(endpoint.settings, peek_delay=delay))
        endpoint.apply(replace(endpoint.settings, concurrency=3))
    (said,) = [record.getMessage() for record in caplog.records if record.funcName == "warn_of_peek_delay"]
    assert limit in said
