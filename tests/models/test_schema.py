"""The console's tables live in a schema where no other role may create: what `migrate` creates, moves and refuses."""

from collections.abc import Callable, Iterator

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from pgqueue_admin.config import env
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Queue
from tests.console.sampled import elsewhere
from tests.databases import Databases

PATH = "pg_catalog, pgqueue_console, pg_temp"
_WHERE = """select n.nspname::text, count(*) filter (where c.relname = 'pgqueue_queue') as queue
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'S', 'i') and n.nspname in ('public', 'pgqueue_console') group by 1 order by 1"""


@pytest.fixture
def admin(databases: Databases, connect: Callable[[str], Connection]) -> Iterator[Connection]:
    """An administrator of an empty database; the console connects as a role without special rights."""
    with databases.clone("empty") as dsn:
        connection = connect(dsn)
        connection.run("create role plain login password 'plain'; create role eve login password 'eve'")
        plain = dsn.replace(dsn.split("@")[0], "postgresql://plain:plain")
        entry = env.for_console(env.database(plain, "DATABASE_URL"))
        with databases.as_django(dsn, ("default",)), elsewhere("default", **entry):
            yield connection
        connection.run("drop owned by plain, eve cascade; drop role plain, eve")


def migrate() -> None:
    call_command("migrate", verbosity=0, skip_checks=True)


def shown() -> str:
    with connections["default"].cursor() as cursor:
        return str(cursor.execute("show search_path").fetchone()[0])


def makes_it(admin: Connection, database: str) -> None:
    admin.run(f"grant create on database {database} to plain")


def is_given_it(admin: Connection, database: str) -> None:
    """The role owns this one schema."""
    admin.run("create schema pgqueue_console authorization plain")


def is_let_into_it(admin: Connection, database: str) -> None:
    """The schema is a superuser's; the role may create in it."""
    admin.run("create schema pgqueue_console; grant usage, create on schema pgqueue_console to plain")


@pytest.mark.parametrize("gets", [makes_it, is_given_it, is_let_into_it])
def test_its_tables_are_in_a_schema_of_its_own(gets: Callable[[Connection, str], None], admin: Connection) -> None:
    """Nothing is created in ``public``, whatever search path the URL gives."""
    admin.run("create schema app authorization plain; revoke all on schema public from public")
    gets(admin, str(admin.value("select current_database()")))
    connections["default"].settings_dict["OPTIONS"]["options"] = env.for_console(
        {"OPTIONS": {"options": "-c search_path=app"}}
    )["OPTIONS"]["options"]
    migrate()
    migrate()
    assert shown() == PATH
    assert [row.nspname for row in admin.all(_WHERE)] == ["pgqueue_console"]
    assert Queue.objects.create(schema="public", table="Sales", kind="input").pk == 1


@pytest.mark.parametrize(
    ("made", "cure"),
    [
        ("", "create schema pgqueue_console authorization plain"),
        ("create schema pgqueue_console authorization eve", "alter schema pgqueue_console owner to plain"),
        (
            "create schema pgqueue_console authorization eve; grant all on schema pgqueue_console to plain",
            "alter schema pgqueue_console owner to plain",
        ),
        (
            "create schema pgqueue_console authorization plain; grant create on schema pgqueue_console to eve",
            "revoke create on schema pgqueue_console from eve",
        ),
        (
            "create schema pgqueue_console authorization plain; grant create on schema pgqueue_console to public",
            "revoke create on schema pgqueue_console from public",
        ),
    ],
)
def test_where_others_could_create_nothing_is_made_and_the_cure_is_named(
    made: str, cure: str, admin: Connection
) -> None:
    """Running the statement from the message verbatim is enough."""
    if made:
        admin.run(made)
    with pytest.raises(CommandError) as refused:
        migrate()
    said = str(refused.value).replace('"', "")
    assert cure in said
    assert not admin.all(_WHERE), "nothing was made"
    admin.run(str(refused.value).rpartition(": ")[2])
    migrate()


def test_old_console_database_is_refused_in_one_sentence(admin: Connection) -> None:
    makes_it(admin, str(admin.value("select current_database()")))
    migrate()
    Queue.objects.create(schema="public", table="Sales", kind="input")
    admin.run("update pgqueue_console.django_migrations set name = '0034_files_noted' where app = 'pgqueue'")
    with pytest.raises(CommandError, match=r"before 0.1.0.*make reset.*drop schema pgqueue_console cascade"):
        migrate()
    assert Queue.objects.count() == 1, "nothing was changed"


def test_its_tables_in_public_are_refused_as_well(admin: Connection) -> None:
    """The first unreleased versions had their tables there."""
    makes_it(admin, str(admin.value("select current_database()")))
    migrate()
    admin.run("""grant create on schema public to plain; do $$ declare each text; begin
        for each in select tablename from pg_tables where schemaname = 'pgqueue_console' loop
            execute format('alter table pgqueue_console.%I set schema public', each);
        end loop;
    end $$; update public.django_migrations set name = '0001_before' where app = 'pgqueue'""")
    before = admin.all(_WHERE)
    with pytest.raises(CommandError, match=r"in the schema public.*before 0.1.0"):
        migrate()
    assert admin.all(_WHERE) == before


def test_foreign_django_tables_in_public_are_not_touched(admin: Connection) -> None:
    admin.run("""grant create on schema public to plain; set role plain;
        create table public.django_migrations (app text, name text);
        insert into public.django_migrations values ('shop', '0001_initial'); reset role""")
    makes_it(admin, str(admin.value("select current_database()")))
    migrate()
    assert admin.value("select count(*) from public.django_migrations") == 1
    assert Queue.objects.count() == 0


def test_a_ledger_of_another_role_is_no_affair_of_ours(admin: Connection) -> None:
    """``public`` holds another Django project; its tables are left alone."""
    admin.run(
        "create table public.django_migrations (app text); insert into public.django_migrations values ('pgqueue')"
    )
    makes_it(admin, str(admin.value("select current_database()")))
    migrate()
    assert admin.value("select count(*) from public.django_migrations") == 1
    assert Queue.objects.count() == 0


def test_migrate_plan_and_check_create_nothing(admin: Connection) -> None:
    makes_it(admin, str(admin.value("select current_database()")))
    call_command("migrate", verbosity=0, skip_checks=True, plan=True)
    with pytest.raises(SystemExit):
        call_command("migrate", verbosity=0, skip_checks=True, check_unapplied=True)
    assert not admin.value("select exists (select from pg_namespace where nspname = 'pgqueue_console')")
