"""Whoever reports on a process is told which of its circuit breakers are open."""

from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.transport.breaker import CircuitBreaker, Open, open_breakers


def mine(what: str) -> list[Open]:
    return [each for each in open_breakers() if each.what == what]


def test_it_is_told_while_it_is_open_and_no_longer() -> None:
    now = [0.0]
    breaker = CircuitBreaker("Receiving from somewhere", clock=lambda: now[0])
    breaker.failed(DatabaseDown("refused"))
    assert mine("Receiving from somewhere") == [], "armed is not open"
    now[0] = 31
    breaker.failed(DatabaseDown("still refused"))
    now[0] = 40
    (told,) = mine("Receiving from somewhere")
    assert (told.seconds, told.error) == (40, "The database does not answer. still refused")
    breaker.succeeded()
    assert mine("Receiving from somewhere") == []


def test_one_that_is_gone_is_not_told_of() -> None:
    breaker = CircuitBreaker("Gone", clock=iter((0.0, 40.0, 40.0, 40.0, 40.0)).__next__)
    breaker.failed(DatabaseDown())
    breaker.failed(DatabaseDown())
    assert mine("Gone")
    del breaker
    assert mine("Gone") == []
