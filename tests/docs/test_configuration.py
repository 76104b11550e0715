"""The documented environment variables are exactly those that the code reads."""

import re
from pathlib import Path

from pgqueue_admin.models import samples
from pgqueue_admin.workers.reporting import run_directory
from pgqueue_admin.workers.supervisor import process_recorder, supervisor

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
_CALLS = (
    r"(?:env(?:\.\w+)?|environ\.\w+|listed|named|own_code|address(?:es)?|one_of|days|seconds|above_zero|memory|standby"
    r"|broker)\(\s*"
)
_READ = re.compile(rf'\b(?:{_CALLS}|environ\[)"([A-Z][A-Z_]+)"')
_NOT_OURS = {
    "PYTHONPATH",
    "DJANGO_SETTINGS_MODULE",  # Python's and Django's own, passed on to child processes
    "PGSSLMODE",
    "PGSSLROOTCERT",  # libpq's own: defaults where a URL sets nothing
    "XDG_STATE_HOME",  # the desktop's own: where programs keep a user's state
    "SPARK_USER",  # Spark's own: set for an account without a name
}
_ROW = re.compile(r"^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \|", re.MULTILINE)


def test_the_page_lists_what_the_package_reads() -> None:
    files = (ROOT / "pgqueue_admin").rglob("*.py")
    read = {name for path in files for name in _READ.findall(path.read_text(encoding="utf-8"))} - _NOT_OURS
    rows = _ROW.findall(PAGE)
    assert sorted(name for row in rows for name in re.findall("[A-Z_]+", row)) == sorted(read)


def test_how_long_samples_and_logs_are_kept_is_what_is_said() -> None:
    every, fine, kept = samples.HISTORY_EVERY.seconds, samples.FINE_FOR.seconds // 3600, samples.KEPT_FOR.days
    assert f"one each {every} s for {fine} hours, then one a minute, up to {kept} days" in PAGE
    assert f"in flight at a crash | {process_recorder.KEPT.days} days |" in PAGE
    largest, looked_at = run_directory.LARGEST_LOG // 1_000_000, supervisor.LOGS_EVERY
    assert f"emptied above {largest} MB (checked each {looked_at:.0f} s)" in PAGE
    gone = (ROOT / "templates/pgqueue_admin/messages/gone.html").read_text(encoding="utf-8")
    assert f"Its samples are kept for {kept} days." in gone


def test_every_make_target_and_variable_of_the_readme_exists() -> None:
    readme, makefile = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "Makefile"))
    assert {*re.findall(r"`?make ([a-z-]+)", readme)} <= {*re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)}
