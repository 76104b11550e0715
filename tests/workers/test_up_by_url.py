"""A database given by URL may be a production database: `make run` only reads it, unless told to write."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.demo import restore_recording
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.reset import reset
from tests.databases import Databases
from tests.journeys.product import Product
from tests.waiting import until
from tests.workers.process_tree import free_port, none_left
from tests.workers.test_up import up

pytestmark = pytest.mark.chaos

_OBJECTS = """
select 'relation', n.nspname, c.relname, c.relkind::text from pg_class c join pg_namespace n on n.oid = relnamespace
union all select 'function', n.nspname, p.proname, '' from pg_proc p join pg_namespace n on n.oid = pronamespace
union all select 'type', n.nspname, t.typname, '' from pg_type t join pg_namespace n on n.oid = typnamespace
union all select 'trigger', '', tgname, '' from pg_trigger
union all select 'schema', '', nspname, '' from pg_namespace
order by 1, 2, 3, 4"""
_OTHERS = """select count(*) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"""
_WRITTEN = "select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint from pg_stat_user_tables"


def state_of(dsn: str) -> tuple[list[Any], int]:
    """All objects of a database, and the number of rows ever written to it.

    A session's writes count once it is gone, which may be after its client has closed it.
    """
    with postgresql().connect(dsn, for_handlers=True) as session:
        until(lambda: session.value(_OTHERS) == 0, what="nobody else is in the database")
        return session.all(_OBJECTS), session.value(_WRITTEN)


@pytest.fixture
def var() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="pgqueue-by-url-"))
    folder.chmod(0o755)
    yield folder / "var"
    reset(folder / "var")
    shutil.rmtree(folder)


@pytest.fixture
def queues(database: str) -> str:
    """The recorded queues, without tables of ours."""
    restore_recording.restore(database)
    return database


def test_up_without_console_tables_names_migrate_and_creates_nothing(var: Path, queues: str) -> None:
    before = state_of(queues)
    said = up(Product(var, free_port(), DATABASE_URL=queues))
    assert said.returncode == 1
    assert "manage.py migrate" in said.stderr
    assert state_of(queues) == before
    none_left(var, 1)


def test_a_database_that_does_not_answer_is_named_without_its_password(var: Path) -> None:
    url = f"postgresql://me:secret@127.0.0.1:{free_port()}/console"
    said = up(Product(var, free_port(), DATABASE_URL=url))
    assert said.returncode == 1
    assert "DATABASE_URL" in said.stderr
    assert "secret" not in said.stderr + said.stdout


def test_queues_by_url_are_sampled_and_nothing_is_written_there(var: Path, queues: str, databases: Databases) -> None:
    before = state_of(queues)
    with databases.clone("console") as console:
        product = Product(
            var, free_port(), DATABASE_URL=console, QUEUES_URL=queues, PGQUEUE_QUEUE_SCHEMAS="public,Legacy"
        )
        try:
            product.start()
            until(lambda: samples(console) >= 20, what="the recorded queues are sampled")
            until(lambda: sampled_again(console), what="they are sampled again")
        finally:
            assert product.stop() == 0
        none_left(var, 1)
        assert nobody_was_made(console)
    assert state_of(queues) == before
    assert not (var / "postgresql").exists()
    assert "Login" not in product.said()


def samples(console: str) -> int:
    return int(one(console, "select count(*) from pgqueue_console.pgqueue_latestsample"))


def sampled_again(console: str) -> bool:
    return bool(
        one(
            console,
            "select count(*) > 0 from pgqueue_console.pgqueue_latestsample where at > changed_at + interval '2 s'",
        )
    )


def nobody_was_made(console: str) -> bool:
    """Whether there is no login, no endpoint and no queue that is ingested."""
    return bool(
        one(
            console,
            "select not exists (select from pgqueue_console.auth_user)"
            " and not exists (select from pgqueue_console.pgqueue_endpoint where ours)"
            " and not exists (select from pgqueue_console.pgqueue_queue where ingest)",
        )
    )


def one(dsn: str, query: str) -> Any:
    with postgresql().connect(dsn, for_handlers=True) as session:
        return session.value(query)
