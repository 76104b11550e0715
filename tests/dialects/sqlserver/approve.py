"""Writes the approved statements anew: ``python -m tests.dialects.sqlserver.approve``. Read each line that changed."""

from pathlib import Path

from tests.dialects.sqlserver.statements import NOUNS, composed


def text_of(noun: str) -> str:
    return "\n\n".join(f"-- {name}: {why}\n{text}" for name, why, text in composed(noun)) + "\n"


if __name__ == "__main__":
    for noun in NOUNS:
        (Path(__file__).with_name("approved") / f"{noun}.sql").write_text(text_of(noun), encoding="utf-8")
