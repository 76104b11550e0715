"""The page on history's files names exactly the columns of those files."""

import re
from pathlib import Path

from pgqueue_admin.history.storage import event_files

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/history-data.md").read_text(encoding="utf-8")


def test_every_column_has_its_place() -> None:
    from pgqueue_admin.history.spark.schemas import HISTORY

    assert named("What a row holds (version 3)") == set(HISTORY.fieldNames())


def test_every_column_of_event_files_has_its_place() -> None:
    assert named("What became of archived messages") == set(event_files.COLUMNS)


def named(section: str) -> set[str]:
    """The columns that its list names."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^- (`[^:]*):", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
