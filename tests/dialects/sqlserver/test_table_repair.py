"""Statements that repair a table come in an order the server accepts: objects that depend on a column go first."""

from types import SimpleNamespace
from typing import Any

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.sqlserver.dialect import SQLServer
from pgqueue_admin.dialects.sqlserver.query import written
from pgqueue_admin.dialects.table_fault import TableFault

SHOP = SQLServer("shop")
SALES = Address("dbo", "Sales")
NAMES = {
    "Id": ("uniqueidentifier", 16), "CorrelationId": ("varchar", 255), "ReplyToAddress": ("varchar", 255),
    "Expires": ("datetime", 8), "Headers": ("nvarchar", -1), "Body": ("varbinary", -1), "RowVersion": ("bigint", 8),
}  # fmt: skip


def in_index(name: str, column: str, **more: Any) -> Any:
    about = {
        "type": 2, "is_unique": 0, "is_primary_key": 0, "is_unique_constraint": 0, "filter": None,
        "is_descending": 0, "is_included": 0,
    }  # fmt: skip
    return SimpleNamespace(name=name, column=column, **{**about, **more})


DOCUMENTED = [
    in_index("Index_RowVersion", "RowVersion", type=1),
    in_index("Index_Expires", "Expires"),
    in_index("Index_Expires", "Id", is_included=1),
    in_index("Index_Expires", "RowVersion", is_included=1),
]


class Catalog:
    """The server's answers about the table: columns, with ``others`` replaced, indexes and defaults."""

    def __init__(
        self,
        indexes: list[Any],
        defaults: Any = (),
        no_identity: bool = False,
        triggers: Any = (),
        **others: tuple[str, int],
    ):
        self._triggers = triggers
        self._indexes, self._defaults = indexes, list(defaults)
        self._columns = {**NAMES, **others}
        self._no_identity = no_identity

    def all(self, query: str, params: Any = None) -> list[Any]:
        if "sys.triggers" in query:
            return [SimpleNamespace(name=name, is_of_deletes=is_of_deletes) for name, is_of_deletes in self._triggers]
        if "default_constraints" in query:
            return self._defaults
        if "is_included_column as is_included" in query:
            return self._indexes
        leading = {each.column for each in self._indexes if self._leads(each)}
        return [
            SimpleNamespace(
                name=name, type=kind, length=length, is_nullable=1, leads_an_index=name in leading,
                is_identity=name == "RowVersion" and not self._no_identity,
            )
            for name, (kind, length) in self._columns.items()
        ]  # fmt: skip

    def _leads(self, row: Any) -> bool:
        return not row.is_included and next(each for each in self._indexes if each.name == row.name) is row


def faults(*about: Any, **columns: Any) -> list[TableFault]:
    session: Any = Catalog(*about, **columns)
    return list(SHOP.queue_store(SALES).faults(session))


def test_a_table_as_documented_has_none() -> None:
    assert faults(DOCUMENTED) == []


def test_a_trigger_is_told_by_what_the_server_refuses_with_it() -> None:
    deletes, inserts = faults(DOCUMENTED, triggers=[("log]it", 1), ("copy", 0)])
    assert deletes == TableFault(
        "[dbo].[Sales] has the trigger log]it: the server refuses each receive (334).",
        "disable trigger [log]]it] on [dbo].[Sales]",
        stops=True,
    )
    assert inserts.said == "[dbo].[Sales] has the trigger copy: the server refuses what comes due for it (331)."
    assert not inserts.stops


def test_a_column_in_an_index_is_changed_without_it() -> None:
    (fault,) = faults(DOCUMENTED, Expires=("datetime2", 8))
    assert fault.cure == (
        "drop index [Index_Expires] on [dbo].[Sales];\n"
        "alter table [dbo].[Sales] alter column Expires datetime null;\n"
        "create nonclustered index [Index_Expires] on [dbo].[Sales] ([Expires]) include ([Id], [RowVersion])"
    )


def test_a_column_that_an_index_includes_is_changed_without_it() -> None:
    default = SimpleNamespace(name="DF_Id", column="Id", definition="(newid())")
    (fault,) = faults(DOCUMENTED, [default], Id=("varchar", 36))
    assert fault.cure == (
        "drop index [Index_Expires] on [dbo].[Sales];\n"
        "alter table [dbo].[Sales] drop constraint [DF_Id];\n"
        "alter table [dbo].[Sales] alter column Id uniqueidentifier not null;\n"
        "alter table [dbo].[Sales] add constraint [DF_Id] default (newid()) for [Id];\n"
        "create nonclustered index [Index_Expires] on [dbo].[Sales] ([Expires]) include ([Id], [RowVersion])"
    )


def test_a_column_that_numbers_nothing_is_replaced_with_all_that_holds_it() -> None:
    """The clustered index is dropped last and created first, so the others are built only once."""
    (fault,) = faults(
        [*DOCUMENTED, in_index("PK_Sales", "RowVersion", is_primary_key=1, is_unique=1)], no_identity=True
    )
    assert fault.stops
    assert fault.cure.split(";\n") == [
        "drop index [Index_Expires] on [dbo].[Sales]",
        "alter table [dbo].[Sales] drop constraint [PK_Sales]",
        "drop index [Index_RowVersion] on [dbo].[Sales]",
        *written(SHOP.table_repair.replace_rowversion(table=SALES)).split(";\n"),
        "create clustered index [Index_RowVersion] on [dbo].[Sales] ([RowVersion])",
        "alter table [dbo].[Sales] add constraint [PK_Sales] primary key nonclustered ([RowVersion])",
        "create nonclustered index [Index_Expires] on [dbo].[Sales] ([Expires]) include ([Id], [RowVersion])",
    ]


def test_a_body_is_changed_without_the_column_that_is_computed_from_it() -> None:
    (fault,) = faults(DOCUMENTED, Body=("varbinary", 8000), BodyString=("nvarchar", -1))
    assert fault.cure.split(";\n") == [
        "alter table [dbo].[Sales] drop column BodyString",
        "alter table [dbo].[Sales] alter column Body varbinary(max) null",
        "alter table [dbo].[Sales] add BodyString as cast(Body as nvarchar(max))",
    ]


def test_an_index_of_another_making_is_made_again_as_it_was() -> None:
    own = in_index("By%Age", "Expires", is_unique=1, is_descending=1, filter="([Expires] IS NOT NULL)")
    (fault,) = faults([DOCUMENTED[0], own], Expires=("datetime2", 8))
    assert fault.cure.split(";\n")[-1] == (
        "create unique nonclustered index [By%Age] on [dbo].[Sales] ([Expires] desc) where ([Expires] IS NOT NULL)"
    )


def test_an_index_is_made_aside_where_another_is_clustered() -> None:
    key = in_index("PK_Sales", "Id", type=1, is_unique=1, is_primary_key=1)
    (fault,) = faults([key, *DOCUMENTED[1:]])
    assert fault.cure == "create nonclustered index Index_RowVersion on [dbo].[Sales] (RowVersion)"


def test_an_index_that_has_the_name_and_is_another_goes_first() -> None:
    other = in_index("Index_Expires", "Id")
    (fault,) = faults([DOCUMENTED[0], other])
    assert fault.cure.split(";\n") == [
        "drop index [Index_Expires] on [dbo].[Sales]",
        "create nonclustered index Index_Expires on [dbo].[Sales] (Expires) include (Id, RowVersion)",
    ]
