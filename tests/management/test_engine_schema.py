"""`manage.py engine_schema`: run by hand, repeatable, without blocking traffic."""

import io
import re

import pytest
from django.core.management import CommandError, call_command

from pgqueue_admin.archive import schema
from pgqueue_admin.archive.schema import VERSION
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models.queue_database import queue_database
from tests.archive.test_schema import ORIGINAL
from tests.older_schema import set_back


def run(*argv: str) -> str:
    out = io.StringIO()
    call_command("engine_schema", *argv, stdout=out, stderr=out)
    return out.getvalue().strip()


@pytest.fixture
def bare(console_database: str) -> None:
    with queue_database().write_session() as connection:
        connection.run("drop schema messages cascade; drop type public.message_status cascade")


def test_command_reports_creation_and_no_change(bare: None) -> None:
    assert run() == f"The engine's tables are made, in schema messages: version {VERSION}."
    assert run() == f"The engine's tables are there already, version {VERSION}. Nothing was changed."


def test_adopting_is_an_explicit_step_with_a_warning(bare: None) -> None:
    with queue_database().write_session() as connection:
        connection.run("drop function public.new_message_nofify, public.dead_message_nofify")
        connection.run(ORIGINAL)
    with pytest.raises(CommandError, match=r"Nothing was changed.*manage\.py engine_schema --adopt"):
        run()
    warning, said = run("--adopt").splitlines()
    assert "under an exclusive lock: nothing is archived until it is done." in warning
    assert said == f"The tables of oliverlambson/pgmq are adopted: version {VERSION}."


def test_refusals_change_nothing(bare: None) -> None:
    with queue_database().write_session() as connection:
        connection.run("create schema messages; create table messages.message_archive (id int)")
    with pytest.raises(CommandError, match="neither ours nor that of oliverlambson/pgmq"):
        run("--adopt")


PROGRAMS = [["ingester"], ["alerter"], ["trial"], ["worker", "Sales"], ["history"], ["history", "run"]]


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_program_starts_on_tables_of_a_later_version(console_database: str, program: list[str]) -> None:
    with queue_database().write_session() as connection:
        connection.run(f"update messages.engine_schema set version = {VERSION + 1}")
    with pytest.raises(CommandError, match=rf"of version {VERSION + 1}, .* needs {VERSION}: update the program\."):
        call_command(*program)


def test_schema_version_is_read_while_the_archive_is_locked(console_database: str) -> None:
    with queue_database().write_session() as connection, connection.transaction():
        connection.run("lock table messages.message_archive in access exclusive mode")
        with postgresql().connect(console_database) as beside:
            beside.run("set statement_timeout = '5s'")
            assert schema.version(beside) == VERSION


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_program_starts_on_tables_of_the_version_before(console_database: str, program: list[str]) -> None:
    with queue_database().write_session() as connection:
        set_back(connection, VERSION - 1)
    with pytest.raises(
        CommandError, match=rf"of version {VERSION - 1}, .* needs {VERSION}: run manage\.py engine_schema\."
    ):
        call_command(*program)


def test_text_index_is_built_on_request_after_its_estimated_cost(console_database: str) -> None:
    said = run("--index-text", "--yes")
    assert re.search(r"texts of ≈\s0 messages will take ≈\s\d+\skB beside \d+\skB of archive, and ≈\s", said)
    assert "the archive is empty" in said
    assert "Searches use it now." in said
    assert "are indexed already" in run("--index-text")
    assert "is dropped" in run("--drop-text-index")
    assert run("--drop-text-index") == "There is no index of the archive's texts. Nothing was changed."


def test_nothing_is_indexed_without_a_yes(console_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(CommandError, match="nobody is there to be asked"):
        run("--index-text")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: "n")
    assert run("--index-text").endswith("Nothing was changed.")
    with queue_database().write_session() as connection:
        assert connection.value("select count(*) from pg_extension where extname = 'pg_trgm'") == 0
    monkeypatch.setattr("builtins.input", lambda _: "yes")
    assert "Searches use it now." in run("--index-text")


def test_without_the_engines_tables_there_is_nothing_to_index(bare: None) -> None:
    with pytest.raises(CommandError, match=r"There is no archive here: run manage\.py engine_schema first\."):
        run("--index-text", "--yes")


def test_invalid_index_of_a_cut_build_is_named(console_database: str) -> None:
    run("--index-text", "--yes")
    with queue_database().write_session() as connection:
        connection.run(
            "update pg_index set indisvalid = false where indexrelid = 'messages.message_archive_text'::regclass"
        )
    assert "A build was cut and has left an index that nothing uses." in run("--index-text", "--yes")
