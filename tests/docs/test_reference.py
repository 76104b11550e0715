"""Generated pages are up to date with scripts/reference.py."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GENERATED: dict[str, str] = runpy.run_path(str(ROOT / "scripts/reference.py"))["pages"]()


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_current(name: str) -> None:
    written = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert written == GENERATED[name], "run `make reference`: a docstring, an argument, a title or a figure has changed"
