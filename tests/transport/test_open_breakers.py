"""Whoever reports on an endpoint is told which of its circuit breakers are not closed."""

import pytest

from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.transport.sessions.circuit_breaker import BreakerTrouble, CircuitBreaker, CircuitBreakers


@pytest.fixture
def now(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(CircuitBreaker.__init__, "__defaults__", (lambda: now[0],))
    return now


def test_it_is_told_while_it_is_not_closed_and_no_longer(now):
    breakers = CircuitBreakers()
    breaker = breakers.new("Receiving from somewhere")
    assert breakers.troubles() == []
    breaker.failed(DatabaseDown("refused"))
    now[0] = 31
    (armed,) = breakers.troubles()
    assert armed == BreakerTrouble(
        "Receiving from somewhere", 31, "The database does not answer. refused", triggered=False
    )
    breaker.failed(DatabaseDown("still refused"))
    now[0] = 40
    (told,) = breakers.troubles()
    assert told == BreakerTrouble(
        "Receiving from somewhere", 40, "The database does not answer. still refused", triggered=True
    )
    breaker.succeeded()
    assert breakers.troubles() == []


def test_one_made_anew_takes_the_place_of_the_one_before():
    breakers = CircuitBreakers()
    breakers.new("Peeking").failed(DatabaseDown())
    breakers.new("Peeking")
    assert breakers.troubles() == []
