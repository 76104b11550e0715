"""Another user of the queues' database, no superuser, who may create in ``public``: what he made there raises."""

from collections.abc import Iterator
from contextlib import contextmanager

from pgqueue_admin.dialects import Connection

RAN = "the code of a stranger ran"
_TYPES = ("name", "text", "varchar", "integer", "bigint", "numeric", "uuid", "oid", "timestamp", "timestamptz")
# Of types that the catalog has no exact match for: PostgreSQL prefers these, wherever they stand in the path.
FUNCTIONS = (
    ("mod(numeric, integer)", "numeric"),
    ("mod(bigint, integer)", "bigint"),
    ("mod(bigint, bigint)", "bigint"),
    ("starts_with(name, text)", "boolean"),
    ("starts_with(name, name)", "boolean"),
    ("starts_with(varchar, text)", "boolean"),
    ("jsonb_object_agg(name, text)", "jsonb"),
    ("array_agg(bigint)", "bigint[]"),
    ("array_agg(text)", "text[]"),
    ("concat(text, text)", "text"),
    ("floor(integer)", "numeric"),
    ("left(varchar, integer)", "text"),
    ("length(varchar)", "integer"),
    ("right(varchar, integer)", "text"),
    ("octet_length(varchar)", "integer"),
    ("unnest(bigint[])", "setof bigint"),
    ("unnest(integer[])", "setof integer"),
    ("unnest(text[])", "setof text"),
    ("unnest(uuid[])", "setof uuid"),
    ("clock_timestamp()", "timestamptz"),
    ("now()", "timestamptz"),
    ("generate_series(integer, bigint)", "setof bigint"),
    ("set_config(name, text, boolean)", "text"),
)
AGGREGATES = (("count", "integer"), ("count", "bigint"), ("count", "boolean"), ("count", "uuid"), ("count", "text"))
OPERATORS = [
    *[(operator, left, right) for operator in ("=", "<>") for left in _TYPES for right in _TYPES],
    *[(operator, left, right) for operator in ("<", "<=", ">", ">=") for left in _TYPES for right in _TYPES],
    *[("||", left, right) for left in _TYPES for right in ("name", "text", "varchar")],
    *[("*", left, "interval") for left in ("bigint", "integer", "numeric")],
    *[(operator, "numeric", "integer") for operator in ("*", "/", "+", "-")],
]


@contextmanager
def stranger(owner: Connection) -> Iterator[Connection]:
    """The owner's session with the stranger's rights."""
    owner.run("drop role if exists stranger")
    owner.run("create role stranger; grant create on schema public to stranger; set role stranger")
    try:
        yield owner
    finally:
        owner.run("reset role; drop owned by stranger; drop role stranger")


def overload(connection: Connection) -> None:
    """What the catalog has in the same form is left out: its own would be taken."""
    connection.run(
        "create function public.ran(name text) returns void language plpgsql as"
        f" $$ begin raise exception '{RAN}: %', name; end $$"
    )
    for function, result in FUNCTIONS:
        connection.run(_function(function, result))
    for name, kind in AGGREGATES:
        connection.run(_function(f"step_of_{name}(bigint, {kind})", "bigint"))
        connection.run(
            f"create aggregate public.{name}({kind}) (sfunc = public.step_of_{name}, stype = bigint, initcond = '0')"
        )
    for number, (operator, left, right) in enumerate(OPERATORS):
        if not connection.value(_IS_THERE, [operator, left, right]):
            result = "boolean" if operator in "<>=<>=" else "text" if operator == "||" else "numeric"
            result = "interval" if right == "interval" else result
            connection.run(_function(f"of_{number}({left}, {right})", result))
            form = f"function = public.of_{number}, leftarg = {left}, rightarg = {right}"
            connection.run(f"create operator public.{operator} ({form})")


_IS_THERE = """select exists (select from pg_operator where oprnamespace = 'pg_catalog'::regnamespace
    and oprname = %s and oprleft = %s::regtype and oprright = %s::regtype)"""


def _function(said: str, result: str) -> str:
    return (
        f"create function public.{said} returns {result} language plpgsql as $$"
        f" begin perform public.ran($s${said}$s$); end $$"
    )


def help_out(connection: Connection) -> None:
    """A helper that harms nobody, of a form as near to ours as the catalog's: which is meant cannot be told."""
    for said in ("mod(numeric, bigint)", "mod(integer, bigint)"):
        connection.run(f"create function public.{said} returns numeric language sql as 'select 0::numeric'")
