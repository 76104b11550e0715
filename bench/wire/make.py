"""Fills an empty database and writes its dump and manifest."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.wire import dump, received, waiting
from bench.wire.case import TAG, Case
from bench.wire.shop import Shop
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.addressing import canonical
from pgqueue_admin.transport.wire.header_composer import WIRE_VERSION

ABOUT = (
    "Tables and rows as an engine in Python left them, for endpoints of NServiceBus to be started on. "
    f"Each case counts the rows of a table whose headers are like its pattern; messages carry {TAG} for it. "
    "Bodies are JSON with OrderId unless the case says otherwise."
)


def fill(dsn: str) -> list[Case]:
    """Fill the empty database with all cases."""
    shop = Shop(dsn)
    shop.set_up()
    try:
        return [*received.leave(shop), *waiting.leave(shop)]
    finally:
        shop.close()


def write(dsn: str, folder: Path) -> tuple[Path, Path]:
    """Fill, dump and describe. Raises SystemExit if a case has another number of rows than planned."""
    cases = fill(dsn)
    folder.mkdir(parents=True, exist_ok=True)
    plain, manifest = folder / "wire.sql", folder / "wire.json"
    with postgresql().connect(dsn, for_handlers=True) as connection:
        if wrong := [case for case in cases if case.found(connection) != case.rows]:
            raise SystemExit(f"Not as planned: {[(case.name, case.found(connection), case.rows) for case in wrong]}")
        manifest.write_text(json.dumps(described(connection, cases), indent=2, ensure_ascii=False), encoding="utf-8")
        dump.write(connection, plain)
    return plain, manifest


def described(connection: Connection, cases: list[Case]) -> dict[str, Any]:
    return {
        "about": ABOUT,
        "made_at_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "wire": f"NServiceBus {WIRE_VERSION}, PostgreSQL transport 9.1.0",
        "server": connection.value("show server_version"),
        "tables": {canonical(table): rows for table, rows in dump.rows_of(connection).items()},
        "cases": [case.said() for case in cases],
    }
