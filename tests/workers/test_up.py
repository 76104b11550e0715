"""`make run` on real processes: started, healed, drained, and nothing left behind."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.product import ROOT, Product
from tests.waiting import until, within
from tests.workers.process_tree import answer, free_port, kill, listening, none_left, processes, the_one

pytestmark = pytest.mark.chaos
HEALED = 10  # seconds, issue 3


@contextmanager
def in_its_own_folder() -> Iterator[Product]:
    folder = Path(tempfile.mkdtemp(prefix="pgqueue-product-"))
    folder.chmod(0o755)  # like a project folder: PostgreSQL's account cannot enter pytest's own
    product = Product(folder / "var", free_port())
    yield product
    if product.process.poll() is None:
        product.stop()
    assert reset(product.var).returncode == 0
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def product() -> Iterator[Product]:
    """One for all tests that leave it running."""
    with in_its_own_folder() as product:
        product.start()
        until(lambda: answer(f"{product.url}/readyz") == 200, what="ready after the first start")
        yield product


@pytest.fixture
def fresh() -> Iterator[Product]:
    """Not started yet, for one test."""
    with in_its_own_folder() as product:
        yield product


def reset(var: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pgqueue_admin.embedded.reset", str(var)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def pid_of(product: Product, name: str) -> int:
    return the_one(product.var, *PROGRAMS[name])


PROGRAMS = {
    "web": ("uvicorn",),
    "supervisor": ("supervise",),
    "postmaster": ("postgres", "-D"),
    "broker": ("valkey-server",),
    "celery worker": ("celery", "worker"),
    "celery beat": ("celery", "beat"),
    "sampler": ("sampler",),
    "alerter": ("alerter",),
    "ingester": ("ingester",),
    "expirer": ("lease", "watch"),
    "an endpoint's worker": ("processes.child_bootstrap worker",),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_killed_it_heals_without_a_hand(product: Product, name: str) -> None:
    victim = until(lambda: _one_of(product, name), what=f"a first {name}")
    killed = time.monotonic()
    kill(victim)
    until(lambda: _one_of(product, name) not in (None, victim), what=f"another {name}")
    within(HEALED, lambda: answer(f"{product.url}/readyz") == 200, f"ready after the end of the {name}", killed)


def test_other_accounts_see_no_log_no_mail_and_no_history(product: Product) -> None:
    pid_of(product, "supervisor")
    folders = {each.name: each.stat().st_mode & 0o077 for each in product.var.iterdir() if each.is_dir()}
    assert folders.keys() >= {"log", "mail", "run"}
    assert {name for name, open_to in folders.items() if open_to} == set()
    logs = {each.name: each.stat().st_mode & 0o077 for each in (product.var / "log").iterdir()}
    assert {name for name, open_to in logs.items() if open_to} == set()


def test_the_supervisor_runs_without_celery_and_without_the_web(product: Product) -> None:
    environment = Path(f"/proc/{pid_of(product, 'supervisor')}/environ").read_bytes().split(b"\0")
    assert b"DJANGO_SETTINGS_MODULE=pgqueue_admin.config.base_settings" in environment


_SESSIONS = """
select s.application_name, s.usename::text as role, r.rolsuper
from pg_stat_activity s join pg_roles r on r.rolname = s.usename
where s.datname = current_database() and s.backend_type = 'client backend' and s.pid <> pg_backend_pid()"""
_PROGRAMS = {"web", "supervise", "celery worker", "celery beat", "sampler", "alerter", "ingester", "worker"}


def test_no_program_is_a_superuser_and_each_session_names_its_program(product: Product) -> None:
    """Waits until each program was seen: some hold sessions only briefly."""
    seen: set[tuple[str, str, bool]] = set()

    def are_all_there() -> bool:
        with postgresql().connect(product.dsn) as session:
            seen.update((row.application_name, row.role, row.rolsuper) for row in session.all(_SESSIONS))
        return {f"pgqueue-admin {program}" for program in _PROGRAMS} <= {name for name, *_ in seen}

    with urllib.request.urlopen(f"{product.url}/sign-in/"):
        until(are_all_there, what="a session of each program")
    assert {(role, is_superuser) for _, role, is_superuser in seen} == {("pgqueue", False)}
    assert all(name.startswith("pgqueue") for name, *_ in seen), seen


def _one_of(product: Product, name: str) -> int | None:
    """None while it is not started, or not restarted yet."""
    try:
        return pid_of(product, name)
    except ValueError:
        return None


def test_static_files_are_immutable_and_a_missing_one_is_404(product: Product) -> None:
    with urllib.request.urlopen(f"{product.url}/sign-in/") as page:
        stylesheet = re.search(r'/static/[^"]+\.css', page.read().decode())
    assert stylesheet
    with urllib.request.urlopen(product.url + stylesheet[0]) as file:
        assert "immutable" in file.headers["Cache-Control"]
    assert answer(f"{product.url}/static/no-such-file.css") == 404


def test_a_second_one_on_the_same_folder_is_refused_and_names_the_first(product: Product) -> None:
    second = Product(product.var, free_port())
    said = up(second)
    assert said.returncode == 1
    assert f"as process {product.process.pid}" in said.stderr


def test_everything_ends_and_the_kept_data_is_up_again_in_ten_seconds(product: Product) -> None:
    with postgresql().connect(product.dsn, for_handlers=True) as session:
        session.run("create table public.kept (x int)")
    assert product.stop() == 0
    none_left(product.var, 1)
    stylesheet = product.var / "static/pgqueue_admin/console.css"
    whole = stylesheet.read_bytes()
    stylesheet.write_bytes(whole[:100])  # as a killed start may leave it
    product.launch()
    within(HEALED, product.is_up, "up again on what was kept")
    assert stylesheet.read_bytes() == whole
    with postgresql().connect(product.dsn, for_handlers=True) as session:
        assert session.value("select count(*) from public.kept") == 0


def test_hanging_program_does_not_hold_up_the_shutdown(product: Product) -> None:
    os.kill(pid_of(product, "celery beat"), signal.SIGSTOP)
    assert product.stop() == 0
    none_left(product.var, 1)
    product.start()


def test_killed_itself_it_leaves_nothing_behind_and_starts_again(product: Product) -> None:
    assert len(processes(product.var)) > 8
    product.process.kill()
    product.process.wait()
    none_left(product.var, 15)
    product.start()


def test_a_busy_port_is_named_and_nothing_is_started(tmp_path: Path) -> None:
    port = free_port()
    with listening(port):
        said = up(Product(tmp_path / "var", port))
    assert said.returncode == 1
    assert f"Port {port} on 127.0.0.1 is taken" in said.stderr
    assert not (tmp_path / "var/postgresql").exists()


def up(product: Product) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "manage.py", "up"]
    return subprocess.run(command, cwd=ROOT, env=product.environment, capture_output=True, text=True, timeout=60)


def test_reset_refuses_while_it_runs(product: Product) -> None:
    said = reset(product.var)
    assert said.returncode == 1
    assert f"running, as process {product.process.pid}" in said.stderr
    until(lambda: answer(f"{product.url}/readyz") == 200, what="ready, as if nothing had been asked")


def test_interrupt_while_modules_load_starts_nothing(fresh: Product) -> None:
    fresh.launch(DJANGO_SETTINGS_MODULE="tests.workers.interrupting")
    assert fresh.process.wait(60) == -signal.SIGINT
    assert fresh.said() == ""
    assert not fresh.var.exists()


MOMENTS: dict[str, Callable[[Product], bool]] = {
    "initdb": lambda product: (product.var / "postgresql/data.half").exists(),
    "a new server": lambda product: "PostgreSQL on" in product.said(),
    "the restore": lambda product: restoring(product),
    "its programs": lambda product: "Started" in product.said(),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_interrupt_during_start_up_leaves_nothing_behind(fresh: Product, moment: str) -> None:
    """The next start succeeds."""
    fresh.launch()
    until(lambda: MOMENTS[moment](fresh), what=moment)
    assert fresh.stop() == 0
    none_left(fresh.var, 1)
    fresh.start()


def restoring(product: Product) -> bool:
    """Whether `prepare` is filling the queue database now."""
    if not (product.var / "state.json").exists():
        return False
    asked = "select exists (select from pg_stat_activity where application_name = 'pgqueue-admin seed')"
    with postgresql().connect(product.dsn, for_handlers=True) as session:
        return bool(session.value(asked))


def test_a_second_ctrl_c_does_not_wait_for_anybody(fresh: Product) -> None:
    fresh.start()
    fresh.process.send_signal(signal.SIGINT)
    until(lambda: "Stopping" in fresh.said(), what="the first one is heard")
    assert fresh.stop(30) == 0
    none_left(fresh.var, 1)
