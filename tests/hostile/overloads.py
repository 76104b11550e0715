"""What a database user makes in ``public`` to have it run by others: overloads that fit their values better.

PostgreSQL takes an exact match of types wherever it stands in the path, before one that needs a cast. Each leaves a
trace that no rollback undoes, and fails.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

NAME = "eve"
_BODY = "begin perform pg_catalog.nextval(''public.ran''); raise ''the code of a stranger ran''; end"
_MAKE = f"""
create sequence public.ran;
grant all on sequence public.ran to public;
create function public.counted(bigint, anyelement) returns bigint language plpgsql as '{_BODY}';
do $do$
declare
    fits record;
    each record;
    made text;
begin
    for fits in
        select * from (values ('text', 'varchar'), ('numeric', 'integer'), ('numeric', 'bigint'),
            ('double precision', 'integer'), ('double precision', 'bigint'), ('anyelement', 'varchar'),
            ('anyelement', 'bigint'), ('"any"', 'varchar'), ('"any"', 'bigint'), ('"any"', 'integer')
        ) fits (asked, given)
    loop
        for each in  -- one argument after the other, then all of them
            select p.oid, p.proname::text as name, p.prorettype::regtype::text as result, args.types
            from pg_catalog.pg_proc p
            cross join lateral (
                select string_agg(case when a.type::regtype::text = fits.asked and which in (0, a.at)
                    then fits.given else a.type::regtype::text end, ', ' order by a.at) as types
                from generate_series(0, p.pronargs) which, unnest(p.proargtypes) with ordinality a (type, at)
                group by which
            ) args
            where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f' and p.pronargs between 1 and 4
                and fits.asked::regtype = any(p.proargtypes::oid[]) and p.proname not like '%_in' and not p.proretset
        loop
            begin
                execute format('create function public.%I(%s) returns %s language plpgsql as %L', each.name,
                    each.types, replace(each.result, 'anyelement', fits.given), '{_BODY}');
            exception when others then null;
            end;
        end loop;
        for each in
            select o.oprname::text as name, sides.l, sides.r, o.oprresult::regtype::text as result
            from pg_catalog.pg_operator o
            cross join lateral (values
                (fits.given, fits.given), (fits.given, o.oprright::regtype::text),
                (o.oprleft::regtype::text, fits.given)
            ) sides (l, r)
            where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprkind = 'b'
                and fits.asked::regtype in (o.oprleft, o.oprright)
        loop
            begin
                made := 'op_' || md5(each::text || fits::text);
                execute format('create function public.%I(%s, %s) returns %s language plpgsql as %L', made, each.l,
                    each.r, each.result, '{_BODY}');
                execute format('create operator public.%s (function = public.%I, leftarg = %s, rightarg = %s)',
                    each.name, made, each.l, each.r);
            exception when others then null;
            end;
        end loop;
    end loop;
    for each in
        select name, type from unnest('{{count,max,min,sum,avg,array_agg,bool_or,percentile,jsonb_agg}}'::text[]) name,
            unnest('{{bigint,integer,varchar,numeric,timestamptz,boolean}}'::text[]) type
    loop
        execute format('create aggregate public.%I(%s) (sfunc = public.counted, stype = bigint, initcond = 0)',
            each.name, each.type);
    end loop;
end $do$
"""


@contextmanager
def made(owner: Connection, dsn: str) -> Iterator[None]:
    """By somebody who may create in ``public``, and nothing else."""
    owner.run(f"create role {NAME} login password '{NAME}'")
    owner.run(f"grant usage, create on schema public to {NAME}")
    place = urlsplit(dsn)
    with postgresql().connect(f"postgresql://{NAME}:{NAME}@{place.hostname}:{place.port}{place.path}") as eve:
        for statement in _MAKE.split(";\n", 3):
            eve.run(statement)
    yield
    owner.run(f"drop owned by {NAME} cascade")
    owner.run(f"drop role {NAME}")
