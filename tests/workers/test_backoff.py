"""A crashed process waits longer each time, unless it had proven itself."""

from pgqueue_admin.workers.backoff import LONGEST, PROVEN, Backoff


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_wait_doubles_up_to_the_longest() -> None:
    backoff = Backoff(Clock())
    assert [backoff.crashed(ran=1) for _ in range(4)] == [0.5, 1, 2, 4]
    assert [backoff.crashed(ran=1) for _ in range(10)][-1] == LONGEST


def test_a_process_that_ran_well_crashes_for_the_first_time() -> None:
    backoff = Backoff(Clock())
    backoff.crashed(ran=1)
    backoff.crashed(ran=1)
    assert backoff.crashed(ran=PROVEN) == 0.5


def test_it_waits_until_its_time_or_until_a_person_says_now() -> None:
    clock = Clock()
    backoff = Backoff(clock)
    assert not backoff.waiting
    backoff.crashed(ran=1)
    assert backoff.waiting
    clock.now += 0.5
    assert not backoff.waiting
    backoff.crashed(ran=1)
    backoff.start_now()
    assert not backoff.waiting
    assert backoff.crashed(ran=1) == 2, "a person's start proves nothing"
