"""Log lines say which message they are about, as fields."""

import json
import logging

import pytest

from pgqueue_admin.transport.logs import FIELDS, JsonLines, OfMessage
from tests.transport.spy import finished, rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"


class Collected(logging.Handler):
    def __init__(self):
        super().__init__()
        self.addFilter(OfMessage())
        self.setFormatter(JsonLines())
        self.lines = []

    def emit(self, record):
        self.lines.append(json.loads(self.format(record)))


@pytest.fixture
def collected():
    handler = Collected()
    logging.getLogger().addHandler(handler)
    yield handler.lines
    logging.getLogger().removeHandler(handler)


def test_what_a_handler_logs_and_what_is_logged_of_its_message(endpoint, handlers, collected):
    @handlers.handle(PLACE)
    def place(order, context):
        logging.getLogger("shop").warning("no card of %s", "Zoë")
        raise ValueError("refused")

    message_id = endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"), 20)
    finished(endpoint)
    fields = {"message_id": message_id, "message_type": PLACE, "queue": "Sales", "correlation_id": message_id}
    said = [line for line in collected if line["logger"] == "shop"]
    assert len(said) == 6
    assert said[0].items() >= {**fields, "text": "no card of Zoë", "level": "WARNING"}.items()
    assert said[0]["conversation_id"]
    retried = [line for line in collected if "is retried" in line["text"]]
    assert len(retried) == 5
    assert all(line.items() >= fields.items() and "ValueError: refused" in line["exception"] for line in retried)
    (ended,) = [line for line in collected if "will not be tried again" in line["text"]]
    assert ended.items() >= fields.items()


def test_a_line_about_no_message_has_no_fields(collected):
    logging.getLogger("shop").warning("closed on Sundays")
    (line,) = [line for line in collected if line["logger"] == "shop"]
    assert not set(FIELDS) & set(line)
