"""What pip installs: the engine alone and the console, each in an environment that holds nothing else."""

import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import pgqueue_admin
from pgqueue_admin.embedded import ports
from tests.waiting import until

pytestmark = pytest.mark.fresh
ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "console": "requirements.txt",
    "embedded": "requirements-embedded.txt",
    "history": "requirements-history.txt",
    "mysql": "requirements-mysql.txt",
    "sqlserver": "requirements-sqlserver.txt",
}
ENGINE = {"psycopg", "orjson"}
BROUGHT_BY_THEM = {"psycopg-binary", "typing-extensions"}
WITHOUT_CONSOLE = ["transport", "dialects", "archive", "monitor", "formatting", "osproc", "embedded", "lease", "outbox"]
IMPORT_ALL = """
import importlib, pkgutil, sys
for room in sys.argv[1:]:
    package = importlib.import_module(f"pgqueue_admin.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        # these drivers are extras, and what reads cron expressions comes with the console, which plans schedules
        room = module.name.removeprefix("pgqueue_admin.")
        if not room.startswith(("dialects.mysql.", "dialects.sqlserver.", "lease.schedules.")):
            importlib.import_module(module.name)
"""
INSTALLED = "from importlib.metadata import distributions; print(*(each.name for each in distributions()))"


def pip(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Environment:
    """A virtual environment without pip, and a home and working folder far from the project."""

    def __init__(self, folder: Path, wheel: Path, extras: str = ""):
        self.home, self._bin = folder / "home", folder / "venv/bin"
        self.home.mkdir()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self._bin.parent], check=True)
        pinned = ("--constraint", str(ROOT / "constraints.txt"))
        pip("--python", str(self._bin / "python"), "install", *pinned, f"{wheel}{extras}")

    @contextmanager
    def running(self, *command: str, **variables: str) -> Iterator["subprocess.Popen[str]"]:
        environment = {"PATH": f"{self._bin}:/usr/bin:/bin", "HOME": str(self.home), **variables}
        words = [str(self._bin / command[0]), *command[1:]]
        with subprocess.Popen(
            words, cwd=self.home, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *command: str, **variables: str) -> str:
        code, said = self.ended(*command, **variables)
        assert code == 0, said
        return said

    def ended(self, *command: str, **variables: str) -> tuple[int, str]:
        with self.running(*command, **variables) as process:
            said, _ = process.communicate(timeout=120)
        return process.returncode, said


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("bare"), wheel)


@pytest.fixture(scope="module")
def console(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("console"), wheel, "[console]")


def test_the_wheel_has_every_file_of_the_product(wheel: Path) -> None:
    places = {"pgqueue_admin": "", "templates": "pgqueue_admin", "static": "pgqueue_admin"}
    there = {
        str(Path(inside) / path.relative_to(ROOT))
        for folder, inside in places.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == there
    assert {"pgqueue_admin/py.typed", "pgqueue_admin/templates/admin/base_site.html"} < packed


def test_the_extras_are_what_the_files_pin(wheel: Path) -> None:
    found = described(wheel)
    assert found.metadata["License-Expression"] == "BSD-3-Clause"
    assert found.version == pgqueue_admin.__version__
    assert set(found.metadata.get_all("Provides-Extra") or []) == set(FILES)
    wanted = [Requirement(each) for each in found.requires or []]
    pins = {(extra, *named(pin)): pin for extra, file in FILES.items() for pin in pinned(file)}
    asked = {(extra_of(each), *named(each)): each for each in wanted}
    assert asked.keys() == pins.keys()
    for key, pin in pins.items():
        (version,) = (each.version for each in pin.specifier)
        assert asked[key].specifier.contains(version)
        assert not asked[key].specifier.contains(f"{int(re.match(r'[0-9]+', version)[0]) + 1}.0")  # type: ignore[index]


def described(wheel: Path) -> metadata.Distribution:
    (folder,) = (each for each in zipfile.Path(wheel).iterdir() if each.name.endswith(".dist-info"))
    return metadata.PathDistribution(folder)


def pinned(file: str) -> list[Requirement]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def named(asked: Requirement) -> tuple[str, ...]:
    return canonicalize_name(asked.name), *asked.extras


def extra_of(asked: Requirement) -> str:
    """The extra that brings it. Requirements without one are the engine's; pinned with the console."""
    for extra in FILES:
        if asked.marker and asked.marker.evaluate({"extra": extra}):
            return extra
    assert asked.name in ENGINE
    return "console"


def test_bare_is_the_engine_and_what_it_needs(bare: Environment) -> None:
    installed = {canonicalize_name(name) for name in bare.run("python", "-c", INSTALLED).split()}
    assert installed == {"pgqueue-admin"} | ENGINE | BROUGHT_BY_THEM


def test_every_module_of_the_engine_imports_with_nothing_else(bare: Environment) -> None:
    bare.run("python", "-c", IMPORT_ALL, *WITHOUT_CONSOLE)


@pytest.mark.parametrize(
    ("scheme", "driver", "extra"), [("mysql", "pymysql", "mysql"), ("mssql", "pytds", "sqlserver")]
)
def test_the_driver_of_another_database_is_said(bare: Environment, scheme: str, driver: str, extra: str) -> None:
    asked = f"from pgqueue_admin.dialects import dialect_for; dialect_for('{scheme}://host/db')"
    code, said = bare.ended("python", "-c", asked)
    assert code == 1
    assert said.endswith(f"DriverMissing: {driver} is not installed: pip install 'pgqueue-admin[{extra}]'\n")


def test_the_ten_lines_run_with_nothing_else(bare: Environment, database: str) -> None:
    with bare.running("python", str(ROOT / "examples/ten_lines.py"), database) as process:
        assert process.stdout
        assert process.stdout.readline() == "placed 42\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("", None)
        assert process.returncode == 0


def test_the_engine_alone_says_what_its_command_needs(bare: Environment) -> None:
    code, said = bare.ended("pgqueue-admin", "check")
    assert code == 1
    assert said == "The console is not installed, only the engine: pip install 'pgqueue-admin[console]'\n"


def test_the_console_is_served_from_where_it_was_installed(console: Environment, database: str) -> None:
    port = ports.free()
    url = f"http://127.0.0.1:{port}"
    given = {"DATABASE_URL": database, "PUBLIC_URL": url, "SECRET_KEY": "of this test, " * 6}
    given |= {"ENVIRONMENT": "test", "EMAIL_URL": "smtp://localhost:25", "PGQUEUE_ALERT_TO": "me@example.org"}
    assert "no issues" in console.run("pgqueue-admin", "check", **given)
    console.run("pgqueue-admin", "migrate", **given)
    console.run("pgqueue-admin", "engine_schema", **given)
    assert "another file" not in console.run("pgqueue-admin", "collectstatic", "--noinput", **given)
    assert (console.home / ".local/state/pgqueue-admin/static/staticfiles.json").exists()
    serve = ("-m", "uvicorn", "pgqueue_admin.config.asgi:application", "--port", str(port), "--lifespan", "off")
    with console.running("python", *serve, **given), httpx.Client(base_url=url) as browser:
        until(lambda: ports.answers(port), what="the console listens")
        assert browser.get("/healthz").text == "alive\n"
        page = browser.get("/", follow_redirects=True)
        assert page.status_code == 200
        assert 'name="password"' in page.text
        (style,) = re.findall(r'href="([^"]+\.css)"', page.text)
        assert browser.get(style).status_code == 200
        admin = browser.get("/admin/login/", follow_redirects=True)
        assert admin.status_code == 200
