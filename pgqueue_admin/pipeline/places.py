"""Where history lies: a folder, below it one per dataset and version of its columns, below that one per attempt."""

from pathlib import Path
from uuid import UUID

from django.conf import settings

VERSION = "v1"
REJECTED = "rejected-v1"


def folder() -> Path:
    return Path(settings.PGQUEUE["HISTORY_DIR"])


def of_attempt(root: Path, batch: int, token: UUID, dataset: str = VERSION) -> Path:
    """No two attempts share one: a driver that was thought dead cannot write over what another one committed."""
    return root / dataset / f"batch-{batch:08}-{token}"
