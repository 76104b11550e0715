"""A separate server, a connection that can be cut, receiving processes that get kill -9, and the final count."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from bench.chaos_side import Gate
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.osproc import child_process
from pgqueue_admin.transport import Endpoint, EndpointSettings
from tests.hostile.proxy import Proxy

_HERE = Path(__file__).resolve().parent.parent
_PATIENCE = 600  # seconds without an end mean that something is stuck
_WITH_ERROR_QUEUE = EndpointSettings(on_exhausted="error_queue")
_FILL = """
insert into "Chaos" (id, headers, body)
select gen_random_uuid(), '{"NServiceBus.MessageId":"m-' || n || '","NServiceBus.EnclosedMessageTypes":"Chaos.Work",'
  '"NServiceBus.ContentType":"application\\/json"}', convert_to('{"n":' || n || '}', 'UTF8')
from generate_series(1, %s) n
"""


class Stuck(Exception):
    """The queue is not drained in time."""


class Outcome(NamedTuple):
    mode: str
    messages: int
    seconds: float
    kills: int
    cuts: int
    restarts: int
    lost: int  # neither its effect nor a dead message exists
    dead: int  # in the error queue
    handled_again: int  # runs of the handler beyond the first
    sent_again: int  # effects of a message beyond the first

    @property
    def is_kept(self) -> bool:
        """Return whether the mode kept its promise."""
        if self.mode == "none":
            return self.handled_again == self.sent_again == 0
        exactly_once = self.mode == "receive_only" or self.sent_again == 0
        return self.lost == self.dead == 0 and exactly_once


class World:
    def __init__(self, folder: Path, conf: Mapping[str, object] | None = None):
        self._folder = folder
        self._server = PostgreSQL(folder / "postgresql", conf=conf)
        self._server.start()
        self._proxy = Proxy(self._server.dsn())
        self._receivers: list[subprocess.Popen[bytes]] = []
        self._runs = itertools.count(1)
        for name in ("Chaos", "Effects"):
            Endpoint(name, self._server.dsn(), settings=_WITH_ERROR_QUEUE).create_queues()

    def close(self) -> None:
        self._stop(signal.SIGKILL)
        self._proxy.cut()
        self._server.stop()

    def run(
        self, mode: str, messages: int, disturbances: Sequence[str], processes: int, batch_size: int = 1
    ) -> Outcome:
        """Drain ``messages``; disturbances (kill, cut, restart) occur at equal steps.

        A gate ensures that a killed process has a message in flight. A step must exceed the number in flight.
        """
        self._journal = self._folder / f"{mode}-{batch_size}-{next(self._runs)}.journal"
        self._journal.touch(mode=0o666)
        self._fill(messages)
        steps = [messages * number // (len(disturbances) + 1) for number in range(1, len(disturbances) + 1)]
        way = list(zip(steps, disturbances, strict=True))
        gates = [str(step) for step, disturbance in way if disturbance == "kill"]
        asked = [self._proxy.dsn, mode, str(batch_size), str(self._journal), *gates]
        start = [sys.executable, "-m", "bench.chaos_side", *asked]
        self._receivers = [self._spawn(start) for _ in range(processes)]
        began = time.monotonic()
        for step, disturbance in way:
            if disturbance == "kill":
                self._kill_at(Gate(self._journal, step))
                self._receivers.append(self._spawn(start))
            else:
                self._until_left(messages - step)
                self._disturb(disturbance)
        self._until_left(0)
        seconds = time.monotonic() - began
        self._stop(signal.SIGTERM)
        return self._outcome(mode, messages, seconds, Counter(disturbances))

    def _kill_at(self, gate: Gate) -> None:
        pid = _until(lambda: gate.waiting)
        (victim,) = [each for each in self._receivers if each.pid == pid]
        self._receivers.remove(victim)
        victim.kill()
        victim.wait()
        gate.open()

    def _disturb(self, what: str) -> None:
        if what == "cut":
            with self._proxy.down():
                pass
        else:
            assert self._server.pid
            os.kill(self._server.pid, signal.SIGQUIT)  # immediate shutdown: no waiting for sessions, no checkpoint
            _until(lambda: not self._server.running)
            self._server.start()

    def _outcome(self, mode: str, messages: int, seconds: float, done: Counter[str]) -> Outcome:
        ran = Counter(int(line) for line in self._journal.read_text().split())
        with postgresql().connect(self._server.dsn(), for_handlers=True) as connection:
            sent, dead = (_numbers(connection, queue) for queue in ("Effects", "error"))
        return Outcome(
            mode,
            messages,
            round(seconds, 1),
            done["kill"],
            done["cut"],
            done["restart"],
            lost=len(set(range(1, messages + 1)) - set(sent) - set(dead)),
            dead=dead.total(),
            handled_again=ran.total() - len(ran),
            sent_again=sent.total() - len(sent),
        )

    def _fill(self, messages: int) -> None:
        with postgresql().connect(self._server.dsn(), for_handlers=True) as connection:
            connection.run('truncate "Chaos", "Effects", error restart identity')
            connection.run(_FILL, [messages])

    def _until_left(self, messages: int) -> None:
        _until(lambda: self._left() <= messages)

    def _left(self) -> int:
        with suppress(DatabaseDown), postgresql().connect(self._server.dsn(), for_handlers=True) as connection:
            return int(connection.value('select count(*) from "Chaos"'))
        return sys.maxsize

    def _spawn(self, start: list[str]) -> subprocess.Popen[bytes]:
        return child_process.spawn(start, log=self._folder / "receivers.log", cwd=_HERE)

    def _stop(self, sign: signal.Signals) -> None:
        for receiver in self._receivers:
            receiver.send_signal(sign)
        for receiver in self._receivers:
            receiver.wait(60)
        self._receivers = []


@contextmanager
def world(folder: Path, conf: Mapping[str, object] | None = None) -> Iterator[World]:
    made = World(folder, conf)
    try:
        yield made
    finally:
        made.close()


def _numbers(connection: Any, queue: str) -> Counter[int]:
    return Counter(json.loads(row.body)["n"] for row in connection.all(f'select body from "{queue}"'))


def _until(condition: Callable[[], int]) -> int:
    """Poll until the value is not 0; return it."""
    deadline = time.monotonic() + _PATIENCE
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise Stuck(f"not within {_PATIENCE} s")
        time.sleep(0.02)
    return found
