"""A mail subject fits 78 characters and one line, whatever names it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.alerts.mail.composer import compose_subject, one_line, unlinked

HOSTILE = st.text(max_size=200)


def test_environment_queue_fact_and_threshold() -> None:
    line = compose_subject(
        "production", "critical", "", "Billing", "24 dead", "GatewayTimeout", ", target 0, since 02:47"
    )
    assert line == "[production] critical: Billing 24 dead (GatewayTimeout), target 0, since 02:47"


def test_resolved() -> None:
    line = compose_subject("production", "resolved", "", "Billing", "dead messages", "Timeout", ", after 1 h 11 min")
    assert line == "[production] resolved: Billing dead messages (Timeout), after 1 h 11 min"


def test_no_name_is_said() -> None:
    assert compose_subject("", "critical", "", "Q", "1 dead", "", "").startswith("[unnamed] critical:")


def test_the_fact_and_its_threshold_are_never_cut() -> None:
    after = ", target 20, since 02:47"
    line = compose_subject("e" * 60, "critical", "now", "q" * 55, "2,147,483,647 dead", "c" * 90, after)
    assert len(line) <= 78
    assert "2,147,483,647 dead" in line
    assert line.endswith(", target 20, since 02:47")


@pytest.mark.parametrize("break_", ["\n", "\r\n", "\r", "\0", "\x85", "\u2028", "\u2029", "\v", "\u202e"])
def test_no_name_adds_a_line(break_: str) -> None:
    name = f"Billing{break_}Bcc: everybody@example.org"
    line = compose_subject("production", "critical", "", name, "1 dead", "", "")
    assert len(line.splitlines()) == 1
    assert break_ not in line
    assert "Billing Bcc: everybody" in line


@given(environment=HOSTILE, queue=HOSTILE, cause=HOSTILE)
def test_any_text(environment: str, queue: str, cause: str) -> None:
    line = compose_subject(environment, "critical", "", queue, "24 dead", cause, ", target 0, since 02:47")
    assert len(line) <= 78
    assert len(line.splitlines()) == 1
    assert "24 dead" in line


@given(text=HOSTILE)
def test_subject_text_is_always_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("See https://evil.example/x now", "See https[:]//evil.example/x now"),
        ("HTTP://A, ftp://b", "HTTP[:]//A, ftp[:]//b"),
        ("www.evil.example", "www[.]evil.example"),
        ("mailto:x@evil.example", "mailto[:]x[@]evil.example"),
        ("Shop.Billing.Gateway+Refused, 24 dead at 02:47, a/b", "Shop.Billing.Gateway+Refused, 24 dead at 02:47, a/b"),
    ],
)
def test_a_text_of_others_becomes_no_link(said: str, shown: str) -> None:
    assert unlinked(said) == shown
