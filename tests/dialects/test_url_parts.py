"""An error about a database's URL shows no part of its password."""

from collections.abc import Callable
from typing import Any

import pytest

from pgqueue_admin.dialects.errors import UrlUnreadable
from pgqueue_admin.dialects.mysql import connect_options as mysql
from pgqueue_admin.dialects.postgresql.connect_options import said_by
from pgqueue_admin.dialects.sqlserver import connect_options as sqlserver

READERS: dict[str, Callable[[str], Any]] = {"mysql": mysql.arguments, "mssql": sqlserver.read}
# characters left unescaped
PASSWORDS = ["s3#cret", "s3?cret", "s3?cret=1", "s3/cret", "s3[cret]", "s3℀cret", "s3&cret?x"]


@pytest.mark.parametrize("scheme", READERS)
@pytest.mark.parametrize("password", PASSWORDS)
def test_a_password_that_cannot_be_read_is_told_to_nobody(scheme: str, password: str) -> None:
    with pytest.raises(ValueError, match="The URL of the database cannot be read") as refused:
        READERS[scheme](f"{scheme}://ana:{password}@127.0.0.1/shop")
    assert "cret" not in str(refused.value)
    assert "s3" not in str(refused.value)


def test_a_password_with_an_at_is_no_host() -> None:
    with pytest.raises(UrlUnreadable):
        said_by("postgresql://ana:s3@cret@127.0.0.1/shop")
    assert said_by("host=/run/a@b,@abstract")["host"] == "/run/a@b,@abstract"
