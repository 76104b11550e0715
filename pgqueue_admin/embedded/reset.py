"""``python -m pgqueue_admin.embedded.reset var``: delete what ``make run`` made. Standard library only."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from pgqueue_admin.embedded import cluster_location
from pgqueue_admin.embedded.errors import ServerFailed
from pgqueue_admin.embedded.lock import only_one

_HISTORY = "history"
_OURS = ("ci", "valkey", "log", "mail", "run", "static", _HISTORY, "spark", "state.json", "up.lock")


def reset(var: Path, but: Path | None = None) -> list[Path]:
    """Delete the cluster, wherever it is, and our files in ``var``, except ``but``. Other files stay."""
    with only_one(var):
        gone = cluster_location.remove(var / "postgresql")
        for path in (var / name for name in _OURS):
            if path.exists() and path != but:
                gone.append(path)
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if not any(var.iterdir()):
        var.rmdir()
    return gone


def stays(var: Path, environ: Mapping[str, str]) -> Path | None:
    """The history folder, if it must stay: chosen by PGQUEUE_HISTORY_DIR, or used by a database given by URL."""
    here = var / _HISTORY
    history = Path(environ.get("PGQUEUE_HISTORY_DIR") or here)
    if history.resolve() == here.resolve():
        history = here
    return history if history.exists() and (history != here or environ.get("DATABASE_URL")) else None


def main() -> None:
    var = Path(sys.argv[1])
    history = stays(var, os.environ)
    try:
        gone = reset(var, history)
    except ServerFailed as error:
        sys.exit(str(error))
    left = f" Left: {history}, the files of history." if history else ""
    print("Deleted " + ", ".join(map(str, gone)) + f".{left} The next `make run` starts afresh.")


if __name__ == "__main__":
    main()
