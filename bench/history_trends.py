"""How quickly Trends comes: pages over ninety days and seven, of one queue beside all others, and of all."""

import http.client
from urllib.parse import quote

from bench import history_quarter
from bench.console import get, p95, process, wait_until
from bench.table import Row, row
from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded import ports


def trends(connection: Connection, cookie: str) -> list[Row]:
    history_quarter.lay_out(connection)
    port = ports.free()
    web = ("-m", "uvicorn", "pgqueue_admin.config.asgi:application", "--port", str(port), "--no-access-log")
    environment = {"PORT": str(port), "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.web_settings"}
    queue = quote('"public"."Endpoint3"')
    chosen = {"one queue": f"&queue={queue}", "one endpoint": "&endpoint=Endpoint3", "all queues": ""}
    pages = {
        f"{days} days of {whose}{of_types}": f"/trends/{types}?w={days}d{names}"
        for days in (history_quarter.DAYS, 7)
        for whose, names in chosen.items()
        for types, of_types in (("", ""), ("types/", ": types"))
    }
    taken: dict[str, list[float]] = {path: [] for path in (*pages.values(), "/healthz")}
    with process(*web, **environment):
        wait_until(lambda: ports.answers(port, "127.0.0.1"), what="the console answers")
        client = http.client.HTTPConnection("127.0.0.1", port)
        for number in range(65):
            for path, found in taken.items():
                spent = get(client, path, cookie)
                if number >= 5:
                    found.append(spent)
    floor = p95(taken["/healthz"])
    return [row(f"Trends, {name}, p95", p95(taken[path]), "ms", floor=floor, target=50) for name, path in pages.items()]
