"""Code of a foreign role, placed where reads or deletes would run it. A sequence records whether it ran."""

from collections.abc import Iterator
from contextlib import contextmanager

from pgqueue_admin.dialects import Connection

_OLD = 'public."Billing old"'
_COLUMNS = "tableoid, ctid, id, expires, seq, stranger.says(headers) as headers, body"
PUT = {
    "view": f"""alter table public."Billing" rename to "Billing old";
        create view public."Billing" as select {_COLUMNS} from {_OLD}""",
    "index": 'create index stranger on public."Billing" (seq) where stranger.says(1)',
    "child": """create table stranger.child () inherits (public."Billing");
        insert into stranger.child (id, headers, body, seq) select gen_random_uuid(), headers, body, seq
            from public."Billing" order by seq limit 1;
        create trigger says before delete on stranger.child for each row execute function stranger.says()""",
}
_TAKEN_AWAY = {
    "view": f'drop view public."Billing"; alter table {_OLD} rename to "Billing"',
    "index": "drop index public.stranger",
    "child": "drop table stranger.child",
}
_SAYS = "perform nextval('stranger.ran')"
_FUNCTIONS = f"""
create role stranger;
create schema stranger;
grant usage on schema stranger to public;
create sequence stranger.ran;
grant usage on sequence stranger.ran to public;
create function stranger.says(text) returns text language plpgsql immutable as $$ begin {_SAYS}; return $1; end $$;
create function stranger.says(int) returns boolean language plpgsql immutable as $$ begin {_SAYS}; return true; end $$;
create function stranger.says() returns trigger language plpgsql as $$ begin {_SAYS}; return old; end $$;
alter function stranger.says(text) owner to stranger;
alter function stranger.says(int) owner to stranger;
alter function stranger.says() owner to stranger
"""


@contextmanager
def put_into_billing(session: Connection, where: str) -> Iterator[None]:
    _each(session, _FUNCTIONS)
    _each(session, PUT[where])
    session.run("alter sequence stranger.ran restart")  # creating an index runs it too
    try:
        yield
    finally:
        _each(session, _TAKEN_AWAY[where])
        session.run("drop schema stranger cascade")
        session.run("drop role stranger")


def has_run(session: Connection) -> bool:
    return bool(session.value("select is_called from stranger.ran"))


def _each(session: Connection, statements: str) -> None:
    for statement in statements.replace("; return", "\0").replace("; end", "\1").split(";"):
        session.run(statement.replace("\0", "; return").replace("\1", "; end"))
