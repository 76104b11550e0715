"""Sessions that only look: each look is a transaction that only reads, and runs no view or policy of anybody's.

A view runs functions of its maker's as the reader, and a table may become one between two looks.
"""

from typing import Any

import psycopg

BEGIN = "begin read only"
# Not with the start: servers older than August 2024 do not know it, and would refuse the session.
_REFUSE = """select pg_catalog.set_config(name, 'view', false) from pg_catalog.pg_settings
where name operator(pg_catalog.=) 'restrict_nonsystem_relation_kind'"""


def fit(raw: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Whatever the session's default is set to from within: each transaction that is begun with it says so itself."""
    raw.read_only = True
    raw.execute(_REFUSE)
    return raw
