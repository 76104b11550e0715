"""Words for warnings: ⟨what⟩, ⟨value⟩ against ⟨threshold⟩[, since …]. ⟨What it means⟩. ⟨What to do next⟩."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from pgqueue_admin.formatting import anomaly, names
from pgqueue_admin.formatting.age_explanation import AgeExplanation
from pgqueue_admin.formatting.durations import duration, plain
from pgqueue_admin.formatting.numbers import NBSP, about, format_figure, format_int, pluralize, share

DELAY = "peek delay (QueuePeeker.Delay)"


class WarningText(NamedTuple):
    """A warning in words. Its duration is inserted between fact and meaning when shown."""

    fact: str
    value: str
    threshold: str
    meaning: str

    @property
    def sentence(self) -> str:
        return f"{self.fact}. {self.meaning}"


def dead(count: int, cause: str, target: int | None) -> WarningText:
    return WarningText(
        f"{pluralize(count, 'dead message')} by {cause}, target {target or 0}",
        f"{format_int(count)} dead",
        format_int(target or 0),
        "Fix the cause, then retry or discard.",
    )


def old_deaths(count: int, queue: str) -> WarningText:
    return WarningText(
        f"{pluralize(count, 'old death')} taken over from {queue}",
        pluralize(count, "old death"),
        "none",
        "They had failed more than a day before, or before this console first looked; none is mailed by itself. "
        "Look at them in the archive by cause, retry or discard them. This warning ends a day after the last came in.",
    )


def queue_age(
    seconds: float, target: float, how: str = "exact", pace: AgeExplanation | None = None, deaf: int = 0
) -> WarningText:
    """``deaf``: running processes that receive nothing."""
    age = about(how) + duration(seconds)
    return WarningText(
        f"Oldest ready message is {age} old, target {plain(target)}",
        age,
        plain(target),
        _of_deaf(deaf) if deaf else f"{(pace or AgeExplanation()).said}; raise concurrency or start a process.",
    )


def queue_depth(depth: int, how: str, target: int, deaf: int = 0) -> WarningText:
    return WarningText(
        f"{format_figure(depth, how)} messages wait, target {format_int(target)}",
        format_figure(depth, how),
        format_int(target),
        _of_deaf(deaf)
        if deaf
        else "The queue backs up, or holds what should not be there. Look at its messages and at who receives.",
    )


def deaf(process: str, since: datetime, ready: int, how: str) -> WarningText:
    return WarningText(
        f"Deaf: process {process} has received nothing since {since:%d %b %H:%M} UTC "
        f"while {format_figure(ready, how)} wait",
        "nothing received",
        "1 message",
        "It runs and reports, and has slots free. Restart it on Endpoints, and read its log: the database, or what is "
        "between them, gave no answer.",
    )


def _of_deaf(count: int) -> str:
    return (
        f"{pluralize(count, 'process is', 'processes are')} deaf: running, and receiving nothing. "
        "More concurrency would not help: restart them on Endpoints, and read their log."
    )


def dead_count(count: int, target: int, how: str = "counted") -> WarningText:
    return WarningText(
        f"{format_figure(count, how)} dead message{'' if count == 1 else 's'} in all, target {format_int(target)}",
        f"{format_figure(count, how)} dead",
        format_int(target),
        "More died than is accepted here. Look at its messages, or have it emptied into the archive.",
    )


def no_consumer(
    ready: int, how: str, ours: bool, quiet_seconds: float, silent: bool = False, stopped: bool = False
) -> WarningText:
    """``silent``: the endpoint has a process, but it does not report. ``stopped``: no process is wanted."""
    who = "nobody receives" if ours else "no receiver seen"
    running = (
        "Its process is there, and is not heard of. If it hangs, Workers says by when it is killed and started again."
        if silent
        else "Its endpoint is stopped. Start it on Endpoints."
        if stopped
        else "No process of this endpoint runs. See on Workers what keeps it from starting."
    )
    known = (
        running
        if ours
        else f"Nothing left the queue for {duration(quiet_seconds)}. "
        "That is all that can be known from here: see whether its service runs."
    )
    return WarningText(f"{format_figure(ready, how)} ready, {who}", "0 receivers", "1", known)


def queue_unreadable(error: str, sqlstate: str = "") -> WarningText:
    return WarningText(
        "This queue cannot be read",
        "not read",
        "read at each look",
        f"Its figures are the last that were seen, and nothing is judged by them; the database says: "
        f"{error.rstrip('.')}.{_cure_of_unread(sqlstate)}",
    )


def table_fault(said: str, cure: str, others: int) -> WarningText:
    """``others``: further faults of the same table."""
    more = f" Its queue's page says {pluralize(others, 'further fault')}." if others else ""
    return WarningText(said.rstrip("."), "a fault", "none", f"Have the table's owner run: {cure}{more}")


def blind(unread: int, of: int, error: str, sqlstate: str = "") -> WarningText:
    queues = "The only queue" if of == 1 else f"{format_int(unread)} of {pluralize(of, 'queue')}"
    return WarningText(
        f"{queues} cannot be read",
        f"{format_int(unread)} of {format_int(of)}",
        "half of them",
        "The console cannot see: figures are the last that were read, and warnings about these queues stand still; of "
        f"most of them the database says: {error.rstrip('.')}.{_cure_of_unread(sqlstate)}",
    )


def _cure_of_unread(sqlstate: str) -> str:
    """Only for known SQLSTATEs; otherwise the error text must suffice."""
    return {
        "42501": " Grant SELECT to the role of QUEUES_URL.",
        "55P03": " See in pg_locks who holds the lock.",
    }.get(sqlstate, "")


def peek_too_long(delay_ms: int, ours: bool) -> WarningText:
    delay = _ms(delay_ms)
    return WarningText(
        f"{_delay(ours)} is {delay}, allowed is 100 ms to 10 s",
        delay,
        "10 s",
        f"Up to {delay} pass before an idle queue is looked at, and messages may back up. "
        f"Set {DELAY} to 10 s or less{_where(ours)}.",
    )


def peek_too_short(delay_ms: int, ours: bool) -> WarningText:
    delay = _ms(delay_ms)
    often = f"{format_int(round(1000 / delay_ms))} times a second" if delay_ms else "without a pause"
    return WarningText(
        f"{_delay(ours)} is {delay}, allowed is 100 ms to 10 s",
        delay,
        "100 ms",
        f"Every process asks an idle queue {often}: needless load. Set {DELAY} to 100 ms or more{_where(ours)}.",
    )


def ttbr_conflict(name: str, ttbr_ms: int, delay_ms: int, ours: bool) -> WarningText:
    """T16: names the type, its TTBR, the delay, and the setting that fixes it."""
    delay, ttbr = _ms(delay_ms), _ms(ttbr_ms)
    lost = delay_ms > ttbr_ms
    risk = "is lost: it expires before it is looked at" if lost else "is at risk: it can expire unseen"
    against = f"but {_delay(ours, 'the ')} is" if lost else f"and {_delay(ours, 'the ')} is also"
    more = "" if ttbr_ms > 100 else f", or better give {name} a longer time to be received: two days later this ends"
    return WarningText(
        f"{name} expires after {ttbr} (its time to be received), {against} {delay}",
        delay,
        f"below {ttbr}",
        f"On an idle queue it {risk}. Set {DELAY} below {ttbr}{_where(ours)}{more}.",
    )


class Observed(NamedTuple):
    """Messages of a type in some days: shares that arrived too late, or nearly so."""

    messages: int
    lost: float
    at_risk: float
    safe_ms: int | None
    days: int


def ttbr_risk(name: str, ttbr_ms: int, delay_ms: int, ours: bool, seen: Observed) -> WarningText:
    """T16: the delay is shorter than the TTBR, and messages are lost nevertheless, as observed."""
    shares = f"{share(seen.lost)} lost, {share(seen.at_risk)} at risk"
    return WarningText(
        f"{name} expires after {_ms(ttbr_ms)} (its time to be received), "
        f"and {_delay(ours, 'the ')} is {_ms(delay_ms)}; "
        f"of {format_int(seen.messages)} in {seen.days} days: {shares}",
        shares,
        "0.1 %",
        "“At risk” means: arrived in time, but would have expired with one more peek delay. "
        f"{_cure(name, ours, delay_ms, seen)}",
    )


def _cure(name: str, ours: bool, delay_ms: int, seen: Observed) -> str:
    if seen.safe_ms is not None and 100 <= seen.safe_ms < delay_ms:
        return f"The largest safe delay is {_ms(seen.safe_ms)}: set {DELAY} to that or less{_where(ours)}."
    return f"No peek delay makes up for it: raise concurrency, or give {name} a longer time to be received."


def mail_not_configured(folder: str) -> WarningText:
    return WarningText(
        "No mail server is configured",
        "files",
        "EMAIL_URL",
        f"Mails are written as files to {folder} and reach nobody. Set EMAIL_URL, for instance smtp://user:password@host:587.",
    )


def nobody_is_mailed() -> WarningText:
    return WarningText(
        "Nobody is mailed: no address is configured",
        "0 addresses",
        "1",
        "Warnings stay on this screen and in the log. Set PGQUEUE_ALERT_TO to one or more addresses.",
    )


def mail_failing(count: int, error: str) -> WarningText:
    return WarningText(
        f"{pluralize(count, 'mail')} could not be sent",
        pluralize(count, "mail"),
        "0",
        f"{error.rstrip('.')}. They are tried again for a day. See Mails, and check EMAIL_URL and PGQUEUE_ALERT_TO.",
    )


def unnamed_environment() -> WarningText:
    return WarningText(
        "This environment has no name",
        "unnamed",
        "a name",
        "Mails, titles and confirmations cannot say where they are from. Set ENVIRONMENT, for instance production.",
    )


def sampler_stale(age: float | None, threshold: float) -> WarningText:
    value = duration(age) if age is not None else "never"
    return WarningText(
        "No sample was ever taken" if age is None else f"Newest sample is {value} old, the limit is {plain(threshold)}",
        value,
        plain(threshold),
        "Figures and warnings about queues stand still. See whether the supervisor, the sampler and the database run.",
    )


class WarningNumbers(Protocol):
    """Figures of one anomalous hour, and of the weeks before."""

    observed: float
    messages: int | None
    timed: int | None
    median: float
    low: float
    high: float
    weeks: int


def unusual(kind: str, name: str, numbers: WarningNumbers) -> WarningText:
    seen = anomaly.seen(kind, numbers.observed, numbers.messages, numbers.timed)
    usual = anomaly.usual(kind, numbers.observed, numbers.median, numbers.low, numbers.high)
    of = f"{name}: " if name else ""
    return WarningText(
        f"{of}{seen} in an hour, usual is {usual}",
        seen,
        usual,
        f"{anomaly.WORDS[kind]}, against the same hour of the week in {numbers.weeks} weeks before. "
        "See Trends: what else was unusual, and since when.",
    )


def archive_unreadable(error: str) -> WarningText:
    return WarningText(
        "The archive of dead messages cannot be read",
        "not readable",
        "readable",
        f"{error.rstrip('.')}. Nothing is lost: messages that die meanwhile are mailed when it can be read again.",
    )


def superuser(url: str, role: str, cure: str) -> WarningText:
    """``cure``: empty for the role that created the cluster, which always stays a superuser."""
    instead = f"Run: {cure}" if cure else "It made the cluster and stays one: give the console a role of its own."
    return WarningText(
        f"The role {role} of {url} is a superuser",
        "superuser",
        "no superuser",
        f"Whoever gets code of theirs run by it has that whole server, its files included. {instead} "
        "What it needs: docs/reference/database-access.md.",
    )


def others_create(
    url: str, role: str, who: str | None, schema: str, cure: str, whose: str = "Statements of the console"
) -> WarningText:
    """``whose``: whose statements search that schema."""
    return WarningText(
        f"{f'The role {who}' if who else 'Everybody'} may create in the schema {schema} of {url}",
        who or "everybody",
        "nobody else",
        f"{whose} find functions and operators there: what is made there can run as {role}. Run: {cure}",
    )


def worker_crashing(count: int, window: float, limit: int, last_error: str) -> WarningText:
    said = f" The last one {last_error.splitlines()[-1][:200]}." if last_error.strip() else ""
    return WarningText(
        f"Its process ended {count} times in {plain(window)}, the limit is {limit}",
        f"{count} in {plain(window)}",
        f"{limit} in {plain(window)}",
        f"It is started again after growing pauses; its messages went back to the queue.{said} See its log.",
    )


def crashing_message(kind: str, seq: int, deaths: int, alone: int, limit: int, how: str) -> WarningText:
    hands = "alone in flight each time" if alone == deaths else f"alone in flight at {alone} of them"
    return WarningText(
        f"{kind or 'A message'}, seq {seq:,}, was in flight at {deaths} deaths of a process, {hands}; "
        f"the limit is {limit}",
        f"{deaths} deaths",
        f"{limit}",
        f"The last time the process was {how}. It never fails, so it is never given up: it comes back to the head of "
        "its queue forever. Move that message out, into the archive; it can be retried from there. "
        "Where it is in flight, stop the endpoint first, and start it again afterwards.",
    )


def circuit_breaker_open(what: str, processes: int, seconds: float, error: str) -> WarningText:
    return WarningText(
        f"{what} has failed for {plain(seconds)} in {pluralize(processes, 'process', 'processes')}, the limit is 30 s",
        plain(seconds),
        "30 s",
        f"Its circuit breaker is open: nothing is handled, and it tries again every 10 s. It says: {error[:300]}",
    )


_SENT_BY = {
    "ours": "Start its endpoint, whose relay sends them, or send them on Outbox.",
    "foreign": "Its endpoint sends them when their messages come again: start it, or look at them on Outbox.",
    "elsewhere": "Its own program sends them: start it. Outbox shows them; from another database nothing is sent here.",
    "relayed": "The relay that is switched on for it does not send them: Outbox says why.",
}


def outbox_undispatched(pending: str, seconds: float, grace: float, whose: str) -> WarningText:
    """``pending``: number of records, as counted. ``seconds``: minimum wait of the oldest."""
    return WarningText(
        f"Committed and not sent: {pending} of the records of handled messages, the oldest for {duration(seconds)}, "
        f"grace {plain(grace)}",
        duration(seconds),
        plain(grace),
        _SENT_BY[whose],
    )


def transaction_in_doubt(
    count: int, most: int, seconds: float, limit: float, waiting: int, tables: Sequence[str]
) -> WarningText:
    """``count``: among at most ``most`` that were read. ``waiting``: sessions. ``tables``: tables that they lock."""
    number = f"{most}+ transactions" if count >= most else pluralize(count, "transaction")
    held = f"They lock rows of {names.listed(tables, 5)}. " if tables else ""
    behind = f"{pluralize(waiting, 'session')} wait behind them. " if waiting > 1 else ""
    behind = "1 session waits behind them. " if waiting == 1 else behind
    return WarningText(
        f"Prepared and not ended: {number}, the oldest for {duration(seconds)}, limit {plain(limit)}",
        duration(seconds),
        plain(limit),
        f"{held}{behind}The recovery of their endpoint ends them: start it. See In doubt, on Outbox.",
    )


def crossing_undecided(alias: str, undecided: int, going: int, seconds: float, limit: float) -> WarningText:
    """``undecided``: messages that a person has to decide; ``going``: messages still being queried."""
    number = pluralize(undecided or going, "message")
    asked = f"{alias} has not said it, so they are held. Mend the way to it; Crossings says what is asked."
    others = f" Of {going:,} more {alias} is still asked." if going else ""
    decided = f"{alias} cannot tell it any more, so they are held. Look there, and decide on Crossings.{others}"
    return WarningText(
        f"Not known whether {number} arrived between the archive and {alias}, for {duration(seconds)}, "
        f"limit {plain(limit)}",
        duration(seconds),
        plain(limit),
        decided if undecided else asked,
    )


def expired_locks(number: int, how: str, late: float, limit: float, ours: bool) -> WarningText:
    """``late``: seconds since the first lock expired. ``ours``: our housekeeping can end them."""
    one = number == 1 and how == "counted"
    start = "start a supervisor, beat or the job of pg_cron"
    theirs = f"Start the original's cron job; or run manage.py engine_schema, then {start}."
    fact = (
        f"{format_figure(number, how)} expired lock{'' if one else 's'} not ended, the first over for {duration(late)}"
    )
    return WarningText(
        f"{fact}, limit {plain(limit)}",
        duration(late),
        plain(limit),
        f"No process ends expired locks. Until one does, {'this message is' if one else 'these messages are'} neither "
        f"worked on nor dead. {f'S{start[1:]}, or run manage.py lease expire.' if ours else theirs}",
    )


def schedule_not_sent(late: float | None, limit: float, error: str | None) -> WarningText:
    """``late``: seconds since it was due; None: it is not due, and its last try failed."""
    waits = f"It was due {duration(late)} ago and was not sent" if late is not None else "Its last message was not sent"
    nobody = (
        "Nobody looks at schedules. Start a supervisor, beat or the job of pg_cron, or run manage.py schedule due; "
        "see Schedules."
    )
    refused = f"The database refused its message: {(error or '')[:300]} Change it, or pause it, on Schedules."
    return WarningText(
        f"{waits}, limit {plain(limit)}" if late is not None else waits,
        duration(late) if late is not None else "an error",
        plain(limit) if late is not None else "none",
        refused if error else nobody,
    )


def sequence_exhaustion(last: int, end: int) -> WarningText:
    return WarningText(
        f"Sequence is at {format_int(last, short_from=10**12)} of {format_int(end, short_from=10**12)}, threshold 85 %",
        f"{last * 100 // end} %",
        "85 %",
        "At its end every send fails. Widen the sequence and the seq column to bigint, or restart it while empty.",
    )


def _ms(milliseconds: int) -> str:
    """Exact, unlike a measured duration: 10,001 ms must not read as the permitted 10 s."""
    if milliseconds < 1000:
        return f"{milliseconds}{NBSP}ms"
    if milliseconds < 60_000 or milliseconds % 1000:
        return f"{milliseconds / 1000:,.10g}{NBSP}s"
    return plain(milliseconds / 1000)


def _delay(ours: bool, article: str = "") -> str:
    text = f"{article}peek delay" if ours else f"{article}declared peek delay"
    return text if article else text.capitalize()


def _where(ours: bool) -> str:
    return "" if ours else " in its own code, then declare it here"
