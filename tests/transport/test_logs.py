"""Log lines name their message in fields."""

import io
import json
import logging

import pytest
from django.utils.module_loading import import_string

from pgqueue_admin.config import base_settings
from pgqueue_admin.transport.logs import FIELDS, JsonFormatter, MessageLogFilter
from tests.transport.recording_observer import finished, rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"


class Collected(logging.Handler):
    def __init__(self):
        super().__init__()
        self.addFilter(MessageLogFilter())
        self.setFormatter(JsonFormatter())
        self.lines = []

    def emit(self, record):
        self.lines.append(json.loads(self.format(record)))


@pytest.fixture
def collected():
    handler = Collected()
    logging.getLogger().addHandler(handler)
    yield handler.lines
    logging.getLogger().removeHandler(handler)


def test_log_lines_of_a_handler_and_of_its_message_have_its_fields(endpoint, handlers, collected):
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


@pytest.fixture
def written():
    """The text log, by the formatter of the settings."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    line = dict(base_settings.LOGGING["formatters"]["line"])
    handler.setFormatter(import_string(line.pop("()"))(**line))
    log = logging.getLogger("shop.forged")
    log.addHandler(handler)
    yield stream
    log.removeHandler(handler)


FORGED = "2026-11-26 14:00:00,000 CRITICAL pgqueue.supervisor[1] everything is lost"


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\x1b[2K\n"])
def test_nothing_that_came_with_a_message_writes_a_line_of_its_own(written, end):
    logging.getLogger("shop.forged").warning("Message %s failed: %s", f"x{end}{FORGED}", "Zoë\tC:\\new")
    (line,) = written.getvalue().splitlines()
    assert " WARNING shop.forged[" in line
    assert line.endswith(f"Message x{repr(end)[1:-1]}{FORGED} failed: Zoë\tC:\\new")


def test_a_traceback_is_many_lines_of_which_none_begins_as_one_of_ours(written):
    try:
        raise ValueError(f"refused\r\n{FORGED}")
    except ValueError:
        logging.getLogger("shop.forged").exception("failed")
    lines = written.getvalue().splitlines()
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[2].startswith('  File "')
    assert lines[-2:] == ["ValueError: refused\\r", f" {FORGED}"]


def test_json_says_what_was_said():
    record = logging.LogRecord("shop", logging.WARNING, __file__, 1, "Message %s", (f"x\n{FORGED}",), None)
    assert json.loads(JsonFormatter().format(record))["text"] == f"Message x\n{FORGED}"


def test_a_line_about_no_message_has_no_fields(collected):
    logging.getLogger("shop").warning("closed on Sundays")
    (line,) = [line for line in collected if line["logger"] == "shop"]
    assert not set(FIELDS) & set(line)
