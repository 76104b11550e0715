"""The page of history names every column that its files have."""

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs/history.md").read_text(encoding="utf-8")


def test_every_column_has_its_place() -> None:
    from pgqueue_admin.pipeline.schemas import HISTORY

    cells = re.findall(r"^\| (`[^|]*) \|", PAGE.partition("## What a row holds")[2], re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == set(HISTORY.fieldNames())
