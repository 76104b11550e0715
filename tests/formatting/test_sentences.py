"""The wording of figures, durations, times and names (CONSOLE section 6)."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pgqueue_admin.formatting import anomaly, durations, names, numbers, times

NBSP = "\u00a0"
VIENNA = ZoneInfo("Europe/Vienna")
NOW = datetime(2026, 11, 20, 2, 12, 44, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "how", "said"),
    [
        (2318, "counted", "2,318"),
        (10_000, "capped", "10,000+"),
        (1_200_000, "estimate", "≈ 1.2 M"),
        (64, "hint", "≈ 64"),
        (52_000, "about-least", "≈ 52,000+"),
        (2_147_483_647, "counted", "2.1 G"),
        (99_999_999, "counted", "99,999,999"),
        (None, "counted", "–"),
        (0, "counted", "0"),
    ],
)
def test_a_figure_says_how_it_is_known(value: int | None, how: str, said: str) -> None:
    assert numbers.format_figure(value, how) == said.replace(" ", NBSP)


@pytest.mark.parametrize(
    ("parts", "how"),
    [
        ([], "counted"),
        (["counted", "counted"], "counted"),
        (["counted", "capped"], "capped"),
        (["counted", "estimate"], "estimate"),
        (["capped", "estimate"], "about-least"),
        (["about-least", "counted"], "about-least"),
    ],
)
def test_a_sum_is_known_as_its_parts_are(parts: list[str], how: str) -> None:
    assert numbers.of_sum(parts) == how


@given(st.integers(0, 99_999_999))
def test_a_counted_figure_is_the_number_itself(value: int) -> None:
    assert int(numbers.format_figure(value).replace(",", "")) == value


@given(st.integers(0, 10**15), st.sampled_from(["estimate", "hint"]))
def test_estimate_is_never_shown_as_counted(value: int, how: str) -> None:
    assert numbers.format_figure(value, how).startswith("≈")


@pytest.mark.parametrize(
    ("per_second", "said"),
    [
        (24, "24 /s"), (8.3, "8.3 /s"), (398, "400 /s"), (0.683, "41 /min"), (3 / 3600, "3 /h"), (0, "0 /s"),
        (-0.5, "0 /s"), (None, "–"), (12_345, "12,000 /s"), (0.99999, "60 /min"),
    ],
)  # fmt: skip
def test_rates_have_two_digits_and_the_unit_that_fits(per_second: float | None, said: str) -> None:
    assert str(numbers.rate(per_second)) == said.replace(" ", NBSP)


@given(st.floats(1 / 3600, 1e6))
def test_a_rate_is_within_a_twentieth_of_the_truth(per_second: float) -> None:
    said = numbers.rate(per_second)
    times_ = {"/s": 1, "/min": 60, "/h": 3600}[said.unit]
    assert float(said.number.replace(",", "")) / times_ == pytest.approx(per_second, rel=0.06)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1200, "1.2 kB"),
        (38_000_000, "38 MB"),
        (999_999, "1 MB"),
    ],
)
def test_sizes_count_in_thousands(count: int, said: str) -> None:
    assert numbers.size(count) == said.replace(" ", NBSP)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.38, "380 ms"), (3, "3.0 s"), (11.4, "11 s"), (105, "1 min 45 s"), (13_260, "3 h 41 min"), (0, "0 s"),
        (532_800, "6 d 4 h"), (1500, "25 min"), (59.7, "1 min"), (0.9999, "1.0 s"), (-5, "−5.0 s"), (-0.0003, "0 ms"),
        (None, "–"), (86_400 * 800_000, "800,000 d"),
    ],
)  # fmt: skip
def test_a_duration_has_its_largest_two_units(seconds: float | None, said: str) -> None:
    assert durations.duration(seconds) == said.replace(" ", NBSP)


def test_a_setting_has_no_idle_decimal() -> None:
    assert (durations.plain(1), durations.plain(0.1)) == (f"1{NBSP}s", f"100{NBSP}ms")


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (0, "< 1 ms"), (0.4, "< 1 ms"), (0.99, "1 ms"), (12.4, "12 ms"), (999.4, "999 ms"), (999.6, "1 s"),
        (1_332.7, "1.33 s"), (9_960, "9.96 s"), (59_940, "59.9 s"), (59_960, "1 min"), (94_900, "1 min 35 s"),
        (5_000_000, "1 h 23 min"), (172_800_000, "2 d"),
    ],
)  # fmt: skip
def test_rounded_duration_is_shown_as_its_nearest_value(milliseconds: float, said: str) -> None:
    assert durations.measured(milliseconds) == said.replace(" ", NBSP)
    assert durations.measured(durations.nearest(milliseconds)) == durations.measured(milliseconds)


@given(st.floats(60, 59_000))
def test_measured_duration_is_rounded_within_one_per_cent(milliseconds: float) -> None:
    assert durations.nearest(milliseconds) == pytest.approx(milliseconds, rel=0.01)


def test_a_band_that_reaches_down_to_nothing_has_one_end() -> None:
    assert anomaly.between(0, 21_000) == f"up to ≈{NBSP}21{NBSP}s"
    assert anomaly.between(1_332, 2_000) == f"≈{NBSP}1.33{NBSP}s to ≈{NBSP}2{NBSP}s"
    assert anomaly.span(0) == f"<{NBSP}1{NBSP}ms"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (None, "–"), (0, "0 %"), (1 / 30_000, "< 0.01 %"), (0.0001, "0.01 %"), (0.04, "4 %"), (1 / 3, "33.33 %"),
        (0.996, "99.6 %"), (0.9999, "99.99 %"), (29_999 / 30_000, "> 99.99 %"), (1, "100 %"), (0.123456, "12.35 %"),
    ],
)  # fmt: skip
def test_a_share_is_never_none_of_some_and_never_all_of_most(part: float | None, said: str) -> None:
    assert numbers.share(part) == said.replace(" ", NBSP)


_SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86_400}


@given(st.floats(0.001, 1e9))
def test_a_duration_is_never_off_by_more_than_its_smallest_unit(seconds: float) -> None:
    parts = durations.duration(seconds).replace(",", "").split(NBSP)
    said = sum(float(number) * _SECONDS[unit] for number, unit in zip(parts[::2], parts[1::2], strict=True))
    smallest = {"d": 86_400, "h": 3600, "min": 60, "s": 1, "ms": 0.001}[parts[-1]]
    # "1 h" may stand for anything below "1 h 1 min": the omitted unit is the next smaller one
    assert abs(said - seconds) <= smallest
    assert len(parts) <= 4


def test_times_are_short_when_near_and_dated_when_far() -> None:
    assert times.short(NOW - timedelta(minutes=25), NOW, VIENNA) == "02:47"
    assert times.short(NOW - timedelta(days=2), NOW, VIENNA) == "18 Nov 03:12"
    assert times.short(NOW - timedelta(days=400), NOW, VIENNA) == "2025-10-16"
    assert times.full(NOW, VIENNA) == "Fri 20 Nov 2026 03:12:44 CET"
    assert times.sentence(NOW, VIENNA) == "20 Nov 2026 03:12 CET"
    assert times.iso(NOW.astimezone(VIENNA)) == "2026-11-20T02:12:44Z"
    assert times.precise(NOW, VIENNA) == "03:12:44.000"


def test_relative_times() -> None:
    assert times.ago(NOW - timedelta(seconds=12.7), NOW) == f"12{NBSP}s ago"
    assert times.ago(NOW + timedelta(minutes=3), NOW) == f"in 3{NBSP}min"
    assert times.ago(NOW, NOW) == "now"


@example(datetime(1, 1, 1, tzinfo=UTC), "Pacific/Pago_Pago")
@example(datetime(9999, 12, 31, 23, tzinfo=UTC), "Europe/Vienna")
@given(
    st.datetimes(timezones=st.just(UTC)),
    st.sampled_from(["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"]),
)
def test_no_instant_breaks_a_page(instant: datetime, zone: str) -> None:
    for say in (
        lambda: times.short(instant, NOW, ZoneInfo(zone)),
        lambda: times.full(instant, ZoneInfo(zone)),
        lambda: instant.astimezone(times.zone(zone)),
    ):
        assert say()
    assert times.iso(instant)
    assert times.ago(instant, NOW)


@given(st.text())
def test_a_broken_name_is_still_the_name(name: str) -> None:
    assert "".join(names.pieces(name)) == name


def test_names_break_where_a_reader_would() -> None:
    assert names.pieces("Shop.Billing_ChargeCard") == [
        "Shop.",
        "Billing_",
        "Charge",
        "Card",
    ]


def test_lists_end_in_a_count() -> None:
    assert names.listed(["Billing"]) == "Billing"
    assert names.listed(["Billing", "Shipping"]) == "Billing and Shipping"
    assert names.listed(list("abcdef")) == "a, b, c and 3 more"
