"""Receivers are killed with -9, connections cut, the server restarted: only the mode that says so loses messages.

The long form, with its figures, is ``make bench-chaos``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.chaos_world import World, world

pytestmark = pytest.mark.chaos

QUICK = {"fsync": "off", "full_page_writes": "off"}  # the machine itself keeps running
DISTURBANCES = ["kill", "cut", "restart", "kill"]


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("chaos")
    with world(folder, QUICK) as made:
        yield made


@pytest.mark.parametrize(
    ("mode", "batch_size"),
    [("sends_atomic_with_receive", 1), ("sends_atomic_with_receive", 20), ("receive_only", 1), ("none", 1)],
)
def test_a_mode_keeps_its_promise(chaos, mode, batch_size):
    """Nothing lost, and sent once; receive_only may send twice, none may lose, and both are counted."""
    outcome = chaos.run(mode, 2_000, DISTURBANCES, processes=3, batch_size=batch_size)
    assert outcome.is_kept, outcome
    assert outcome.handled_again + outcome.lost >= outcome.kills, "each that was killed had a message in hand"


def test_two_instances_handle_each_message_once(chaos):
    outcome = chaos.run("sends_atomic_with_receive", 10_000, [], processes=2)
    assert (outcome.lost, outcome.dead, outcome.handled_again, outcome.sent_again) == (0, 0, 0, 0)
