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


def test_one_that_runs_beside_others_is_judged_and_heard_before_one_that_runs_alone(
    steps: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steps, "RESULTS", tmp_path)
    gate = tmp_path / "gate"
    asked = [
        steps.Step("beside", f"until test -e {gate}; do :; done; echo heard; exit 3", runs="beside"),
        steps.Step("next", f"touch {gate}"),
        steps.Step("last", "true", runs="alone"),
    ]
    outcomes = list(steps.run_all(asked))
    assert [(each.step.name, each.why) for each in outcomes] == [("next", ""), ("beside", "exit code 3"), ("last", "")]
    said = capfd.readouterr().out
    assert said.index("what it printed\nheard\n") < said.index("=== last: true")
