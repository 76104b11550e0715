"""Within one per cent, however histograms are merged."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.history.rollups import histogram

Values = st.lists(st.integers(1, 10**9), min_size=1, max_size=200)


@given(st.lists(Values, min_size=1, max_size=5), st.sampled_from([0.5, 0.95, 0.99, 0.999]))
def test_merged_percentiles_are_within_one_per_cent(parts: list[list[int]], share: float) -> None:
    merged: Counter[int] = Counter()
    for part in parts:
        merged.update(Counter(map(histogram.bucket, part)))
    everything = sorted(value for part in parts for value in part)
    exact = everything[max(1, math.ceil(len(everything) * share)) - 1]
    assert histogram.percentile(merged, share) == pytest.approx(exact, rel=histogram.RELATIVE_ERROR + 1e-9)


def test_zero_and_less_have_a_bucket_of_their_own() -> None:
    assert histogram.percentile({histogram.bucket(0): 3, histogram.bucket(-5): 1}, 0.5) == 0


def test_percentile_of_an_empty_histogram_is_none() -> None:
    assert histogram.percentile({}, 0.5) is None
