"""Many row ids at once, as the library makes them and as the database formats them."""

from uuid import RFC_4122, UUID

import pytest

from pgqueue_admin.archive.row_ids import row_ids


@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_each_is_another_random_id(count: int) -> None:
    found = [UUID(each) for each in row_ids(count)]
    assert len(set(found)) == count
    assert {(each.version, each.variant) for each in found} <= {(4, RFC_4122)}


def test_row_ids_are_written_as_the_database_writes_them() -> None:
    ids = row_ids(50)
    assert ids == [str(UUID(each)) for each in ids]
