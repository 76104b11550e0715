"""Refuses an empty PGQUEUE_HISTORY_DIR that should hold files of the manifest: its volume may not be mounted."""

from pathlib import Path

from pgqueue_admin.models import DataFile

_NEWEST = 3  # one that somebody took away keeps nothing back


def why_not(folder: Path) -> str:
    """Why nothing may be written there now, as sentences; empty: it may."""
    newest = list(DataFile.objects.order_by("-pk").values_list("path", flat=True)[:_NEWEST])
    if not newest or any((folder / path).exists() for path in newest):
        return ""
    return (
        f"PGQUEUE_HISTORY_DIR ({folder}) has none of the {len(newest)} newest files of history, e.g. {newest[0]}: "
        "is its volume mounted, or does PGQUEUE_HISTORY_DIR say another folder? "
        "Nothing is read before they are there (docs/how-to/resume-history.md)."
    )
