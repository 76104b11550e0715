"""Application frames of a stack trace are found; framework frames fold (CONSOLE: Message, Error)."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.formatting import stack_traces

NET = """Shop.Shipping.CarrierUnavailableException: Carrier Zeppelin cannot be booked
 ---> System.NotSupportedException: Airships do not fly in winter
   at Shop.Shipping.Airship.Book(ShipOrder order) in /src/Shipping/ShipOrderHandler.cs:line 42
   at System.Threading.Tasks.Task.Run()
   --- End of inner exception stack trace ---
   at Shop.Shipping.ShipOrderHandler.Handle(ShipOrder message) in C:\\src\\ShipOrderHandler.cs:line 25
   at NServiceBus.InvokeHandlerTerminator.Terminate(IInvokeHandlerContext context) in /_/src/X.cs:line 31
   at NServiceBus.LoadHandlersConnector.Invoke(IIncomingLogicalMessageContext context, Func`2 stage)"""

PYTHON = """Traceback (most recent call last):
  File "/srv/shop/payments.py", line 12, in charge
    return client.post(url)
           ^^^^^^^^^^^^^^^^
  File "/srv/.venv/lib/python3.11/site-packages/httpx/_client.py", line 914, in send
    raise exc
httpx.ReadTimeout: timed out after 3.0 s

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/pgqueue_admin/transport/receive_modes.py", line 40, in handle
    handler(message, context)
  File "/usr/lib/python3.11/contextlib.py", line 81, in inner
    return func(*args, **kwds)
  File "/srv/shop/handlers.py", line 42, in charge_card
    charge(order)
shop.billing.payments.GatewayTimeout: acquira did not answer"""


def shown(trace: str) -> list[tuple[str, list[str]]]:
    return [(run.kind, [line.text for line in run.lines]) for run in stack_traces.runs(trace)]


def test_net_frames_are_told_apart() -> None:
    kinds = [(run.kind, len(run.lines)) for run in stack_traces.runs(NET)]
    assert kinds == [("cause", 1), ("own", 1), ("framework", 1), ("own", 1), ("framework", 2)]
    assert stack_traces.runs(NET)[-1].title == "2 frames of NServiceBus"


def test_net_frames_say_where() -> None:
    own = [line for run in stack_traces.runs(NET) if run.kind == "own" for line in run.lines]
    assert [line.where for line in own] == ["ShipOrderHandler.cs:42", "ShipOrderHandler.cs:25"]
    assert own[0].text == "Shop.Shipping.Airship.Book(ShipOrder order)"


def test_python_frames_keep_their_line_of_source() -> None:
    assert shown(PYTHON) == [
        ("own", ["charge", "return client.post(url)"]),
        ("framework", ["send", "raise exc"]),
        (
            "text",
            [
                "httpx.ReadTimeout: timed out after 3.0 s",
                "The above exception was the direct cause of the following exception:",
            ],
        ),
        ("framework", ["handle", "handler(message, context)", "inner", "return func(*args, **kwds)"]),
        ("own", ["charge_card", "charge(order)"]),
        ("text", ["shop.billing.payments.GatewayTimeout: acquira did not answer"]),
    ]
    assert stack_traces.runs(PYTHON)[3].title == "2 frames of the engine and Python"
    assert stack_traces.frames(PYTHON) == 5


def test_a_text_that_is_no_trace_stays_whole() -> None:
    assert shown("it broke\n  somewhere") == [("text", ["it broke", "somewhere"])]
    assert stack_traces.runs("") == []


@given(st.text())
def test_no_text_fails(text: str) -> None:
    stack_traces.runs(text)


def test_a_frame_may_stand_in_a_path_with_blanks() -> None:
    (own,) = stack_traces.read("   at Shop.Till.Ring() in C:\\built in house\\Till.cs:line 7  ")
    assert (own.text, own.where) == ("Shop.Till.Ring()", "Till.cs:7")
    (bare,) = stack_traces.read("   at Shop.Till.Ring() in the middle")
    assert (bare.text, bare.where) == ("Shop.Till.Ring() in the middle", "")


def test_a_line_that_no_compiler_wrote_is_text() -> None:
    assert shown("   at Shop.Till.Ring()\n   at x" + "y" * stack_traces.LONGEST_LINE)[1][0] == "text"


def test_of_a_trace_without_end_a_page_shows_the_start() -> None:
    lines = list(stack_traces.read("   at Shop.Till.Ring()\n" * 5_000))
    assert len(lines) == stack_traces.MOST_LINES + 1
    assert lines[-1] == stack_traces.StackFrame("text", "… 3,000 more lines under Full trace")


TRAPS = {
    "in": '"   at x" + " in " * 50_000',
    "blanks": '"   at x" + " " * 50_000 + "y"',
    "lines of in": '("   at x" + " in " * 480 + chr(10)) * 50_000',
    "lines": '"   at " + " in :line " * 5_000',
    "files": """'  File "' * 5_000""",
    "nothing": '" " * 100_000',
}


@pytest.mark.parametrize("trap", TRAPS)
def test_no_line_holds_up_the_console(trap: str) -> None:
    """Senders write the trace: quadratic patterns took minutes. In a subprocess, as nothing interrupts a pattern."""
    code = f"from pgqueue_admin.formatting import stack_traces; stack_traces.runs({TRAPS[trap]})"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)
