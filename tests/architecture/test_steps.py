"""Each step of CI names the rooms where its tests are, as collecting all takes long; none may lie elsewhere."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def steps() -> ModuleType:
    spec = importlib.util.spec_from_file_location("steps", ROOT / ".ci/steps.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("marker", ["journey", "spark", "chaos", "fresh"])
def test_a_marked_test_lies_in_a_room_of_its_step(steps: ModuleType, marker: str) -> None:
    (command,) = (step.command for step in steps.STEPS if f"-m {marker} " in step.command)
    rooms = [ROOT / word for word in command.split() if word.startswith("tests")]
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if f"pytest.mark.{marker}" in path.read_text()]
    assert marked
    assert [path for path in marked if not any(path.is_relative_to(room) for room in rooms)] == []
