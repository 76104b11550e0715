"""The minimal client that others are compared with: floor.c over libpq, built where a compiler and headers exist."""

import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("floor.c")


def build(folder: Path, source: Path = SOURCE) -> Path:
    """Raises SystemExit if it cannot be built: ratios to another floor are not comparable."""
    if not (shutil.which("gcc") and shutil.which("pg_config")):
        raise SystemExit("The floor is written in C: install gcc and libpq's headers (Debian: gcc libpq-dev).")
    target = folder / source.stem
    include, library = (_config(f"--{what}dir") for what in ("include", "lib"))
    command = ["gcc", "-O2", "-o", str(target), str(source), f"-I{include}", f"-L{library}", "-lpq", "-lpthread"]
    subprocess.run(command, check=True)
    return target


def run(floor: Path, dsn: str, what: str, threads: int, messages: int) -> float:
    """Return messages per second."""
    asked = [str(floor), dsn, what, str(threads), str(messages)]
    return float(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)


def _config(name: str) -> str:
    return subprocess.run(["pg_config", name], check=True, capture_output=True, text=True).stdout.strip()
