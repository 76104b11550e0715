"""All queues: what is backing up, and is it draining?"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import verdicts
from pgqueue_admin.console.queue_row import rows as queue_rows
from pgqueue_admin.console.queue_row.tally import tally
from pgqueue_admin.console.queues import filter as filters
from pgqueue_admin.console.queues import table
from pgqueue_admin.console.queues.columns import COLUMNS, SORTS
from pgqueue_admin.console.saved_views import links
from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.models import endpoint_standings, processes
from pgqueue_admin.models.queue_database import queue_database, schemas_looked_at


@require_safe
@links.opens_with_default("queues")
def page(request: HttpRequest) -> HttpResponse:
    wanted = filters.read(request.GET.get("q", ""))
    sort = request.GET.get("sort", "") if request.GET.get("sort", "").removeprefix("-") in SORTS else ""
    stands = endpoint_standings.of(processes.by_endpoint())
    everything = queue_rows.load(standing=stands)
    found = table.ordered([row for row in everything if wanted.matches(row)], sort)
    shown = found if sort or wanted.text else table.folded(found, request.GET.get("open", ""))
    return render(
        request,
        "pgqueue_admin/queues/page.html",
        {
            "filter": wanted,
            "sort": sort,
            "views_path": links.saving(request, "queues"),
            "sorted": _sorted(sort),
            "columns": [(column, _next_sort(column.name, sort), _direction(column.name, sort)) for column in COLUMNS],
            "name_column": (_next_sort("name", sort), _direction("name", sort)),
            "lines": table.lines(shown),
            "found": found,
            "all": everything,
            "tally": tally(everything),
            "halted": verdicts.of_endpoints(stands),
            "warned": sum(bool(row.warned) for row in everything),
            "schemas": _schemas(),
        },
    )


def _schemas() -> list[str]:
    seen = visible_queues.current()
    if seen is None:
        return [*queue_database().schemas, *schemas_looked_at()]
    return sorted({each.schema for each in seen.seen})


def _next_sort(name: str, sort: str) -> str:
    """The first press sorts largest first (names: A first), the second reverses, the third returns to worst first."""
    first, second = (name, f"-{name}") if name in {"name", "consumers"} else (f"-{name}", name)
    return second if sort == first else "" if sort == second else first


def _sorted(sort: str) -> str:
    """``by Ready, largest first``: the sort order in words."""
    name, turned = sort.removeprefix("-"), sort.startswith("-")
    word = next((column.word for column in COLUMNS if column.name == name), name)
    if name in {"name", "schema", "kind", "consumers"}:
        return f"by {word}, {'Z' if turned else 'A'} first"
    return f"by {word}, {'largest' if turned else 'smallest'} first"


def _direction(name: str, sort: str) -> str:
    if sort.removeprefix("-") != name:
        return ""
    return "descending" if sort.startswith("-") else "ascending"


urlpatterns = [path("queues/", page, name="queues")]
