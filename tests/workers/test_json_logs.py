"""PGQUEUE_LOG_FORMAT=json: each log line is a JSON object; an endpoint's lines name the message it handles."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from pgqueue_admin.transport import Endpoint
from tests.waiting import until
from tests.workers.host import ROOT, House, want
from tests.workers.shop.handlers import TYPE

SAYS = "import logging; logging.getLogger({name!r}).warning('it rained'); logging.getLogger({name!r}).info('a little')"
SET_UP = {
    "manage.py": "import django; django.setup()",
    "celery": "from pgqueue_admin.config.celery import app; app.log.setup(loglevel='INFO')",
    "uvicorn": "import uvicorn; uvicorn.Config('pgqueue_admin.config.asgi:application', access_log=False).load()",
}
LOGGERS = {"manage.py": "pgqueue_admin.workers", "celery": "celery.worker", "uvicorn": "uvicorn.error"}


def lines(program: str, format: str, logger: str = "") -> list[str]:
    here = {
        **os.environ,
        "PGQUEUE_LOG_FORMAT": format,
        "SECRET_KEY": "of the tests",
        "DATABASE_URL": "postgresql://a@127.0.0.1:1/b",
    }
    here["DJANGO_SETTINGS_MODULE"] = (
        "pgqueue_admin.config.web_settings" if program == "uvicorn" else "pgqueue_admin.config.settings"
    )
    code = f"{SET_UP[program]}; {SAYS.format(name=logger or LOGGERS[program])}"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=here, capture_output=True, text=True, check=False)
    return ran.stderr.splitlines()


@pytest.mark.parametrize("program", SET_UP)
def test_every_kind_of_program(program: str) -> None:
    said = [json.loads(line) for line in lines(program, "json")]
    ours = [(each["level"], each["logger"], each["text"]) for each in said if each["logger"] == LOGGERS[program]]
    assert ours == [("WARNING", LOGGERS[program], "it rained"), ("INFO", LOGGERS[program], "a little")]


def test_default_log_line_is_plain_text() -> None:
    assert any("WARNING pgqueue_admin.workers[" in line for line in lines("manage.py", "line"))


@pytest.mark.parametrize("format", ["line", "json"])
def test_no_line_is_written_for_each_request(format: str) -> None:
    """Their addresses contain what users search for."""
    assert not [line for line in lines("uvicorn", format, "uvicorn.access") if "a little" in line]


def test_a_word_that_is_none_is_refused() -> None:
    assert lines("manage.py", "xml") == ["PGQUEUE_LOG_FORMAT must be line or json; it is xml."]


def test_a_worker_and_its_supervisor(house: House, sales: Endpoint) -> None:
    house.environment["PGQUEUE_LOG_FORMAT"] = "json"
    want(1, immediate_retries=0)
    supervisor = house.supervise()
    house.running(1)
    message_id = sales.send("Sales", {"fail": True}, type=TYPE)
    file = house.var / "log" / "Sales.1.log"
    failed = until(lambda: about(file.read_text(), message_id), what="the worker says which message failed")
    assert (failed[0]["queue"], failed[0]["message_type"]) == ("Sales", TYPE)
    supervisor.terminate()
    said, _ = supervisor.communicate()
    assert [
        each["text"] for line in said.splitlines() if (each := json.loads(line))["text"].startswith("Started Sales")
    ]


def about(text: str, message_id: str) -> list[dict[str, Any]]:
    return [each for line in text.splitlines() if (each := json.loads(line)).get("message_id") == message_id]
