"""Is it slower than usual, and when did it start?"""

import csv
from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console.trends import own_queues, time_range
from pgqueue_admin.console.trends.coverage import NOT_READ, SO_FAR, WHOLE, Coverage
from pgqueue_admin.console.trends.empty_state import EmptyState
from pgqueue_admin.console.trends.heatmap import HeatColumn
from pgqueue_admin.console.trends.page_data import MEASURE_WORDS, TrendsData
from pgqueue_admin.console.trends.previous_week import WEEK
from pgqueue_admin.console.trends.rates import RateRow
from pgqueue_admin.formatting import spreadsheets, times
from pgqueue_admin.history.freshness import HistoryFreshness
from pgqueue_admin.history.rollups import latency_bands, queries
from pgqueue_admin.history.rollups.baseline import BaselineRange
from pgqueue_admin.history.rollups.queries import MessageCounts, TrendQuery
from pgqueue_admin.models import database_clock


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    freshness, own = HistoryFreshness(), own_queues.names()
    try:
        view = _view(request, freshness, own)
    except own_queues.NoOwnQueue as nothing:
        return render(request, "pgqueue_admin/errors/beyond_scope.html", {"why": str(nothing)}, status=404)
    if request.GET.get("format") in CSVS:
        return CSVS[request.GET["format"]](view)
    choices = _choices(view.window.asked, own)
    about = {
        "view": view,
        "window": view.window,
        "lengths": time_range.WORDS.items(),
        "measures": MEASURE_WORDS.items(),
        "choices": choices,
        "narrowed": any(chosen for _, _, chosen in choices),
        "freshness": freshness,
        "nothing": EmptyState(view.reach, freshness),
    }
    return render(request, "pgqueue_admin/trends/page.html", about)


@require_safe
def slowest(request: HttpRequest) -> HttpResponse:
    """The part that sums the buckets of types; the page loads it, with its own error."""
    try:
        view = _view(request, HistoryFreshness(), own_queues.names())
    except own_queues.NoOwnQueue as nothing:
        return HttpResponse(f"{nothing}\n", status=404, content_type="text/plain; charset=utf-8")
    return render(request, "pgqueue_admin/trends/types_table.html", {"view": view})


def _view(request: HttpRequest, freshness: HistoryFreshness, own: list[str] | None) -> TrendsData:
    window = own_queues.narrowed(time_range.as_kept(time_range.read(request.GET, database_clock.now())), own)
    reach = Coverage(window, freshness.watermark)
    return TrendsData(reach, request.GET.get("m", ""), request.GET.get("table", ""))


def _choices(asked: TrendQuery, own: list[str] | None) -> own_queues.Choices:
    """Queue, endpoint and type: the choices, and what is chosen, even if nothing of it finished."""
    if own is not None:
        return own_queues.choices(asked, own)
    found = {what: [kind.name for kind in kinds] for what, kinds in queries.kinds(asked).items()}
    chosen = {what: getattr(asked, what) for what in found}
    absent = {what: [name] if name and name not in found[what] else [] for what, name in chosen.items()}
    return [(what, [*absent[what], *names], chosen[what]) for what, names in found.items()]


def _finished(view: TrendsData) -> HttpResponse:
    """Each step in which something finished, times in milliseconds; then those not read yet, blank."""
    rows: list[list[object]] = []
    for step in reversed(view.steps):
        spans = [round(each, 1) for each in step.percentiles] if step.percentiles else ["", "", ""]
        usual = [end for band in (step.usual.messages, *step.usual.spans) for end in _rounded(band)]
        counts, before = step.counts, step.before.counts
        week_before = [before.succeeded, before.failed] if before else ["", ""]
        long_before = _or_nothing(step.before.p95)
        figures = [counts.succeeded, counts.failed, *spans, *usual, *week_before, long_before, step.retried, step.known]
        rows.append([times.iso(step.at), *figures])
    ends = [f"usual_{name}_{end}" for name in ("number", "p50_ms", "p95_ms", "p99_ms") for end in ("low", "high")]
    heads = ["at", "succeeded", "failed", "p50_ms", "p95_ms", "p99_ms", *ends]
    heads += ["succeeded_week_before", "failed_week_before", "p95_ms_week_before", "retried", "known"]
    rows += [[times.iso(at), *[""] * (len(heads) - 2), NOT_READ] for at in view.reach.unread]
    return _csv(f"{view.window.file_name}-{view.measure}", heads, rows)


def _shares(view: TrendsData) -> HttpResponse:
    """Each step in which something finished; then those not read yet, blank."""
    rows: list[list[object]] = []
    for step in reversed(view.steps):
        shares = [_per_cent(each) for each in (step.counts, step.before.counts)]
        usual = [_of_hundred(end) for end in step.usual.failed or (None, None)]
        rows.append([times.iso(step.at), step.counts.finished, step.counts.failed, *shares, *usual, step.known])
    heads = ["at", "finished", "failed", "per_cent_failed", "per_cent_failed_week_before"]
    heads += ["usual_per_cent_failed_low", "usual_per_cent_failed_high", "known"]
    rows += [[times.iso(at), *[""] * (len(heads) - 2), NOT_READ] for at in view.reach.unread]
    return _csv(f"{view.window.file_name}-share", heads, rows)


def _per_cent(counts: MessageCounts | None) -> object:
    return _of_hundred(counts.share_failed if counts else None)


def _of_hundred(part: float | None) -> object:
    """Six significant digits."""
    return "" if part is None else float(f"{100 * part:.6g}")


def _types(view: TrendsData) -> HttpResponse:
    """Slowest first, in milliseconds; the window compared with began ``weeks_before`` earlier."""
    weeks = view.types.earlier // WEEK
    slow = [row.slow for row in view.types.rows]
    rows = [[spreadsheets.cell(each.type), each.messages, *map(_or_nothing, each[2:]), weeks] for each in slow]
    heads = ["type", "timed", "p50_ms", "p95_ms", "p95_ms_before", "weeks_before"]
    return _csv(f"{view.window.file_name}-{view.measure}-types", heads, rows)


def _or_nothing(figure: float | None, digits: int = 1) -> object:
    return "" if figure is None else round(figure, digits)


def _rounded(band: BaselineRange | None) -> tuple[object, object]:
    return (round(band.low, 1), round(band.high, 1)) if band else ("", "")


def _depth(view: TrendsData) -> HttpResponse:
    """Samples of each step; rates, numbers and age are approximate, and blank if unknown."""
    heads = ["at", "least", "median", "most", "live", "median_week_before", "in_per_second", "out_per_second"]
    heads += ["came_in", "went_out", "oldest_seconds", "oldest_at_least", "queues_unread"]
    heads += ["depth_known", "known"]
    return _csv(f"{view.window.file_name}-depth", heads, map(_sampled, reversed(view.depth.rows)))


def _sampled(row: RateRow) -> list[object]:
    depth, known = row.depth, SO_FAR if row.is_so_far else WHOLE
    depths = [depth.low, depth.median, depth.high, depth.is_live, _or_nothing(row.before)]
    rates = [_or_nothing(depth.in_per_second, 6), _or_nothing(depth.out_per_second, 6), row.came_in, row.went_out]
    age = [_or_nothing(depth.oldest_seconds), "" if depth.oldest_seconds is None else row.is_at_least]
    return [times.iso(row.at), *depths, *rates, *age, _or_nothing(depth.unread), depth.how or "", known]


def _heat(view: TrendsData) -> HttpResponse:
    """Each cell that is not empty: above ``over_ms``, up to ``upto_ms``; columns not read yet, blank."""
    rows = [[*_column(column), *cell, column.known] for column in view.heat.columns for cell in _cells(view, column)]
    rows += [[*_column(column), "", "", "", NOT_READ] for column in view.heat.columns if column.known == NOT_READ]
    heads = ["at", "until", "over_ms", "upto_ms", "messages", "known"]
    return _csv(f"{view.window.file_name}-{view.measure}-heat", heads, rows)


def _column(column: HeatColumn) -> list[object]:
    return [times.iso(column.at), times.iso(column.until)]


def _cells(view: TrendsData, column: HeatColumn) -> Iterable[list[object]]:
    numbers = zip(view.heat.bands, column.numbers, strict=True)
    return ([*latency_bands.limits(band), number] for band, number in numbers if number)


def _csv(name: str, heads: list[str], rows: Iterable[list[object]]) -> HttpResponse:
    """Times in UTC."""
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="trends-{name}.csv"'
    lines = csv.writer(answer)
    lines.writerow(heads)
    lines.writerows(rows)
    return answer


CSVS = {"steps": _finished, "share": _shares, "depth": _depth, "heat": _heat, "types": _types}
urlpatterns = [path("trends/", page, name="trends"), path("trends/types/", slowest, name="trends_types")]
