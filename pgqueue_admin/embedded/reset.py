"""``python -m pgqueue_admin.embedded.reset var``: delete what ``make run`` made. Standard library only."""

import shutil
import sys
from pathlib import Path

from pgqueue_admin.embedded import places
from pgqueue_admin.embedded.errors import ServerFailed
from pgqueue_admin.embedded.lock import only_one

_OURS = ("ci", "valkey", "log", "mail", "run", "static", "state.json", "up.lock")


def reset(var: Path) -> list[Path]:
    """Delete the cluster, wherever it is, and our files in ``var``; whatever else is there stays."""
    with only_one(var):
        gone = places.remove(var / "postgresql")
        for path in (var / name for name in _OURS):
            if path.exists():
                gone.append(path)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not any(var.iterdir()):
        var.rmdir()
    return gone


def main() -> None:
    try:
        gone = reset(Path(sys.argv[1]))
    except ServerFailed as error:
        sys.exit(str(error))
    print("Deleted " + ", ".join(map(str, gone)) + ". The next `make run` starts afresh.")


if __name__ == "__main__":
    main()
