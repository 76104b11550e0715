"""Each CI step names the rooms of its tests, because collecting all is slow; no test lies outside of them."""

import importlib.util
import subprocess
import sys
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


def test_the_image_is_built_where_it_is_asked_for(steps: ModuleType) -> None:
    """The build takes minutes and needs a network with Debian packages."""
    (image,) = (step for step in steps.STEPS if step.name not in steps.BY_ITSELF)
    assert (image.name, image.command, image.needs) == ("image", "scripts/image.sh", "buildah")
    assert "pytest.mark.image" in (ROOT / "tests/installation/test_image.py").read_text(encoding="utf-8")
    assert "-m image tests/installation/test_image.py" in (ROOT / "scripts/image.sh").read_text(encoding="utf-8")


def test_each_room_is_in_one_of_the_two_runs_or_all_marked(steps: ModuleType) -> None:
    runs = [subprocess.check_output(["make", "-n", name], cwd=ROOT, text=True) for name in ("test", "test-slow")]
    (quick, slow) = ({word for word in said.split() if word.startswith("tests/")} for said in runs)
    rooms = {f"tests/{path.parent.name}" for path in (ROOT / "tests").glob("*/test_*.py")}
    assert not quick & slow
    assert rooms - quick - slow == {"tests/journeys", "tests/installation"}
    for room in ("journeys", "installation"):
        files = (ROOT / "tests" / room).glob("test_*.py")
        assert all("pytest.mark." in path.read_text(encoding="utf-8") for path in files)
    assert {"make test", "make test-slow"} <= {step.command for step in steps.STEPS}


def test_step_beside_others_is_reported_before_a_step_alone(
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


def test_bytecode_is_kept_for_the_next_process(
    steps: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the image disables bytecode: for a step, and for commands that make runs."""
    monkeypatch.setattr(steps, "RESULTS", tmp_path)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (outcome,) = steps.run_all([steps.Step("probe", 'test -z "$PYTHONDONTWRITEBYTECODE"')])
    assert outcome.why == ""
    probe = tmp_path / "Makefile"
    probe.write_text('probe:\n\t@test -z "$$PYTHONDONTWRITEBYTECODE"\n')
    assert subprocess.call(["make", "-f", "Makefile", "-f", str(probe), "probe"], cwd=ROOT) == 0


def test_the_browser_without_windows_is_taken_before_the_whole_one(
    steps: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The full browser takes more than twice the CPU time for the same pages; it is the fallback."""
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("chromium", "chromium-headless-shell"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert steps.chromium() == {"CHROMIUM": str(tmp_path / name)}


def test_steps_share_prepared_files_that_do_not_outlive_the_run(
    steps: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "RESULTS", tmp_path / "ci")
    monkeypatch.setattr(steps, "PREPARED", tmp_path / "ci/prepared")
    writes = 'mkdir -p "$PGQUEUE_TEST_PREPARED" && echo >> "$PGQUEUE_TEST_PREPARED/here"'
    seen = f'{writes} && wc -l < "$PGQUEUE_TEST_PREPARED/here" >> {tmp_path}/seen'
    tried = [steps.Step(name, seen, is_pytest=True) for name in ("one", "other")]
    monkeypatch.setattr(steps, "STEPS", tried)
    monkeypatch.setattr(sys, "argv", ["steps.py", "one", "other"])
    assert steps.main() == 0
    assert (tmp_path / "seen").read_text().split() == ["1", "2"]
    assert not (tmp_path / "ci/prepared").exists()
