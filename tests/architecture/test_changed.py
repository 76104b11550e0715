"""`make test-changed` maps each path to the folder of its tests."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def changed() -> ModuleType:
    spec = importlib.util.spec_from_file_location("changed", ROOT / "scripts/changed.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_room_of_the_package_has_its_tests(changed: ModuleType) -> None:
    rooms = [path.parent.name for path in (ROOT / "pgqueue_admin").glob("*/__init__.py")]
    assert {"transport", "migrations", "osproc"} <= set(rooms)
    assert [room for room in rooms if not changed.tests_of(f"pgqueue_admin/{room}/some.py")] == []


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("tests/archive/test_dead_messages.py", "tests/archive/test_dead_messages.py"),
        ("tests/archive/test_that_was_removed.py", "tests/archive"),
        ("tests/history/tables.py", "tests/history"),
        ("templates/pgqueue_admin/archive/page.html", "tests/console"),
        ("docs/reference/cli.md", "tests/docs"),
        (".ci/steps.py", "tests/architecture"),
        ("tests/journeys/product.py", None),
        ("LICENSE", None),
    ],
)
def test_a_place_is_answered_by_a_room_or_a_file(changed: ModuleType, path: str, tests: str | None) -> None:
    assert changed.tests_of(path) == tests
