"""The demo's failures on real processes: messages die, are archived, and succeed when a person retries them (C4)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.archive import dead_messages, store
from pgqueue_admin.archive.messages import ArchivedMessage, ArchiveFilter
from pgqueue_admin.demo import contracts, install
from pgqueue_admin.dialects import Connection
from pgqueue_admin.transport import Endpoint
from tests.waiting import until
from tests.workers.host import House

HANDLED = """select headers::json ->> 'NServiceBus.ProcessingEndpoint' as endpoint from "demo"."audit" """
ORDER = {"order": "t-1", "total": 95.25, "carrier": "Parcelways"}


@pytest.fixture
def shop_runs(console_database: str, tmp_path: Path) -> Iterator[Endpoint]:
    install.install()
    house = House(console_database, console_database, tmp_path / "var", apps="pgqueue_admin.demo")
    house.environment["PGQUEUE_QUEUE_SCHEMAS"] = contracts.SCHEMA
    house.supervise("--without", "sampler", "--without", "alerter")
    for name in contracts.ENDPOINTS:
        house.running(1, name)
    customer = Endpoint("Customer", console_database, schema=contracts.SCHEMA)
    yield customer
    customer.stop()
    house.close()


@pytest.mark.parametrize(
    ("trouble", "exception", "queue"),
    [
        ({"suspicious": True}, "HeldByFraudCheck", contracts.BILLING),
        ({"carrier": "Slowpost"}, "AddressUnclear", contracts.SHIPPING),
    ],
)
def test_a_failure_that_is_retried_goes_all_the_way_to_succeeded(
    shop_runs: Endpoint,
    console_database: str,
    connect: Callable[[str], Connection],
    trouble: dict[str, Any],
    exception: str,
    queue: str,
) -> None:
    look = connect(console_database)
    shop_runs.send(
        contracts.queue(contracts.ORDERS), {**ORDER, **trouble}, type=contracts.PLACE_ORDER, headers=reply_to_web()
    )

    def dead() -> list[ArchivedMessage]:
        found = store.page(look, ArchiveFilter(exception=exception)).messages
        return [each for each in found if "t-1" in each.exception_message]

    (message,) = until(dead, what="dead, in the archive")
    assert (message.queue, message.state) == (contracts.queue(queue), "dead")
    (outcome,) = dead_messages.retry(look, [message.id], "ana", ours=lambda address: True)
    assert outcome.result == "done"

    def state() -> str:
        archived = store.get(look, message.id)
        assert archived is not None
        return str(archived.state)

    until(lambda: state() == "succeeded", what="succeeded")
    assert queue in {row.endpoint for row in look.all(HANDLED)}, "the copy from which Trends knows of it"


def reply_to_web() -> dict[str, str | None]:
    return {"NServiceBus.ReplyToAddress": contracts.queue(contracts.WEB)}
