"""Everything in the catalog about a table that another program could depend on."""

from typing import Any

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql.addressing import canonical

_COLUMNS = """
    select attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,
           pg_get_expr(d.adbin, d.adrelid)
    from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where attrelid = %(table)s::regclass and attnum > 0 order by attnum
"""
_CONSTRAINTS = """
    select conname, contype, condeferrable, pg_get_constraintdef(oid)
    from pg_constraint where conrelid = %(table)s::regclass order by conname
"""
_INDEXES = """
    select pg_get_indexdef(indexrelid), indisprimary, indisunique
    from pg_index where indrelid = %(table)s::regclass order by 1
"""
_RELATION = (
    "select reloptions, relpersistence, relhastriggers, relrowsecurity from pg_class where oid = %(table)s::regclass"
)
_SEQUENCE = """
    select s.seqrelid::regclass::text, format_type(s.seqtypid, null), seqstart, seqincrement, seqmax, seqmin, seqcache,
           seqcycle, d.deptype, a.attname
    from pg_sequence s
    join pg_depend d on d.objid = s.seqrelid and d.refobjid = %(table)s::regclass
    join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
"""


def catalog(connection: Connection, address: Address) -> dict[str, list[Any]]:
    named = {"table": canonical(address)}
    parts = {
        "columns": _COLUMNS,
        "constraints": _CONSTRAINTS,
        "indexes": _INDEXES,
        "relation": _RELATION,
        "sequence": _SEQUENCE,
    }
    return {part: [tuple(row) for row in connection.all(query, named)] for part, query in parts.items()}
