"""Where history lies: a folder, below it the version of its columns, below that a folder per attempt."""

from pathlib import Path
from uuid import UUID

from django.conf import settings

VERSION = "v1"


def folder() -> Path:
    return Path(settings.PGQUEUE["HISTORY_DIR"])


def of_attempt(root: Path, batch: int, token: UUID) -> Path:
    """No two attempts share one: a driver that was thought dead cannot write over what another one committed."""
    return root / VERSION / f"batch-{batch:08}-{token}"
