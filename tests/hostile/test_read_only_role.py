"""Every address, as a role that may only SELECT, while all that is more than ACCESS SHARE would wait for ever."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pgqueue_admin.models import database_role, queue_database
from tests.console.sampled import elsewhere, sample
from tests.hostile import change_detector, crawl, markup
from tests.hostile.hostile_site import SCHEMAS, World
from tests.waiting import until

MAY_BE_ABSENT = {
    "admin:view_on_site", "admin:", "waiting_body", "archived_body", "archived_headers", "find_message",
    "worker_log_whole", "lease_message", "masking_rule",
}  # fmt: skip


@pytest.fixture(scope="module")
def crawled(world: World) -> Iterator[SimpleNamespace]:
    """The one walk that the tests below judge."""
    paths, client = crawl.paths(world), world.client("root", raise_request_exception=False)
    readable = [*SCHEMAS[:3], "messages"]
    with (
        change_detector.nothing_but_select(world.queues, readable) as reader,
        elsewhere("queues", **reader),
        change_detector.locks_of(world.console, reader["USER"]) as locks,
    ):
        before = change_detector.versions(world.console, "django_session"), change_detector.versions(world.queues)
        with change_detector.only_access_share(world.queues):
            until(database_role.current, what="the database was asked")
            sample()
            sampled = change_detector.versions(world.console, "django_session")
            answers = [_kept(*each) for each in crawl.get(client, paths)]
            known = database_role.current()
        after = change_detector.versions(world.console, "django_session"), change_detector.versions(world.queues)
        yield SimpleNamespace(
            answers=answers, before=(sampled, before[1]), after=after, locks=locks, role=known, reader=reader
        )
    queue_database.close()


def _kept(name: str, path: str, answer: Any) -> SimpleNamespace:
    html = answer.content.decode() if not answer.streaming and "html" in answer["Content-Type"] else ""
    return SimpleNamespace(name=name, path=path, status=answer.status_code, html=html, headers=answer.headers)


def test_every_address_answers(crawled: SimpleNamespace) -> None:
    wrong = [each for each in crawled.answers if not _expected(each.name, each.status)]
    assert [(each.path, each.status) for each in wrong] == []


def _expected(name: str, status: int) -> bool:
    if name in crawl.ACTS:
        return status == 405
    if name == "readyz":
        return status == 503  # no workers run here
    if name == "admin:autocomplete" or (
        name.startswith(("admin:pgqueue", "admin:django_celery")) and name.endswith(("_add", "_delete"))
    ):
        return status == 403
    if name == "operation_edit":
        return status in {200, 303}  # of what was started there is nothing to edit any more: its page
    return status in {200, 302} or (status == 404 and name in MAY_BE_ABSENT)


def test_looking_changes_no_row_and_locks_none(crawled: SimpleNamespace) -> None:
    for before, after in zip(crawled.before, crawled.after, strict=True):
        assert {name for name in before if before[name] != after[name]} == set()
        assert before.keys() == after.keys()


def test_nothing_above_access_share(crawled: SimpleNamespace) -> None:
    assert crawled.locks == {"AccessShareLock"}


def test_the_frame_says_that_nothing_can_be_changed(crawled: SimpleNamespace) -> None:
    assert crawled.role.refusal == f"the database role {crawled.reader['USER']} may only SELECT"
    pages = [each for each in crawled.answers if each.status == 200 and 'class="shell"' in each.html]
    assert len(pages) > 200
    assert [each.path for each in pages if crawled.role.refusal not in each.html] == []


@pytest.fixture(scope="module")
def texts(crawled: SimpleNamespace) -> list[tuple[SimpleNamespace, markup.Found]]:
    return [(each, markup.read(each.html)) for each in crawled.answers]


def test_nobodys_text_becomes_markup(texts: list[tuple[SimpleNamespace, markup.Found]]) -> None:
    assert {each.path: found.foreign for each, found in texts if found.foreign} == {}


def test_nobodys_text_turns_ours_around(texts: list[tuple[SimpleNamespace, markup.Found]]) -> None:
    ours = [each for each in texts if not each[0].name.startswith("admin:") or ":pgqueue_" in each[0].name]
    wrong = {each.path: found.turned for each, found in ours if found.turned}
    assert not wrong, wrong


def test_names_of_files_and_headers_are_ours(crawled: SimpleNamespace) -> None:
    for each in crawled.answers:
        assert "pwned" not in each.headers.get("Content-Disposition", "")
        if each.name.endswith("_body") and each.status == 200:
            assert each.headers["Content-Type"] == "application/octet-stream"
            assert each.headers["X-Content-Type-Options"] == "nosniff"
        if each.html:
            assert "script-src 'self'" in each.headers["Content-Security-Policy"], each.path
