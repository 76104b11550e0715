"""The documented kinds of warning are exactly those that exist."""

import re
from pathlib import Path

from pgqueue_admin.alerts import kinds
from pgqueue_admin.alerts.checks import IDS
from pgqueue_admin.alerts.kinds import KINDS
from pgqueue_admin.alerts.kinds.kind import HOVERING

ROOT = Path(__file__).resolve().parents[2]
PAGE, LIMITS = ((ROOT / f"docs/reference/{name}.md").read_text("utf-8") for name in ("warning-kinds", "warnings"))
LISTED = re.findall(r"^\| `([a-z_]+)` \|(.*)$", PAGE, re.MULTILINE)
ROWS = dict(LISTED)


def test_every_kind_has_its_row_once() -> None:
    assert [name for name, _ in LISTED] == [kind.name for kind in KINDS]


def test_every_kind_says_from_when_on_and_how_grave() -> None:
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \| \S.* \| .*(?:critical|warning).* \|$", LIMITS, re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == [kind.name for kind in KINDS]
    assert f"evaluates [{len(KINDS)} kinds]" in LIMITS


def test_every_kind_says_what_to_do_first() -> None:
    steps = {name: row.split(" | ")[2].strip() for name, row in LISTED}
    assert {name for name, step in steps.items() if len(step.split()) < 5 or not step.endswith(".")} == set()
    assert len(set(steps.values())) == len(KINDS)


def test_the_rows_say_which_are_mailed() -> None:
    assert {name for name, row in ROWS.items() if "**mail**" in row} == {kind.name for kind in KINDS if kind.mailed}


def test_the_page_says_which_warnings_outlive_their_cause() -> None:
    (said,) = re.findall(
        rf"^Kinds that resolve only after {HOVERING.seconds} s without their cause: (.*)$", PAGE, re.MULTILINE
    )
    assert set(re.findall(r"`(\w+)`", said)) == {kind.name for kind in KINDS if kind.linger == HOVERING}


def test_a_test_mail_says_which_are_mailed() -> None:
    assert [kind.name for kind in KINDS if kind.mailed] == ["dead_message", "old_deaths", "crashing_message", "blind"]
    for ending in ("txt", "html"):
        mail = (ROOT / f"templates/pgqueue_admin/mail/test.{ending}").read_text(encoding="utf-8")
        said = " ".join(mail.split())
        assert "Four kinds of warnings are mailed to you from this environment: dead messages," in said
        assert "; a message that ends its process; and that most queues cannot be read." in said


def test_the_rows_name_the_checks() -> None:
    named = {name: found[1] for name, row in ROWS.items() if (found := re.search(r"`(pgqueue\.W\d+)`", row))}
    assert named == IDS


def test_every_file_of_a_kind_is_in_the_list() -> None:
    folder = Path(kinds.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__", "kind", "target_exceeded"} == {
        k.name for k in KINDS
    }
