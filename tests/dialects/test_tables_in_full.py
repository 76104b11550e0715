"""Every table in our statements is named with its schema: no search path decides which table it is."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.dialects.statements import parse

ROOT = Path(__file__).resolve().parents[2] / "pgqueue_admin"
FILES = [*sorted(ROOT.glob("dialects/postgresql/*.sql")), *sorted(ROOT.glob("models/sql/*.sql"))]
# Statements of the console's own database, whose sessions use ``pg_catalog`` and the console's schema.
CONSOLE = ROOT / "models/sql"
# Words in a table's position, without a schema, that are no table or none that a stranger could create.
EXCEPTIONS = {
    ("history", "events_part", "became"): "a name that events_read gives, into which this part is put",
    ("history", "load_figures", "stdin"): "copy … from stdin",
    ("text_index", "make_sample", "text_sample"): "create temporary table: in pg_temp, always",
    ("trial", "barrier", "pgqueue_trial_of_a_handler"): "create temporary table: in pg_temp, always",
    ("schema", "deliver_dead", "public"): "revoke … from public: everybody",
    ("schema", "create_lease_rules", "public"): "revoke … from public: everybody",
    ("schema", "create_failure_tallies", "public"): "revoke … from public: everybody",
    ("schema", "create_failure_tallies", "rows_before"): "what a trigger's statement is given",
    ("schema", "create_failure_tallies", "rows_now"): "likewise",
    ("console_schema", "keep_all_out", "public"): "revoke … from public: everybody",
}
_BEFORE = {"from", "join", "update", "into", "table", "only", "using", "references", "on"}
_BETWEEN = {"only", "lateral", "if", "not", "exists", "table", "concurrently"}
_ENDS_LIST = {
    *("where", "group", "order", "limit", "having", "union", "except", "returning", "on", "set", "window", "for", ";"),
}
_OF_A_FUNCTION = {"extract", "substring", "trim", "overlay", "position"}
_METHODS = {"gin", "gist", "btree", "brin", "hash"}


def words(text: str) -> list[str]:
    """The words of the text without comments and literals; dollar-quoted text is code too."""
    plain = re.sub(r"--[^\n]*", " ", text)
    plain = re.sub(r"\$(\w*)\$", " ; ", plain)
    plain = re.sub(r"'(?:[^']|'')*'", " '' ", plain)
    return re.findall(r'"[^"]*"|%\(\w+\)s|\{\w*\}|[\w$]+|::|\S', plain)


def tables(text: str) -> Iterator[str]:
    """Names in a table's position without a schema."""
    found = [each.lower() for each in words(text)]
    depth: list[str] = []  # the word before each open parenthesis
    lists: dict[int, bool] = {}  # by depth: whether commas separate tables
    awaits = ""  # the word that a table follows
    for at, word in enumerate(found):
        if awaits and word in _BETWEEN:
            continue
        if awaits and _is_bare(found, at, awaits):
            yield word.strip('"')
        awaits = ""
        if word == "(":
            depth.append(found[at - 1] if at else "")
        elif word == ")":
            lists.pop(len(depth), None)
            depth = depth[:-1]
        elif word in _ENDS_LIST:
            lists.pop(len(depth), None)
        if word == "," and lists.get(len(depth)):
            awaits = "from"
        elif word in _BEFORE and _names_a_table(word, found, at, depth):
            awaits = word
            lists[len(depth)] = word == "from"


def _is_bare(found: list[str], at: int, awaits: str) -> bool:
    """After ``from`` and the like, a parenthesis means a function."""
    word, after = found[at], found[at + 1] if at + 1 < len(found) else ""
    is_whole = after != "." and (after != "(" or awaits in {"into", "table", "on", "references"})
    return bool(re.fullmatch(r'[a-z_]\w*|"[^"]*"', word)) and is_whole and (word, after) != ("rows", "from")


def _names_a_table(word: str, found: list[str], at: int, depth: list[str]) -> bool:
    before, after = found[at - 1] if at else "", found[at + 1] if at + 1 < len(found) else ""
    if word == "from":
        return before != "distinct" and not (depth and depth[-1] in _OF_A_FUNCTION)
    if word == "update":
        return before not in {"for", "do", "key", "on", "before", "after", "or"} and after not in {"set", ","}
    if word == "into":
        return before == "insert"
    if word == "using":
        return after not in _METHODS and before != "format" and "delete" in found[max(0, at - 12) : at]
    if word == "references":
        return before != "grant"
    if word == "on":
        since = found[:at][::-1]
        begun = since[: since.index(";")] if ";" in since else since
        return (
            begun[-1:] == ["create"]
            and bool({"index", "trigger"} & set(begun[-4:]))
            and len(begun) < 25
            and "(" not in begun
        )
    return word != "table" or before not in {"::", "as"}


def defined(text: str) -> set[str]:
    """Names that a statement defines itself, as by WITH."""
    plain = " ".join(each.lower().strip('"') for each in words(text))
    begins = r"(?:select|with|insert|update|delete|values|merge|\{|\()"
    return set(re.findall(rf"(\w+) (?:\( [\w ,]+ \) )?as (?:not )?(?:materialized )?\( {begins}", plain))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_table_has_its_schema(path: Path) -> None:
    ours = {name for _, _, text in parse(path) for name in defined(text)}
    bare = {
        (path.stem, name, table)
        for name, _, text in parse(path)
        for table in tables(text)
        if table not in ours
        and not table.startswith("pg_")
        and not (path.parent == CONSOLE and table.startswith("pgqueue_"))
    }
    assert bare == {each for each in EXCEPTIONS if each[0] == path.stem}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select 1 from stranger s, messages.message m", ["stranger"]),
        ("select 1 from messages.message m, stranger where extract(epoch from m.seq) > 0", ["stranger"]),
        ("select 1 from messages.message m left join lateral (select 1 from stranger) on true", ["stranger"]),
        ("select 1 from messages.message m join stranger using (id)", ["stranger"]),
        ("insert into stranger (a) values ('from here')", ["stranger"]),
        ("update only stranger set a = 1", ["stranger"]),
        ("delete from messages.message using stranger where true", ["stranger"]),
        ("create index if not exists a on stranger (b)", ["stranger"]),
        ("alter table stranger add b int", ["stranger"]),
        ("lock table stranger", ["stranger"]),
        ("create table if not exists stranger (a int references others (a))", ["stranger", "others"]),
        ("do $$ begin insert into stranger select 1; end $$", ["stranger"]),
        ("select a is distinct from b from {table} for update -- from stranger", []),
        ("insert into {table} values (1) on conflict (a) do update set a = 1", []),
        ("select 1 from rows from (unnest(a)) r, unnest(b)", []),
    ],
)
def test_table_without_its_schema_is_found(text: str, found: list[str]) -> None:
    assert list(tables(text)) == found
