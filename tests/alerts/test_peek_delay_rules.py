"""T15 and T16 at their exact boundaries."""

from dataclasses import dataclass

import pytest

from pgqueue_admin.alerts import peek_delay_rules
from pgqueue_admin.history.rollups.histogram import bucket
from pgqueue_admin.models import MinimumTtbr


def ttbr(message_type: str, ttbr_ms: int) -> MinimumTtbr:
    return MinimumTtbr(message_type=message_type, ttbr_ms=ttbr_ms)


HOLD = ttbr("Shop.Warehouse.StockHold", 5_000)


@dataclass(frozen=True)
class Settings:
    peek_delay_ms: int
    ours: bool = True
    name: str = "Warehouse"


def kinds(delay: int, *ttbrs: MinimumTtbr) -> list[tuple[str, str]]:
    return [(found.kind, found.severity) for found in peek_delay_rules.faults(Settings(delay), ttbrs)]


@pytest.mark.parametrize("delay", [100, 101, 1_000, 9_999, 10_000])
def test_within_the_range_nothing_is_said(delay: int) -> None:  # T15
    assert kinds(delay) == []


@pytest.mark.parametrize("delay", [0, 1, 99, 10_001, 60_000])
def test_outside_of_it_both_ends_warn(delay: int) -> None:  # T15
    assert kinds(delay) == [("peek_range", "warning")]


def test_sentences_outside_the_peek_range_name_value_and_limit() -> None:
    (long,) = peek_delay_rules.faults(Settings(12_000))
    assert long.sentence.replace("\u00a0", " ") == (
        "Peek delay is 12 s, allowed is 100 ms to 10 s. Up to 12 s pass before an idle queue is looked at, "
        "and messages may back up. Set peek delay (QueuePeeker.Delay) to 10 s or less."
    )
    (short,) = peek_delay_rules.faults(Settings(50))
    assert "20 times a second" in short.sentence
    assert "needless load" in short.sentence


def test_just_past_the_limit_does_not_read_as_the_limit() -> None:
    (found,) = peek_delay_rules.faults(Settings(10_001))
    assert found.said.value == "10.001\u00a0s"


@pytest.mark.parametrize(
    ("delay", "expected"),
    [
        (4_999, []),
        (5_000, [("ttbr_conflict", "warning")]),  # equal: at risk
        (5_001, [("ttbr_conflict", "critical")]),  # longer: lost
    ],
)
def test_the_delay_against_a_ttbr(delay: int, expected: list[tuple[str, str]]) -> None:  # T16
    assert kinds(delay, HOLD) == expected


def test_type_ttbr_delay_and_cure_are_named() -> None:  # T16
    (found,) = peek_delay_rules.faults(Settings(6_000), [HOLD])
    sentence = found.sentence.replace("\u00a0", " ")
    assert "StockHold expires after 5 s (its time to be received), but the peek delay is 6 s" in sentence
    assert "is lost" in sentence
    assert "Set peek delay (QueuePeeker.Delay) below 5 s" in sentence
    assert found.cause == HOLD.message_type


def test_at_risk_is_not_said_as_lost() -> None:
    (found,) = peek_delay_rules.faults(Settings(5_000), [HOLD])
    assert "at risk" in found.sentence
    assert "lost" not in found.sentence


def test_faults_are_listed_together_with_one_for_each_type() -> None:
    found = peek_delay_rules.faults(Settings(12_000), [ttbr("A.Late", 11_000), HOLD, ttbr("A.Fine", 12_001)])
    assert [(each.kind, each.cause) for each in found] == [
        ("peek_range", ""),
        ("ttbr_conflict", HOLD.message_type),
        ("ttbr_conflict", "A.Late"),
    ]


def test_a_ttbr_shorter_than_the_range_is_cured_at_the_message() -> None:
    (found,) = peek_delay_rules.faults(Settings(100), [ttbr("A.Blink", 80)])
    assert "give Blink a longer time to be received" in found.sentence


def test_declared_delay_of_a_foreign_endpoint_is_called_declared() -> None:
    found = peek_delay_rules.faults(Settings(12_000, ours=False), [HOLD])
    assert all("declared peek delay" in each.sentence.lower() for each in found)
    assert all("in its own code" in each.sentence for each in found)


def seen(expired: int = 0, **milliseconds: int) -> MinimumTtbr:
    """``ms_300=2``: two messages waited 300 ms for their handler."""
    numbers = {bucket(int(name.removeprefix("ms_"))): number for name, number in milliseconds.items()}
    waits = {"delivery_buckets": list(numbers), "delivery_counts": list(numbers.values()), "expired": expired}
    return MinimumTtbr(message_type=HOLD.message_type, ttbr_ms=HOLD.ttbr_ms, **waits)


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (seen(ms_300=1_000), []),
        (seen(ms_300=998, ms_4500=2), [("ttbr_conflict", "warning")]),
        (seen(ms_300=999, ms_4500=1), []),  # one in a thousand is allowed
        (seen(ms_300=990, expired=10), [("ttbr_conflict", "critical")]),
        (seen(ms_300=9, expired=10), []),  # too few for a share
    ],
)
def test_a_delay_below_the_ttbr_is_judged_by_what_was_seen(
    observed: MinimumTtbr, expected: list[tuple[str, str]]
) -> None:
    assert kinds(1_000, observed) == expected


def test_shares_and_the_largest_safe_delay_are_named() -> None:  # T16
    (found,) = peek_delay_rules.faults(Settings(2_000), [seen(ms_100=900, ms_3800=60, expired=40)])
    safe = peek_delay_rules.risks(Settings(2_000), [seen(ms_100=900, ms_3800=60, expired=40)])[0].safe_ms
    assert safe is not None
    assert safe == pytest.approx(1_162, abs=80)
    assert found.sentence.replace("\u00a0", " ") == (
        "StockHold expires after 5 s (its time to be received), and the peek delay is 2 s; "
        "of 1,000 in 7 days: 4 % lost, 6 % at risk. "
        "“At risk” means: arrived in time, but would have expired with one more peek delay. "
        f"The largest safe delay is {safe / 1000} s: set peek delay (QueuePeeker.Delay) to that or less."
    )


def test_where_every_message_is_lost_the_share_is_said_in_full() -> None:
    (found,) = peek_delay_rules.faults(Settings(200), [seen(ms_100=1, expired=999)])
    assert "of 1,000 in 7 days: 99.9 % lost, 0 % at risk" in found.sentence.replace("\u00a0", " ")
    (found,) = peek_delay_rules.faults(Settings(200), [seen(expired=1_000)])
    assert "of 1,000 in 7 days: 100 % lost, 0 % at risk" in found.sentence.replace("\u00a0", " ")


def test_where_no_delay_is_short_enough_the_cure_is_another() -> None:
    (found,) = peek_delay_rules.faults(Settings(200), [seen(ms_4990=1_000)])
    assert "No peek delay makes up for it: raise concurrency, or give StockHold a longer time" in found.sentence
