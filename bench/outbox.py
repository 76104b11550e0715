"""The cost of an outbox: the same receive with and without one, clean-up, and look-ups among many records.

The floor is the same endpoint without an outbox in the default mode: its handlers write by context.connection, in one
commit. ``ROUNDS``, ``MESSAGES`` and ``RECORDS`` in the environment make it shorter; ``make bench-outbox``.
"""

import os
import statistics
import subprocess
import sys
import time
from datetime import timedelta
from uuid import uuid4

from bench.engine_queues import Queues
from bench.folder import temporary
from bench.parts import Part, measure
from bench.table import Row, row
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.outbox_store import OutboxStore
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL

ROUNDS = int(os.environ.get("ROUNDS", 5))
MESSAGES = int(os.environ.get("MESSAGES", 10_000))
RECORDS = int(os.environ.get("RECORDS", 10_000_000))
CONF = {"max_wal_size": "4GB", "shared_buffers": "2GB"}
OLD = MESSAGES * 20
MANY_OLD = max(5 * OLD, 200_000)  # enough to keep clean-up busy during the receive
LOOKS = 5_000
TABLE, FEW = Address("public", "Engine_OutboxData"), Address("public", "Few_OutboxData")
_FILL = """insert into "Engine_OutboxData" ("MessageId", "Dispatched", "DispatchedAt", "Operations", "CreatedAt")
    select gen_random_uuid(), true, now() at time zone 'utc' - %s * interval '1 day', '[]', now()
    from generate_series(1, %s)"""

_LEFT = (
    """select count(*) from "Engine_OutboxData" where "DispatchedAt" < now() at time zone 'utc' - interval '7 days'"""
)


class Bench:
    def __init__(self, server: PostgreSQL):
        self.queues = Queues(server)
        self.session = self.queues.connection
        self.store = postgresql().outbox_store(TABLE)
        self.session.run("create table charges (number integer)")
        self.store.create(self.session)

    def parts(self) -> dict[str, Part]:
        return {
            "receive": self.receives,
            "cleanup": lambda: [self.cleanup()],
            "beside": lambda: [self.beside_cleanup()],
            "lookup": lambda: [self.lookup()],
        }

    def receives(self) -> list[Row]:
        return [
            self.against("optimistic: one row and one send a message, 8 at once", "optimistic", 0.45),
            self.against("pessimistic: one row and one send a message, 8 at once", "pessimistic", 0.35),
            self.against("optimistic, handler does nothing (no target)", "optimistic_empty", 0, "plain_empty"),
        ]

    def beside_cleanup(self) -> Row:
        """The same receive while the endpoint's own clean-up deletes: it is paced, and must not run out of records."""
        name = "optimistic, beside the endpoint's own clean-up, against without it"
        return self.against(name, "optimistic_cleaned", 0.9, "optimistic_kept", old=MANY_OLD)

    def against(self, name: str, what: str, target: float, floor: str = "plain", old: int = 0) -> Row:
        """``old``: number of expired records in the table."""
        found: dict[str, list[float]] = {what: [], floor: []}
        for _ in range(ROUNDS):
            for each, values in found.items():
                self.queues.empty()
                self.session.run('truncate "Engine_OutboxData", charges')
                if old:
                    self.fill(8, old)
                self.queues.fill("Engine", MESSAGES)
                values.append(self.side(each))
                self.insist(old, each)
        return row(name, statistics.median(found[what]), "/s", floor=statistics.median(found[floor]), target=target)

    def insist(self, old: int, what: str) -> None:
        """Check that clean-up deleted nothing, or some but not all: otherwise the figure measures something else."""
        left = self.session.value(_LEFT)
        if not (0 < left < old if what.endswith("cleaned") else left == old):
            raise SystemExit(f"{what}: of {old:,} old records {left:,} are left; measured is not what is meant")

    def side(self, what: str) -> float:
        asked = [sys.executable, "-m", "bench.outbox_side", self.queues.dsn, what, str(MESSAGES)]
        return float(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)

    def cleanup(self) -> Row:
        """Records per second, without the pauses between batches; the ratio is to the target of 50,000."""
        rates = []
        for _ in range(ROUNDS):
            self.fill(8, OLD)
            started = time.monotonic()
            while self.store.purge(self.session, timedelta(days=7), 4000):
                pass
            rates.append(OLD / (time.monotonic() - started))
        return row("clean-up, batches of 4,000", statistics.median(rates), "/s", floor=50_000, target=1)

    def lookup(self) -> Row:
        """Alternate between two tables with their indexes in memory: the larger index is deeper."""
        few = postgresql().outbox_store(FEW)
        few.create(self.session)
        for table, records in ((FEW, 1_000), (TABLE, RECORDS)):
            self.fill(1, records, table)
            self.session.run("set enable_seqscan = off")
            self.session.value(f'select count(*) from "{table.table}"')
            self.session.run("reset enable_seqscan")
        self.session.run("checkpoint")  # the writes of filling must not count for the look-ups
        rates: dict[str, list[float]] = {"many": [], "few": []}
        for _ in range(ROUNDS):
            rates["few"].append(self.looks(few))
            rates["many"].append(self.looks(self.store))
        floor = statistics.median(rates["few"])
        name = f"look for a record among {RECORDS:,} against 1,000"
        return row(name, statistics.median(rates["many"]), "/s", floor=floor, target=0.9)

    def looks(self, store: OutboxStore) -> float:
        """Look-ups per second for new ids, as most are, anywhere in the index."""
        ids = [str(uuid4()) for _ in range(LOOKS)]
        started = time.monotonic()
        for each in ids:
            self.session.one(*store.finding(each))
        return LOOKS / (time.monotonic() - started)

    def fill(self, days: int, records: int, table: Address = TABLE) -> None:
        self.session.run(f'truncate "{table.table}"')
        self.session.run(_FILL.replace(TABLE.table, table.table), [days, records])
        self.session.run(f'vacuum analyze "{table.table}"')


def main() -> None:
    with temporary() as folder:
        server = PostgreSQL(folder / "postgresql", conf=CONF)
        server.start()
        try:
            measure("outbox", Bench(server).parts())
        finally:
            server.stop()


if __name__ == "__main__":
    main()
