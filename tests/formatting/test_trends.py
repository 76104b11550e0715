"""The trend of a queue in words (CONSOLE 4, Overview 4)."""

import pytest

from pgqueue_admin.formatting.trends import trend


@pytest.mark.parametrize(
    ("ready", "entering", "leaving", "kind", "words"),
    [
        (4312, 8.3, 0.0, "input", "grows 8.3/s"),
        (12, 38.0, 38.4, "input", "steady"),
        (0, 38.0, 38.0, "input", "empty"),
        (1_200_000, 0.0, 214.0, "input", "empty in ≈\u00a01\u00a0h\u00a033\u00a0min"),
        (88_214, 240.0, 0.0, "audit", "grows, by design"),
        (10, None, None, "input", "rate not known"),
        (None, None, None, "input", "not known"),
        (10_000_000, 0.0, 0.01, "input", "hardly empties"),
        (116, None, None, "delayed", "–"),
    ],
)
def test_a_trend_is_said_in_words(
    ready: int | None, entering: float | None, leaving: float | None, kind: str, words: str
) -> None:
    assert trend(ready, entering, leaving, kind).words == words
