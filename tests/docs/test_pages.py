"""Rules for all pages: no line is repeated, and each picture is shown somewhere."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
WRITTEN = [page for page in PAGES if not page.read_text(encoding="utf-8").startswith("<!-- Generated")]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_stands_twice_in_a_page(page: Path) -> None:
    """Compares lines of prose of more than seven words. Programs may repeat themselves."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    lines = Counter(line.strip() for line in prose.splitlines() if len(re.findall(r"\w+", line)) > 7)
    assert [line for line, times in lines.items() if times > 1] == []


def test_every_picture_is_shown_in_a_page() -> None:
    shown = {
        (page.parent / name).resolve() for page in PAGES for name in re.findall(r"\]\(([^)]+\.png)\)", page.read_text())
    }
    assert set((ROOT / "docs/screenshots").glob("*.png")) == shown
