"""History and the archive compute the same fingerprints: Spark's columns equal the SQL function."""

from typing import Any

import pytest

from pgqueue_admin.formatting.fingerprint import fingerprint
from pgqueue_admin.history.spark.transforms.fingerprints import fingerprinted
from tests.fingerprint_cases import FRAMES, HOSTILE, LONG_MESSAGES, MESSAGE, OTHERS, OWN_FRAMES, SAME
from tests.history.raw_rows import failed, raw

pytestmark = pytest.mark.spark

CASES: list[tuple[str | None, str | None]] = [
    *((message, "") for message in [*OTHERS, *(each for pair in SAME for each in pair)]),
    *(("x", trace) for pair in OWN_FRAMES for trace in pair),
    *(("x", frame) for some in FRAMES.values() for frame in some),
    *((MESSAGE, trace) for trace in LONG_MESSAGES),
    *HOSTILE,
]


@pytest.mark.parametrize("own_code", [(), ("Shop.", "b")])
def test_spark_and_python_fingerprints_are_equal(spark: Any, own_code: tuple[str, ...]) -> None:
    rows = fingerprinted(raw(spark, *(failed(*case) for case in CASES)), own_code).collect()
    read = [(row.exception_type, row.exception_message, row.stack_trace) for row in rows]
    assert len(rows) == len(CASES)
    differ = [
        each for each, row in zip(read, rows, strict=True) if fingerprint(*each, own_code).digest != row.fingerprint
    ]
    assert differ == []


def test_message_that_did_not_fail_has_no_fingerprint(spark: Any) -> None:
    (row,) = fingerprinted(raw(spark, {**failed("x", ""), "exception_type": None})).collect()
    assert row.fingerprint is None
