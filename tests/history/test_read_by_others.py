"""The four-line programs of docs/how-to/history.md, run unchanged on files that a driver wrote."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.models import DataFile, Queue

pytestmark = pytest.mark.spark
PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/history.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"```python\n# (\w+)\n(.*?)```", PAGE, re.DOTALL))


def test_documented_readers_give_the_figures_of_the_files(
    archived_console: str,
    driver: Callable[..., BatchLoop],
    history: Path,
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Queue.objects.create(schema="public", table="audit", kind="audit")
    assert driver(most=10_000).run_once() > 0
    (tmp_path / "var").mkdir()
    (tmp_path / "var/history").symlink_to(history)
    monkeypatch.chdir(tmp_path)
    paths = list(DataFile.objects.filter(dataset="history").values_list("path", flat=True))
    table = pyarrow.dataset.dataset([str(history / path) for path in paths]).to_table(["type", "critical_ms"])
    numbers = Counter(table["type"].to_pylist())
    assert len(numbers) > 3
    assert SNIPPETS.keys() == {"DuckDB", "pandas", "Polars", "Spark"}
    for name, snippet in SNIPPETS.items():
        known: dict[str, Any] = {"paths": paths, "spark": spark}
        with works_in(tmp_path, spark):
            exec(compile(snippet, f"docs/how-to/history.md, {name}", "exec"), known)
            assert dict(COUNTED[name](known["history"])) == dict(numbers), name
        said = capsys.readouterr().out
        assert any(each[:12] in said for each in filter(None, numbers)), f"{name} shows some types"


COUNTED: dict[str, Callable[[Any], Any]] = {
    "DuckDB": lambda history: history.aggregate("type, count(*)").fetchall(),
    "pandas": lambda history: history.groupby("type", dropna=False).size().rename({float("nan"): None}).items(),
    "Polars": lambda history: history.group_by("type").len().collect().iter_rows(),
    "Spark": lambda history: map(tuple, history.groupBy("type").count().collect()),
}


@contextmanager
def works_in(folder: Path, spark: Any) -> Iterator[None]:
    """Java keeps its working directory: a Spark started here would have this one."""
    hadoop = spark._jvm.org.apache.hadoop.fs
    files = hadoop.FileSystem.get(spark._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory()
    files.setWorkingDirectory(hadoop.Path(str(folder)))
    yield
    files.setWorkingDirectory(before)
