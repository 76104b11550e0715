"""A crashed process waits longer each time, unless it ran long enough before."""

from pgqueue_admin.workers.supervisor.backoff import LONGEST, PROVEN, Backoff


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def crashed(backoff: Backoff, clock: Clock, ran: float = 1.0) -> float:
    """Start the next process when allowed and let it crash after ``ran`` seconds; return its wait."""
    clock.now = max(clock.now, backoff.until) + ran
    return backoff.crashed(ran)


def test_the_wait_doubles_up_to_the_longest() -> None:
    backoff = Backoff(clock := Clock())
    assert [crashed(backoff, clock) for _ in range(4)] == [0.5, 1, 2, 4]
    assert [crashed(backoff, clock) for _ in range(10)][-1] == LONGEST


def test_a_process_that_ran_well_crashes_for_the_first_time() -> None:
    backoff = Backoff(clock := Clock())
    crashed(backoff, clock)
    crashed(backoff, clock)
    assert crashed(backoff, clock, PROVEN) == 0.5


def test_processes_crashing_together_count_as_one_crash() -> None:
    backoff = Backoff(clock := Clock())
    for expected in (0.5, 1, 2):
        assert crashed(backoff, clock) == expected
        clock.now += 0.1
        assert [backoff.crashed(ran) for ran in (1.1, 1.0, 0.9)] == [expected] * 3
        assert backoff.until == clock.now + expected


def test_back_off_ends_at_its_time_or_by_start_now() -> None:
    backoff = Backoff(clock := Clock())
    assert not backoff.waiting
    crashed(backoff, clock)
    assert backoff.waiting
    clock.now += 0.5
    assert not backoff.waiting
    crashed(backoff, clock)
    backoff.start_now()
    assert not backoff.waiting
    assert crashed(backoff, clock) == 2, "a person's start proves nothing"
