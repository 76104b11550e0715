"""How quickly Trends comes: pages over ninety days, of one queue, whose figures lie beside those of all, and of all."""

import http.client

from bench import history
from bench.console import get, p95, process, wait_until
from bench.table import Row, row
from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded import ports


def trends(connection: Connection, cookie: str) -> list[Row]:
    history.figures(connection)
    port = ports.free()
    web = ("-m", "uvicorn", "pgqueue_admin.config.asgi:application", "--port", str(port), "--no-access-log")
    environment = {"PORT": str(port), "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.web_settings"}
    taken: dict[str, list[float]] = {"/trends/?w=90d&queue=Endpoint3": [], "/trends/?w=90d": [], "/healthz": []}
    with process(*web, **environment):
        wait_until(lambda: ports.answers(port, "127.0.0.1"), what="the console answers")
        client = http.client.HTTPConnection("127.0.0.1", port)
        for number in range(65):
            for path, found in taken.items():
                spent = get(client, path, cookie)
                if number >= 5:
                    found.append(spent)
    one, every, floor = (p95(found) for found in taken.values())
    name = f"Trends, {history.DAYS} days of"
    return [
        row(f"{name} one queue, p95", one, "ms", floor=floor, target=50),
        row(f"{name} all queues, p95", every, "ms", floor=floor, target=50),
    ]
