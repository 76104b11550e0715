"""Links between pages and to headings work, and docs named by code, scripts and units exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LOOKED_INTO = (
    "pgqueue_admin", "templates", "static/pgqueue_admin", "tests", "bench", "deploy", "scripts", ".ci", "examples",
    "Makefile", "compose.yaml", "pyproject.toml", "requirements.txt", "requirements-dev.txt",
)  # fmt: skip
READ = {".py", ".sql", ".html", ".txt", ".js", ".css", ".sh", ".service", ".example", ".yaml", ".toml", ""}


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of its headings, as GitHub generates them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_to_a_file_and_its_heading(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (anchor and anchor not in anchors(found)):
            broken.append(target)
    assert broken == []


def texts() -> Iterator[tuple[Path, str]]:
    for name in LOOKED_INTO:
        top = ROOT / name
        for path in [top] if top.is_file() else top.rglob("*"):
            if path.is_file() and path.suffix in READ and "vendor" not in path.parts:
                yield path, path.read_text(encoding="utf-8", errors="ignore")


def test_pages_that_other_files_name_exist() -> None:
    gone = []
    for path, text in texts():
        for named in re.findall(r"\bdocs/[\w/.-]+\.md\b|\bdocs/decisions/\d{3}\b", text):
            if not list(ROOT.glob(named if named.endswith(".md") else f"{named}-*.md")):
                gone.append(f"{path.relative_to(ROOT)}: {named}")
    assert gone == []


def test_every_page_is_listed() -> None:
    """docs/README.md reaches every page, partly through the lists of decisions and evidence."""
    lists = [ROOT / "docs" / name for name in ("README.md", "decisions/README.md", "evidence/README.md")]
    listed = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in lists
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    }
    assert {page for page in (ROOT / "docs").rglob("*.md")} - listed == {ROOT / "docs/README.md"}
