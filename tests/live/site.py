"""A real web server on a test's database: uvicorn in its own process, used over HTTP."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.test import Client

from pgqueue_admin.config.env import installation
from pgqueue_admin.embedded import ports
from tests.waiting import PATIENCE, until

ROOT = Path(__file__).resolve().parent.parent.parent
QUICK = {"PGQUEUE_SAMPLE_SECONDS": "0.5", "PGQUEUE_QUEUE_SCHEMAS": "public,Legacy,shop", "PGQUEUE_LOG_LEVEL": "WARNING"}


@dataclass
class Site:
    url: str
    environment: dict[str, str]

    def browser(self, person: Any) -> httpx.Client:
        """A client that is signed in."""
        client = Client()
        client.force_login(person)
        named = f"sessionid_{installation(self.environment['SECRET_KEY'], self.environment['PUBLIC_URL'])}"
        cookies = {named: client.cookies[settings.SESSION_COOKIE_NAME].value}
        return httpx.Client(base_url=self.url, cookies=cookies, timeout=httpx.Timeout(60))

    @contextmanager
    def command(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """A ``manage.py`` command beside the web server, on the same databases."""
        with _running([sys.executable, "manage.py", *arguments], self.environment) as process:
            yield process


def events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Name and data of each server-sent event. Fails if the awaited event takes longer than twice PATIENCE."""
    name, began = "", time.monotonic()
    for line in lines:
        assert time.monotonic() - began < 2 * PATIENCE, f"not told; the last was {name}"
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


@contextmanager
def serve(dsn: str, **more: str) -> Iterator[Site]:
    port = ports.free()
    url = f"http://127.0.0.1:{port}"
    environment = {
        **os.environ, **QUICK, "DATABASE_URL": dsn, "QUEUES_URL": dsn, "SECRET_KEY": settings.SECRET_KEY,
        "PUBLIC_URL": url, "DJANGO_SETTINGS_MODULE": "tests.live.web_settings", **more,
    }  # fmt: skip
    command = [sys.executable, "-m", "uvicorn", "pgqueue_admin.config.asgi:application", "--port", str(port)]
    with _running([*command, "--timeout-graceful-shutdown", "2", "--log-level", "warning"], environment):
        until(lambda: _answers(url), what="the web server does not answer")
        yield Site(url, environment)


@contextmanager
def _running(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz").status_code == 200
    except httpx.TransportError:
        return False
