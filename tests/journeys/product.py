"""The whole product, started as `make run` starts it, in a folder of its own."""

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

from pgqueue_admin.osproc import child_process
from tests.waiting import until

ROOT = Path(__file__).resolve().parent.parent.parent
_LOGIN = re.compile(r"[Ll]ogin:? +(?P<name>\S+) +(?:password:? +)?(?P<password>\S+)")


class Product:
    """``manage.py up`` as a child in its own session, so that Ctrl-C reaches it alone.

    The kernel sends it when the tests end, however they end.
    """

    root = ROOT
    command: tuple[str, ...] = (sys.executable, "manage.py", "up")

    def __init__(self, var: Path, port: int, **environment: str):
        self.var, self.port = var, port
        self.url = f"http://127.0.0.1:{port}"
        self.cookies: list[Any] = []  # of the last sign-in
        self.output = var.parent / f"{var.name}.up.log"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "PYTEST_"))},
            "PGQUEUE_STATE_DIR": str(var),
            "PORT": str(port),
            "SPARK_MASTER": "",
            "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings",
            **environment,
        }

    def start(self, seconds: float = 300) -> None:
        self.launch()
        until(self.is_up, seconds, "the product to say where its console is")

    def is_up(self) -> bool:
        assert self.process.poll() is None, self.said()
        return "Console:" in self.said()[self._said_before :]

    def launch(self, **environment: str) -> None:
        self._said_before = len(self.said()) if self.output.exists() else 0
        about = {**self.environment, **environment}
        self.process = child_process.spawn(
            self.command, log=self.output, dies_with=signal.SIGINT, cwd=self.root, env=about
        )

    def stop(self, seconds: float = 90) -> int:
        """Send Ctrl-C; return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(seconds)

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    @property
    def dsn(self) -> str:
        dsn: str = json.loads((self.var / "state.json").read_text())["dsn"]
        return dsn

    @property
    def login(self) -> tuple[str, str]:
        found = _LOGIN.search(self.said())
        assert found, self.said()
        return found["name"], found["password"]
