"""Times of MySQL and MariaDB that no calendar has: the driver would return a text instead of a time."""

from datetime import datetime
from typing import Any

from pymysql.constants import FIELD_TYPE
from pymysql.converters import conversions, convert_datetime

from pgqueue_admin.dialects.out_of_range_times import Beyond


def _loaded(said: str | bytes) -> Any:
    read = convert_datetime(said)
    return read if isinstance(read, datetime) else Beyond.of(str(said), None)


def _written(time: Beyond, _: Any = None) -> str:
    return "'{}'".format(time.beyond.replace("'", "''"))


CONVERSIONS: dict[Any, Any] = {
    **conversions,
    FIELD_TYPE.DATETIME: _loaded,
    FIELD_TYPE.TIMESTAMP: _loaded,
    Beyond: _written,
}
