"""Our processes collect garbage once they have started, not while they start."""

import gc
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pgqueue_admin.osproc import gc_freeze

ROOT = Path(__file__).resolve().parents[2]
STARTS = """
import gc, json, django, pgqueue_admin.config
before = gc.get_stats()[0]["collections"]
django.setup()
print(json.dumps([gc.isenabled(), gc.get_freeze_count() > 50_000, gc.get_stats()[0]["collections"] - before]))
"""


@pytest.fixture
def fresh() -> Iterator[ModuleType]:
    """The module as freshly loaded in a new process."""
    spec = importlib.util.find_spec(gc_freeze.__name__)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    gc.enable()


def test_a_process_collects_nothing_before_it_is_ready() -> None:
    """However it is started: every program imports pgqueue_admin.config first."""
    collects, is_frozen, often = json.loads(subprocess.check_output([sys.executable, "-c", STARTS], cwd=ROOT))
    assert (collects, is_frozen) == (True, True)
    assert often < 20  # of more than two hundred: a few once it is ready


def test_where_it_was_switched_off_it_stays_so(fresh: ModuleType) -> None:
    gc.disable()
    fresh.begin()
    fresh.loaded()
    assert not gc.isenabled()


def test_collection_stays_on_after_a_second_begin(fresh: ModuleType) -> None:
    """Nothing would switch it on again."""
    fresh.begin()
    assert not gc.isenabled()
    fresh.loaded()
    assert gc.isenabled()
    fresh.begin()
    assert gc.isenabled()
