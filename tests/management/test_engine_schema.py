"""`manage.py engine_schema`: by hand, once, politely."""

import io

import pytest
from django.core.management import CommandError, call_command

from pgqueue_admin.archive.schema import VERSION
from pgqueue_admin.models.queue_database import queue_database
from tests.archive.test_schema import ORIGINAL


def run(*argv: str) -> str:
    out = io.StringIO()
    call_command("engine_schema", *argv, stdout=out, stderr=out)
    return out.getvalue().strip()


@pytest.fixture
def bare(console_database: str) -> None:
    with queue_database().writing() as connection:
        connection.run("drop schema messages cascade; drop type public.message_status cascade")


def test_it_says_what_it_did(bare: None) -> None:
    assert run() == f"The engine's tables are made, in schema messages: version {VERSION}."
    assert run() == f"The engine's tables are there already, version {VERSION}. Nothing was changed."


def test_adopting_is_an_explicit_step_with_a_warning(bare: None) -> None:
    with queue_database().writing() as connection:
        connection.run("drop function public.new_message_nofify, public.dead_message_nofify")
        connection.run(ORIGINAL)
    with pytest.raises(CommandError, match=r"Nothing was changed.*manage\.py engine_schema --adopt"):
        run()
    warning, said = run("--adopt").splitlines()
    assert "under an exclusive lock: nothing is archived until it is done." in warning
    assert said == f"The tables of oliverlambson/pgmq are adopted: version {VERSION}."


def test_refusals_change_nothing(bare: None) -> None:
    with queue_database().writing() as connection:
        connection.run("create schema messages; create table messages.message_archive (id int)")
    with pytest.raises(CommandError, match="neither ours nor that of oliverlambson/pgmq"):
        run("--adopt")
