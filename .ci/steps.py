#!/usr/bin/env python3
"""Everything that must hold, step by step. Needs Python 3.11 with venv, and make; installs or names the rest.

    .ci/run                 all of it but image
    .ci/run lint journeys   only these steps
    .ci/run image           builds the container image, and tries it

As root on Debian it installs chromium-headless-shell, nginx-light, postgresql-15, postgresql-15-cron,
mariadb-server-core and mariadb-client-core where they are missing. Else CHROMIUM= names a browser, NGINX= an nginx,
PGQUEUE_PG_BIN= a folder of PostgreSQL binaries, PG_CRON_BIN= one with pg_cron; mariadbd and its client are looked for
on the PATH.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "var" / "ci"
PREPARED = RESULTS / "prepared"  # files of a PostgreSQL server with its templates, for each process of each step
BIN = ".venv/bin"
DEPLOYED = (
    "SECRET_KEY=$(head -c 64 /dev/urandom | base64 -w0) PUBLIC_URL=https://queues.example.com ENVIRONMENT=production "
    "DATABASE_URL=postgresql://console@db.example.com/console?sslmode=verify-full "
    "QUEUES_URL=postgresql://reader@db.example.com/shop?sslmode=verify-full "
    "CELERY_BROKER_URL=rediss://broker.example.com/0 EMAIL_URL=smtp+tls://mail.example.com:587 "
    "PGQUEUE_ALERT_TO=oncall@example.com"
)

QUICK = "not journey and not chaos and not spark and not fresh and not pg_cron and not mariadb"
# Rooms whose own statements the server answers; what is built on them asks through them, or through Django. Of history
# what rests on the server's snapshots and log, of the lease queue what needs no processes. Of services the acts, whose
# statements are their own or must hold a lock against somebody: what freezes, paces, allows or writes anew asks the
# same ones, in a course of the console's own that no server changes. tests/dialects has every statement understood.
HISTORY = " ".join(
    f"tests/history/test_{name}.py" for name in ("committed", "read_sessions", "restored", "xid_continuity")
)
LEASE = " ".join(
    f"tests/lease/test_{name}.py"
    for name in (
        *("archive_plans", "client", "defects", "encodings", "expiry", "on_dead", "original_readme", "plans"),
        *("rights", "schedules", "upkeep"),
    )
)
ACTS = " ".join(
    f"tests/services/test_{name}.py"
    for name in (
        *("acts_elsewhere", "answer_lost", "at_once", "audited_act", "call_back", "foreign_triggers", "killed"),
        *("lease_purge", "lease_retry", "lease_rules", "leases", "message_copies", "one", "purge", "restore_and_retry"),
        *("schedules", "two_operators", "waiting_messages", "wake_up"),
    )
)
ASKING = f"tests/archive tests/dialects tests/monitor tests/transport {ACTS} {HISTORY} {LEASE}"
PG_CRON = "tests/management/test_pg_cron.py tests/outbox/test_script.py tests/architecture/test_deploy_lease.py"
ON_MARIADB = "tests/dialects tests/outbox tests/console/test_outboxes_elsewhere.py"
KILLING = "tests/history tests/hostile tests/lease tests/outbox tests/services tests/transport tests/workers"
# What is asked of a page itself has no end of its own: a browser that hangs is a failed test, where its process stands
# is said, and the run ends. pytest-xdist may wait for ever for tests that the next process were to take over.
ENDED = "-o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true --max-worker-restart=0"
# Java's second compiler has no time to pay off in a test; without it Java would keep less room for what it compiles.
# Drivers that tests start with nothing of this environment run as they do for an operator.
FIRST_COMPILER = '"-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"'
SHORT_JAVA = f"SPARK_SUBMIT_OPTS={FIRST_COMPILER} SPARK_DAEMON_JAVA_OPTS={FIRST_COMPILER}"
# Three on two processors: tests wait for processes, locks and clocks for a good part of their time.
MANY = "-n 3 --dist loadgroup"


class Step(NamedTuple):
    name: str
    command: str
    needs: str = ""  # names in NEEDS
    is_pytest: bool = False
    # "beside" those that follow, as it waits for a good part of its time; "alone"; or "asked": only where it is named
    runs: str = ""


def pytest(name: str, arguments: str, needs: str = "", before: str = "", runs: str = "") -> Step:
    return Step(name, f"{before}{BIN}/pytest -q {arguments}", needs, True, runs)


STEPS = [
    Step("install", "make setup .venv/installed-dev"),
    Step("lint", f"{BIN}/ruff check . && {BIN}/ruff format --check ."),
    Step("types", f"{BIN}/mypy", runs="beside"),
    Step("imports", f"{BIN}/lint-imports"),
    Step("migrations", f"{BIN}/python manage.py makemigrations --check --dry-run --settings tests.settings"),
    Step("deploy", f"{DEPLOYED} {BIN}/python manage.py check --deploy --fail-level WARNING"),
    Step("advisories", f"{BIN}/python .ci/advisories.py"),
    Step("tests", "make test", is_pytest=True),
    pytest("journeys", f"-m journey -n 2 --dist loadgroup {ENDED} tests/journeys", "chromium nginx"),
    pytest("spark", "-m spark tests/history", before=f"PGQUEUE_TEST_PATIENCE=300 {SHORT_JAVA} ", runs="beside"),
    Step("test-slow", "make test-slow", is_pytest=True),
    pytest(
        "postgresql-15",
        f'-m "({QUICK}) or pg_cron" --only-asking {MANY} {ASKING} {PG_CRON}',
        "postgresql pg_cron",
        'PGQUEUE_PG_BIN="$PGQUEUE_PG_BIN" ',
    ),
    pytest("mariadb", f'-m "mariadb and not chaos" -n 2 --dist loadgroup {ON_MARIADB}', "mariadb"),
    pytest("fresh", "-m fresh tests/installation"),
    Step("image", "scripts/image.sh", "buildah", runs="asked"),
    pytest("chaos", f"-m chaos {MANY} {KILLING}", "mariadb", runs="alone"),
]
BY_ITSELF = {step.name for step in STEPS if step.runs != "asked"}


class Outcome(NamedTuple):
    step: Step
    seconds: float
    passed: int
    failed: tuple[str, ...] = ()  # what to run again, alone
    why: str = ""

    @property
    def failures(self) -> int:
        return len(self.failed) or bool(self.why)


def main() -> int:
    os.chdir(ROOT)
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    wanted = sys.argv[1:]
    if unknown := set(wanted) - {step.name for step in STEPS}:
        sys.exit(f"No such step: {', '.join(unknown)}. There are: {', '.join(step.name for step in STEPS)}.")
    try:
        return report(list(run_all([step for step in STEPS if step.name in (wanted or BY_ITSELF)])))
    finally:
        shutil.rmtree(PREPARED, ignore_errors=True)


def run_all(steps: list[Step]) -> Iterator[Outcome]:
    """Each outcome once it is known."""
    with ThreadPoolExecutor() as pool:
        beside: list[Future[Outcome]] = []
        for step in steps:
            if step.runs == "beside":
                beside.append(pool.submit(run, step))
                continue
            if step.runs == "alone":
                yield from (each.result() for each in beside)
                beside.clear()
            yield run(step)
        yield from (each.result() for each in beside)


def run(step: Step) -> Outcome:
    """What a step prints that runs beside others is shown when it has ended."""
    print(f"\n=== {step.name}: {step.command}", flush=True)
    began, before = time.monotonic(), processor_time()
    # Some images set it: each of some thousand processes would then compile the product anew, or the tests.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        for need in step.needs.split():
            environment |= NEEDS[need]()
    except Missing as missing:
        print(missing, flush=True)
        return Outcome(step, time.monotonic() - began, 0, why=str(missing))
    junit = RESULTS / f"{step.name}.xml"
    if step.is_pytest:
        environment["PGQUEUE_TEST_PREPARED"] = str(PREPARED)
        environment["PYTEST_ADDOPTS"] = f"{environment.get('PYTEST_ADDOPTS', '')} --junitxml={junit}"
    code = shell(step, environment)
    seconds = time.monotonic() - began
    passed, failed = counted(junit) if step.is_pytest else (0 if code else 1, ())
    why = f"exit code {code}" if code and not failed else ""
    print(f"=== {step.name}: {'failed' if failed or why else 'passed'} in {seconds:.0f} s{shares(before)}", flush=True)
    return Outcome(step, seconds, passed, failed, why)


def shell(step: Step, environment: dict[str, str]) -> int:
    command = ["bash", "-c", step.command]
    if step.runs != "beside":
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL).returncode
    with (RESULTS / f"{step.name}.log").open("w+", errors="replace") as log:
        code = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode
        log.seek(0)
        print(f"\n=== {step.name}: what it printed\n{log.read()}", flush=True)
    return code


def processor_time() -> list[int]:
    """Of all processors, in ticks, as Linux counts them: user, nice, system, idle, waiting for disks, …, stolen."""
    try:
        return [int(each) for each in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    except OSError:
        return []


def shares(before: list[int]) -> str:
    """What the processors did since: a step that took long on a machine that others slow is told from one that is."""
    spent = [now - then for now, then in zip(processor_time(), before, strict=True)]
    if not sum(spent):
        return ""
    idle, disks, stolen = (100 * spent[place] / sum(spent) for place in (3, 4, 7))
    return f" (processors: {idle:.0f} % idle, {disks:.0f} % waiting for disks, {stolen:.0f} % taken by other machines)"


def counted(junit: Path) -> tuple[int, tuple[str, ...]]:
    """How many passed, and which did not. A skipped test counts as failed: nothing here may be skipped."""
    if not junit.exists():
        return 0, ()
    rooms: dict[str, tuple[int, float]] = {}
    failed: dict[str, None] = {}  # an error at the end of a failed test is a second case of it
    cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
    for case in cases:
        if any(case.find(kind) is not None for kind in ("failure", "error", "skipped")):
            failed[address(case)] = None
        room = "/".join(case.get("classname", "").split(".")[:2])
        number, seconds = rooms.get(room, (0, 0.0))
        rooms[room] = number + 1, seconds + float(case.get("time", 0))
    for room, (number, seconds) in sorted(rooms.items()):
        print(f"    {room:24} {number:5} tests {seconds:7.1f} s   {BIN}/pytest {room}")
    return len({address(case) for case in cases} - set(failed)), tuple(failed)


def address(case: ElementTree.Element) -> str:
    """As pytest takes it: ``tests/room/test_file.py::test_name[parameter]``."""
    if not (module := case.get("classname", "")):  # a file that could not even be read
        return case.get("name", "?").replace(".", "/") + ".py"
    name = re.sub(r"@\w+/\w+\.py[\w/]*$", "", case.get("name", "?"))  # whose module it was run with
    return f"{module.replace('.', '/')}.py::{name}"


class Missing(Exception):
    """What a step needs and is not here, and the package that has it."""


def chromium() -> dict[str, str]:
    """The same engine without windows that nobody sees takes less than half of a processor's time; where Debian does
    not have it yet, the whole browser."""
    packages = ("chromium-headless-shell", "chromium")
    there = [browser for package in packages if (browser := shutil.which(package))]
    browser = os.environ.get("CHROMIUM") or next(iter(there), None)
    for package in packages:
        browser = browser or (shutil.which(package) if installed(package) else None)
    if not browser or not Path(browser).exists():
        raise Missing("No browser: install Debian's package chromium-headless-shell, or set CHROMIUM= to one.")
    return {"CHROMIUM": browser}


def nginx() -> dict[str, str]:
    """Debian has it where only root's PATH looks; its package starts no server without an init system."""
    folders = f"{os.environ.get('PATH', '')}:/usr/sbin"
    program = os.environ.get("NGINX") or shutil.which("nginx", path=folders)
    if not program and installed("nginx-light"):
        program = shutil.which("nginx", path=folders)
    if not program or not Path(program).exists():
        raise Missing("No nginx: install Debian's package nginx-light, or set NGINX= to one.")
    return {"NGINX": program}


def postgresql() -> dict[str, str]:
    folder = Path(os.environ.get("PGQUEUE_PG_BIN") or "/usr/lib/postgresql/15/bin")
    if not (folder / "postgres").exists() and "PGQUEUE_PG_BIN" not in os.environ:
        installed("postgresql-15")
    if not (folder / "initdb").exists():
        raise Missing(
            "No other PostgreSQL: install Debian's package postgresql-15, or set PGQUEUE_PG_BIN= to a folder of one."
        )
    return {"PGQUEUE_PG_BIN": str(folder)}


def pg_cron() -> dict[str, str]:
    """Debian's, for its own server."""
    folder = Path(os.environ.get("PG_CRON_BIN") or "/usr/lib/postgresql/15/bin")
    library = folder.parent / "lib" / "pg_cron.so"
    if not library.exists() and "PG_CRON_BIN" not in os.environ:
        installed("postgresql-15-cron")
    if not library.exists():
        raise Missing(
            "No pg_cron: install Debian's package postgresql-15-cron, or set PG_CRON_BIN= to a folder of such a server."
        )
    return {"PG_CRON_BIN": str(folder)}


def mariadb() -> dict[str, str]:
    """Debian has the server where only root's PATH looks, as tests/mariadb.py does."""
    folders = f"{os.environ.get('PATH', '')}:/usr/sbin"
    programs = ("mariadbd", "mariadb-install-db", "mariadb")
    if not all(shutil.which(each, path=folders) for each in programs):
        installed("mariadb-server-core mariadb-client-core")
    if not all(shutil.which(each, path=folders) for each in programs):
        raise Missing("No MariaDB: install Debian's packages mariadb-server-core and mariadb-client-core.")
    return {}


def buildah() -> dict[str, str]:
    """Without an engine: as root it builds in a folder of its own, and what it built is tried in namespaces."""
    if os.geteuid() != 0:
        raise Missing("No right to mount the image's files: run it as root.")
    if not all(map(shutil.which, ("buildah", "debootstrap"))):
        installed("buildah debootstrap")
    if not all(map(shutil.which, ("buildah", "debootstrap"))):
        raise Missing("No buildah: install Debian's packages buildah and debootstrap.")
    return {}


def installed(package: str) -> bool:
    """Whether apt could install it, which only root may ask of it."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {package}"
    done = subprocess.run(["sh", "-c", command], env=quiet, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return done.returncode == 0


NEEDS = {
    "buildah": buildah,
    "chromium": chromium,
    "mariadb": mariadb,
    "nginx": nginx,
    "postgresql": postgresql,
    "pg_cron": pg_cron,
}


def report(outcomes: list[Outcome]) -> int:
    """The steps, and at the very end what failed."""
    print(f"\n{'step':16} {'seconds':>8} {'passed':>7} {'failed':>7}   again, alone")
    for each in outcomes:
        name, failures = each.step.name, each.failures
        print(f"{name:16} {each.seconds:8.0f} {each.passed:7} {failures:7}   .ci/run {name}   {each.why}".rstrip())
    failures = sum(each.failures for each in outcomes)
    print(f"\n{sum(each.passed for each in outcomes)} passed, {failures} failed")
    for each in outcomes:
        for test in each.failed or ([each.why] if each.why else []):
            print(f"FAILED {each.step.name}: {test}")
    sys.stdout.flush()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
