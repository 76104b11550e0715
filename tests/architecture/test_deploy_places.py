"""Files and settings named by units, image and compose file exist, and have the same name everywhere."""

import re
import shlex
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class

from pgqueue_admin.workers.supervisor.supervisor import TICK
from tests.architecture.test_deploy import COMPOSE, NAMES, ROOT, UNITS, unit

SERVICES = COMPOSE["services"]
DOCS = (ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8")
IMAGE = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
SUPERVISOR = unit(ROOT / "deploy/systemd/pgqueue-supervisor.service")
WEB = unit(ROOT / "deploy/systemd/pgqueue-web.service")
PROGRAMS = [*NAMES, "setup"]  # the services that run our code
each_unit = pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)


def check_managed(words: list[str]) -> None:
    """Raises as ``manage.py`` would for an unknown command or option."""
    command = load_command_class(get_commands()[words[0]], words[0])
    command.create_parser("manage.py", words[0]).parse_args(words[1:])


def in_environment(path: Path) -> dict[str, str]:
    return dict(value.split("=", 1) for value in unit(path)["Environment"])


def in_image(name: str) -> list[str]:
    """The arguments of this Dockerfile instruction, line by line."""
    return re.findall(rf"^{name} (.*)$", IMAGE, re.MULTILINE)


@each_unit
def test_a_unit_stands_where_the_steps_put_things(path: Path) -> None:
    found, installed = unit(path), re.search(r"They expect the project in `(\S+)` with its `\.venv`", DOCS)
    assert installed is not None
    assert found["WorkingDirectory"] == [installed[1]]
    assert found["Documentation"] == [f"file://{installed[1]}/docs/how-to/deploy.md"]
    for started in found["ExecStart"] + found.get("ExecStartPre", []):
        assert started.startswith(f"{installed[1]}/.venv/bin/python ")
    (given,) = found["EnvironmentFile"]
    assert f"deploy/systemd/environment.example {given} " in DOCS
    assert f". {given};" in DOCS
    assert found["WantedBy"] == ["multi-user.target"], "or it is not started with the host"


@each_unit
def test_a_unit_writes_in_the_state_folder_of_its_user(path: Path) -> None:
    found = unit(path)
    (folder,), (user,) = found["StateDirectory"], found["User"]
    assert in_environment(path)["PGQUEUE_STATE_DIR"] == f"/var/lib/{folder}"
    assert re.search(rf"useradd .*--home-dir /var/lib/{folder} .*{user}$", DOCS, re.MULTILINE)


@each_unit
def test_a_unit_comes_back_and_reaches_its_servers(path: Path) -> None:
    found = unit(path)
    assert found["Restart"] == ["always"]
    families = set(found["RestrictAddressFamilies"][0].split())
    assert families == {"AF_INET", "AF_INET6", "AF_UNIX"}, "AF_UNIX: for a database on this host, and for READY"


def test_the_watchdog_hears_the_supervisor_and_is_patient() -> None:
    assert SUPERVISOR["NotifyAccess"] == ["main"]
    assert float(SUPERVISOR["WatchdogSec"][0]) >= 20 * TICK


def test_the_static_files_are_there_before_the_console() -> None:
    (before,) = WEB["ExecStartPre"]
    check_managed(words := shlex.split(before)[2:])
    assert words[0] == "collectstatic"


def test_the_example_has_what_a_deployment_sets() -> None:
    (block,) = re.findall(r"```\n(SECRET_KEY=.*?)```", DOCS, re.DOTALL)
    example = (ROOT / "deploy/systemd/environment.example").read_text(encoding="utf-8")
    assert set(re.findall(r"([A-Z_]+)=", block)) <= set(re.findall(r"^([A-Z_]+)=$", example, re.MULTILINE))


def test_the_image_has_all_that_is_read() -> None:
    copied = [name for line in in_image("COPY") for name in line.split()[:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    asked = {"manage.py", "pgqueue_admin", Path(settings.STATICFILES_DIRS[0]).name}
    asked |= {Path(folder).name for engine in settings.TEMPLATES for folder in engine["DIRS"]}  # type: ignore[attr-defined]
    asked |= set(re.findall(r"-[rc] (\S+)", " ".join(in_image("RUN"))))
    assert asked == set(copied)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {name for name in copied if f"!{name}" not in ignored} == set(), "what is ignored cannot be copied"


def test_the_image_has_a_python_that_is_asked_for() -> None:
    (python,) = in_image("FROM")
    asked = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    given = re.fullmatch(r"python:3\.(\d+)-slim", python)
    assert asked is not None
    assert given is not None
    assert int(given[1]) >= int(asked[1])


def test_containers_keep_their_state_where_the_image_writes_it() -> None:
    made = re.search(r"install -d -o \d+ -g 0 -m 770 (\S+)$", IMAGE, re.MULTILINE)
    var = re.search(r"PGQUEUE_STATE_DIR=(\S+)", " ".join(in_image("ENV")))
    assert made is not None
    assert var is not None
    assert made[1] == var[1], "a fresh volume takes the owner of the folder that it covers"
    assert {tuple(SERVICES[name]["volumes"]) for name in PROGRAMS} == {(f"state:{var[1]}",)}
    newest = int(SERVICES["postgres"]["image"].removeprefix("postgres:"))
    assert newest >= 18, "older images keep their data one folder deeper"
    assert SERVICES["postgres"]["volumes"][0] == "postgres:/var/lib/postgresql"


def test_containers_may_write_nowhere_else() -> None:
    for name in PROGRAMS:
        service = SERVICES[name]
        assert service["read_only"] is True
        assert (service["tmpfs"], service["cap_drop"]) == (["/tmp"], ["ALL"])
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_containers_reach_the_servers_beside_them() -> None:
    script = (ROOT / "deploy/postgres/role.sql").read_text(encoding="utf-8")
    (made,) = re.findall(r"^create database (\w+) owner (\w+);$", script, re.MULTILINE)
    for name in PROGRAMS:
        given = SERVICES[name]["environment"]
        own = re.fullmatch(r"\$\{QUEUES_URL:-(\S+)\}", given["QUEUES_URL"])
        assert own is not None
        for url in (re.sub(r":\?[^}]*", "", given["DATABASE_URL"]), own[1]):
            at = urlsplit(url.replace("${POSTGRES_PASSWORD}", "secret"))
            assert (at.hostname, at.port, at.path) == ("postgres", 5432, f"/{made[0]}")
            assert at.username == made[1]
        broker = urlsplit(re.sub(r":\?[^}]*", "", given["CELERY_BROKER_URL"]))
        assert (broker.scheme, broker.hostname, broker.port) == ("redis", "valkey", 6379)
    asked = SERVICES["postgres"]["healthcheck"]["test"]
    assert asked == ["CMD", "pg_isready", "-h", "127.0.0.1", "-U", made[1], "-d", made[0]]


def test_containers_start_in_order_and_come_back() -> None:
    for name in NAMES:
        conditions = {other: asked["condition"] for other, asked in SERVICES[name]["depends_on"].items()}
        assert conditions == {"setup": "service_completed_successfully", "valkey": "service_healthy"}
    assert SERVICES["setup"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert {name: service["restart"] for name, service in SERVICES.items()} == {
        **dict.fromkeys(SERVICES, "unless-stopped"),
        "setup": "no",
    }


def test_the_set_up_runs_the_steps_of_the_documentation() -> None:
    shell, option, script = SERVICES["setup"]["command"]
    assert (shell, option) == ("sh", "-c")
    steps = [shlex.split(step) for step in script.split(" && ")]
    for step in steps:
        assert step[:2] == ["python", "manage.py"]
        check_managed(step[2:])
    documented = re.findall(r"^\.venv/bin/python manage\.py (\w+)", DOCS, re.MULTILINE)
    assert [step[2] for step in steps] == [name for name in documented if name != "createsuperuser"]


def test_an_upgrade_brings_both_kinds_of_tables_up_to_date() -> None:
    upgrade = (ROOT / "docs/how-to/upgrade.md").read_text(encoding="utf-8")
    assert {"`manage.py migrate`", "`manage.py engine_schema`"} <= set(re.findall(r"`[^`]+`", upgrade))


def test_the_console_finds_logs_and_is_found() -> None:
    web = SERVICES["web"]
    assert web["environment"]["PGQUEUE_HOST"] == SERVICES["supervisor"]["hostname"]
    command = web["command"]
    assert command[command.index("--host") + 1] == "0.0.0.0", "127.0.0.1 in a container is the container alone"
    (published,) = web["ports"]
    assert fnmatch(published, f"127.0.0.1:*:{command[command.index('--port') + 1]}")
    (local,) = re.findall(r"\$\{PUBLIC_URL:-http://(\S+)\}", web["environment"]["PUBLIC_URL"])
    assert published.rpartition(":")[0] == local
    (start,) = WEB["ExecStart"]
    assert "--host 127.0.0.1 --port 8000" in start, "the proxy's TLS comes first"


def test_the_user_of_the_image_is_a_number_and_owns_its_state() -> None:
    """Kubernetes' runAsNonRoot refuses a user name; the number is the uid of the account created."""
    (made,) = re.findall(r"useradd --uid (\d+) --gid (\d+) --home-dir (\S+) --no-create-home", IMAGE)
    assert f"install -d -o {made[0]} -g 0 -m 770 {made[2]}\n" in IMAGE
    assert in_image("USER") == [f"{made[0]}:{made[1]}"]
    assert int(made[0]) >= 10_000, "no account of a host"
    assert f"PGQUEUE_STATE_DIR={made[2]} " in in_image("ENV")[0]
