"""The import contract of DESIGN, and modules that must never be loaded in certain processes."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
WITHOUT_DJANGO = ["transport", "dialects", "archive", "lease", "outbox", "monitor", "embedded", "osproc", "formatting"]


def test_the_pictures_of_imports_are_the_contracts() -> None:
    drawn = re.findall(
        r"```\n([^`]*→[^`]*)```", (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    )
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    ruled = [" → ".join(map(_there, rule["layers"])) for rule in rules if rule["type"] == "layers"]
    assert [" ".join(picture.split()) for picture in drawn] == ruled


def _there(layer: str) -> str:
    """The layer without its planned rooms, which are in brackets."""
    return " | ".join(room for room in layer.split(" | ") if not room.startswith("("))


_BLOCK = """
import importlib, pkgutil, sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "django":
            raise ImportError(f"{name} must not be imported here")
sys.meta_path.insert(0, Blocker())
room = importlib.import_module("pgqueue_admin." + sys.argv[1])
for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
    importlib.import_module(module.name)
"""


def python(program: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_imports_point_down_only() -> None:
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([linter, "--no-cache"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_no_modules_import_each_other() -> None:
    """Cycles of any length count, also those of type-only imports."""
    house = grimp.build_graph("pgqueue_admin")
    imported = {module: house.find_modules_directly_imported_by(module) for module in house.modules}
    TopologicalSorter(imported).prepare()  # raises CycleError, which names the modules


@pytest.mark.parametrize("room", WITHOUT_DJANGO)
def test_every_module_of_the_room_imports_with_django_blocked(room: str) -> None:
    assert importlib.util.find_spec(f"pgqueue_admin.{room}")
    python(_BLOCK, room)


def test_importing_the_package_starts_nothing_and_loads_nothing() -> None:
    program = "import sys, threading; before = set(sys.modules); import pgqueue_admin; "
    loaded = python(program + "print(sorted(set(sys.modules) - before), threading.active_count())")
    assert loaded.strip() == "['pgqueue_admin'] 1"


@pytest.mark.parametrize(
    ("settings", "loaded"),
    [
        ("web_settings", "config.asgi config.urls console.trends.views console.history.messages console.history.views"),
        (
            "base_settings",
            "management.commands.worker management.commands.sampler "
            "workers.processes.endpoint_process workers.processes.history_process",
        ),
        ("settings", "management.commands.alerter alerts.alerter"),
        ("settings", "config.celery housekeeping.tasks"),
    ],
    ids=["web", "worker", "alerter", "celery"],
)
def test_spark_is_loaded_by_nobody_but_its_driver(settings: str, loaded: str) -> None:
    """Not even the driver process loads it before there is a batch: it is our largest dependency."""
    program = """
import sys, importlib, django
django.setup()
for name in sys.argv[1].split():
    importlib.import_module(f"pgqueue_admin.{name}")
print([name for name in ("pyspark", "py4j", "pyarrow", "pandas", "adbc_driver_postgresql") if name in sys.modules])
"""
    assert python(program, loaded, DJANGO_SETTINGS_MODULE=f"pgqueue_admin.config.{settings}").strip() == "[]"


def test_an_engine_child_has_no_celery_and_no_web() -> None:
    """Checked for the settings, apps, handlers and commands that `manage.py worker` loads."""
    program = """
import sys, django, importlib
django.setup()
for name in ("worker", "ingester", "sampler"):
    importlib.import_module(f"pgqueue_admin.management.commands.{name}")
unwanted = ("celery", "kombu", "django_celery_beat", "django_celery_results", "uvicorn", "django.contrib.admin")
print([name for name in unwanted if name in sys.modules])
"""
    settings = "pgqueue_admin.config.base_settings"
    assert python(program, DJANGO_SETTINGS_MODULE=settings).strip() == "[]"
