"""A process that forks after sending: its child has its own sessions and thread, or their answers would mix."""

import os
import select
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.sessions.queue_notifications import channel
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows
from tests.waiting import PATIENCE, until

PING = "Shop.Ping"
MANY = 200


@pytest.fixture
def forked():
    """``forked(act)``: a child process that runs it; ``wait()`` returns its exit code. It ends with the test."""
    children = {}

    def fork(act):
        ended, ends = os.pipe()
        if (child := os.fork()) == 0:
            code = 1
            try:
                act()
                code = 0
            finally:
                os._exit(code)
        os.close(ends)
        children[child] = ended

        def wait():
            assert select.select([ended], [], [], PATIENCE)[0], "the child comes to its end"
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        return wait

    yield fork
    for child, ended in children.items():
        os.close(ended)
        try:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def test_parent_and_child_send_at_the_same_time(make_endpoint, forked):
    sender = make_endpoint()
    sender.send("Sales", 0, type=PING)

    def send():
        for number in range(MANY):
            sender.send("Sales", number, type=PING)

    wait = forked(send)
    send()
    assert wait() == 0
    assert len(rows(sender.dsn, "Sales")) == 2 * MANY + 1


def test_send_of_a_forked_child_is_notified(make_endpoint, forked, connect, database):
    sender, listener = make_endpoint(settings=replace(QUICK, notify=True, peek_delay=600)), connect(database)
    make_endpoint("Billing")
    sender.send("Sales", 0, type=PING)
    until(lambda: not sender.wake_ups._to_tell, what="the parent has told what it sent")
    listener.listen(channel(postgresql(), Address("public", "Billing")))

    def send():
        sender.send("Billing", 1, type=PING)
        sender.stop()

    assert forked(send)() == 0
    assert list(listener.notifications(timeout=PATIENCE))
    sender.send("Sales", 2, type=PING)  # the parent's own session is unchanged
    assert len(rows(database, "Sales")) == 2


FORKING = """
import os, sys
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers

handlers = Handlers()


@handlers.handle("Shop.Ping")
def ping(number, context):
    context.send("Billing", number, type="Shop.Pong")
    if number == 1 and (child := os.fork()):
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    elif number == 1:
        {way}


settings = EndpointSettings(concurrency=1, immediate_retries=0, delayed_retries=0)
Endpoint("Sales", sys.argv[1], handlers=handlers, settings=settings).run()
"""


@pytest.mark.parametrize("way", ["sys.exit()", "1 / 0", "return"])
def test_a_child_that_a_handler_forks_does_not_become_a_second_receiver(make_endpoint, database, way):
    """It returned from the handler on its parent's session: each read the other's answers."""
    for name in ("Sales", "Billing"):
        make_endpoint(name)
    make_endpoint().send_many("Sales", range(4), type=PING)
    with subprocess.Popen(
        [sys.executable, "-c", FORKING.format(way=way), database],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        try:
            assert parent.stdout
            assert select.select([parent.stdout], [], [], PATIENCE)[0], "the child comes to its end"
            assert parent.stdout.readline() == "1\n"
            until(lambda: not rows(database, "Sales"))
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
    assert [row.body for row in rows(database, "Billing")] == [b"0", b"1", b"2", b"3"]
    assert rows(database, "error") == []
