"""How long the sampler rests between two turns."""

import pytest

from pgqueue_admin.workers.sampler.sampler_process import rest


@pytest.mark.parametrize(("spent", "rested"), [(0.2, 0.8), (0.5, 0.5), (3.0, 3.0), (22.0, 5.0)])
def test_a_turn_that_hung_is_not_rested_from_as_long_again(spent: float, rested: float) -> None:
    """The database stood still for 20 s: it was seen again 20 s after it was back."""
    assert rest(1.0, spent) == pytest.approx(rested)


def test_samples_that_are_wanted_seldom_stay_seldom() -> None:
    assert rest(10.0, 0.5) == pytest.approx(9.5)
