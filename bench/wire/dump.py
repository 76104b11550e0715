"""Writes a database as plain SQL for psql to restore, with all that the catalog knows of its tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from psycopg import sql

from pgqueue_admin.dialects import Address, Connection

_TABLES = """
    select n.nspname as schema, c.relname as "table", c.oid, array_to_string(c.reloptions, ', ') as options
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' order by 1, 2
"""
_COLUMNS = """
    select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull,
           a.attgenerated <> '' as generated, pg_get_expr(d.adbin, d.adrelid) as default
    from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = %(oid)s and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
_SEQUENCES = """
    select n.nspname as schema, c.relname as name, format_type(s.seqtypid, null) as type, a.attname as column,
           pg_sequence_last_value(c.oid) as last
    from pg_depend d
    join pg_sequence s on s.seqrelid = d.objid
    join pg_class c on c.oid = s.seqrelid
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
    where d.refobjid = %(oid)s and d.deptype = 'a' and d.classid = 'pg_class'::regclass
"""
_CONSTRAINTS = """
    select conname as name, pg_get_constraintdef(oid) as definition from pg_constraint
    where conrelid = %(oid)s and contype in ('p', 'u', 'c') order by contype, conname
"""
_INDEXES = """
    select pg_get_indexdef(i.indexrelid) as definition from pg_index i
    where i.indrelid = %(oid)s and not exists (select from pg_constraint c where c.conindid = i.indexrelid)
"""
_PREAMBLE = """--
-- Queue tables as the engine of pgqueue-admin left them.
-- Restore: psql -X -q -v ON_ERROR_STOP=1 -d <empty database> -f <this file>
--

SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SET TimeZone = 'UTC';

"""


def write(connection: Connection, path: Path) -> None:
    """Write every table from one snapshot."""
    with connection.transaction(), path.open("wb") as file:
        connection.run("set transaction isolation level repeatable read, read only")
        connection.run("set local search_path = pg_catalog")  # so definitions include schemas
        file.write(_PREAMBLE.encode())
        tables = connection.all(_TABLES)
        for schema in sorted({table.schema for table in tables} - {"public"}):
            file.write(f"CREATE SCHEMA {_quoted(schema)};\n\n".encode())
        for table in tables:
            for part in _table(connection, table):
                file.write(part)


def _table(connection: Connection, table: Any) -> Iterator[bytes]:
    named = {"oid": table.oid}
    name = _quoted(table.schema, table.table)
    columns, sequences = connection.all(_COLUMNS, named), connection.all(_SEQUENCES, named)
    for each in sequences:
        yield f"CREATE SEQUENCE {_quoted(each.schema, each.name)} AS {each.type};\n".encode()
    lines = ",\n".join(f"    {_column(column)}" for column in columns)
    options = f" WITH ({table.options})" if table.options else ""
    yield f"CREATE TABLE {name} (\n{lines}\n){options};\n".encode()
    yield from _data(connection, name, [_quoted(each.name) for each in columns if not each.generated])
    for each in sequences:
        yield _sequence(each, name).encode()
    for each in connection.all(_CONSTRAINTS, named):
        yield f"ALTER TABLE {name} ADD CONSTRAINT {_quoted(each.name)} {each.definition};\n".encode()
    for each in connection.all(_INDEXES, named):
        yield f"{each.definition};\n".encode()
    yield b"\n"


def _column(column: Any) -> str:
    made = f" GENERATED ALWAYS AS ({column.default}) STORED" if column.generated else ""
    default = f" DEFAULT {column.default}" if column.default and not column.generated else ""
    return f"{_quoted(column.name)} {column.type}{made}{default}{' NOT NULL' * column.attnotnull}"


def _data(connection: Connection, name: str, columns: list[str]) -> Iterator[bytes]:
    these = f"{name} ({', '.join(columns)})"
    yield f"COPY {these} FROM stdin;\n".encode()
    with connection.raw.cursor() as cursor, cursor.copy(f"copy {these} to stdout") as copy:
        yield from map(bytes, copy)
    yield b"\\.\n"


def _sequence(sequence: Any, table: str) -> str:
    name = _quoted(sequence.schema, sequence.name)
    owned = f"ALTER SEQUENCE {name} OWNED BY {table}.{_quoted(sequence.column)};\n"
    if sequence.last is None:
        return owned
    return owned + f"SELECT pg_catalog.setval({sql.Literal(name).as_string(None)}, {sequence.last}, true);\n"


def _quoted(*names: str) -> str:
    return sql.Identifier(*names).as_string(None)


def rows_of(connection: Connection) -> dict[Address, int]:
    """The number of rows in each table."""
    tables = [Address(table.schema, table.table) for table in connection.all(_TABLES)]
    return {table: connection.value(f"select count(*) from {_quoted(*table)}") for table in tables}
