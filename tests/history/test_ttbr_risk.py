"""Lost, at risk, and the largest safe delay: from counts written out (T16)."""

import pytest

from pgqueue_admin.history.anomalies.ttbr_risk import QueueWaits
from pgqueue_admin.history.rollups.histogram import bucket

TTBR = 5_000


def waits(expired: int = 0, **milliseconds: int) -> QueueWaits:
    """``ms_300=2``: two messages waited 300 ms."""
    return QueueWaits({bucket(int(name.removeprefix("ms_"))): number for name, number in milliseconds.items()}, expired)


def test_expired_and_late_messages_are_lost() -> None:
    assert waits(ms_100=90, ms_6000=4, expired=6).lost(TTBR) == pytest.approx(0.10)


def test_messages_lost_with_one_more_peek_delay_are_at_risk() -> None:
    seen = waits(ms_100=90, ms_4300=7, ms_6000=3)
    assert seen.at_risk(TTBR, delay_ms=1_000) == pytest.approx(0.07)
    assert seen.at_risk(TTBR, delay_ms=500) == 0
    assert seen.at_risk(TTBR, delay_ms=6_000) == pytest.approx(0.97)


def test_wait_equal_to_the_ttbr_is_in_time() -> None:
    assert waits(ms_5000=10).lost(TTBR) == 0
    assert waits(ms_0=5, ms_10=5).at_risk(TTBR, delay_ms=6_000) == 1
    assert waits(ms_0=5, ms_10=5).at_risk(TTBR, delay_ms=4_000) == 0


@pytest.mark.parametrize(("longest", "safe"), [(1_000, 3_990), (4_800, 152), (5_000, None)])
def test_the_largest_safe_delay_leaves_999_in_1000_in_time(longest: int, safe: int | None) -> None:
    """As exact as the buckets: one per cent of the waits, on the safe side."""
    found = waits(ms_10=1_000, **{f"ms_{longest}": 100}).safe_delay_ms(TTBR)
    assert (found is None) == (safe is None)
    if found is not None and safe is not None:
        assert found == pytest.approx(safe, abs=longest * 0.021)
        assert found + longest <= TTBR


def test_safe_delay_ignores_one_wait_in_a_thousand() -> None:
    assert waits(ms_10=999, ms_9000=1).safe_delay_ms(TTBR) == pytest.approx(4_990, abs=1)


def test_with_the_safe_delay_next_to_nothing_is_at_risk() -> None:
    seen = waits(ms_10=500, ms_700=450, ms_2600=50)
    safe = seen.safe_delay_ms(TTBR)
    assert safe is not None
    assert seen.at_risk(TTBR, safe) == 0
    assert seen.at_risk(TTBR, safe + 200) == pytest.approx(0.05)


def test_no_waits_lose_nothing_and_leave_the_whole_ttbr() -> None:
    assert (waits().lost(TTBR), waits().at_risk(TTBR, 9_000), waits().safe_delay_ms(TTBR)) == (0, 0, TTBR)
