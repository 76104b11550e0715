"""``python -m bench.wire [folder]``: starts a separate server, writes the dump and prints its paths."""

import logging
import sys
from pathlib import Path

from bench.folder import temporary
from bench.wire import make
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL


def main() -> None:
    logging.getLogger("pgqueue_admin").addHandler(logging.NullHandler())  # everything fails on purpose
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "var/wire").resolve()
    with temporary() as place:
        server = PostgreSQL(place / "postgresql")
        server.start()
        try:
            with postgresql().connect(server.dsn(), for_handlers=True) as admin:
                admin.run("create database wire")
            for path in make.write(server.dsn("wire"), folder):
                print(path)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
