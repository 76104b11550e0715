"""Resolves a logical address to a table and schema, and checks the length of names (wire sheet 1.4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pgqueue_admin.dialects import Address, Dialect
from pgqueue_admin.dialects.errors import AddressUnreadable

DELAYED_SUFFIX = "Delayed"
_COMES_BACK = {
    "audit_queue": "each copy would be handled, and copied, again",
    "error_queue": "what failed would come straight back, and fail again",
}


def table_name(base: str, qualifier: str = "", discriminator: str = "") -> str:
    """``Sales``, ``Sales.Delayed``, ``Sales.instance-1``: empty parts are dropped."""
    return ".".join(part for part in (base, qualifier, discriminator) if part)


@dataclass(frozen=True, slots=True)
class Addressing:
    """Resolves an endpoint's addresses: the schema configured for the queue, else the address's, else the default."""

    dialect: Dialect
    schema: str
    schemas: Mapping[str, str] = field(default_factory=dict)  # by table name, without quotes

    def resolve(self, destination: str | Address) -> Address:
        """The table of a destination; an Address is returned unchanged. Raises AddressUnreadable."""
        if isinstance(destination, Address):
            return destination
        read = self.dialect.parse_address(destination, self.schema)
        return read._replace(schema=self.schemas.get(read.table, read.schema))

    def own(self, table: str) -> Address:
        return self.dialect.address(self.schemas.get(table, self.schema), table)

    def canonical(self, address: Address) -> str:
        return self.dialect.canonical(address)


def name_faults(dialect: Dialect, endpoint: str, instance: str = "", send_only: bool = False) -> list[str]:
    """Faults of an endpoint's name: all its tables must fit the limit, also the delayed one."""
    if not endpoint or "\0" in endpoint + instance:
        return ["An endpoint needs a name, and that name may not hold a NUL character."]
    if send_only:
        return []
    delayed, own = table_name(endpoint, DELAYED_SUFFIX), table_name(endpoint, discriminator=instance)
    return [
        *_too_long(dialect, f"The endpoint name {endpoint!r}", delayed),
        *(_too_long(dialect, f"The instance name {instance!r}", own) if instance else ()),
    ]


def queue_faults(addressing: Addressing, what: str, queue: str) -> list[str]:
    """Faults of a queue in the settings. ``what``: the setting's name."""
    try:
        table = addressing.resolve(queue).table
    except AddressUnreadable as error:
        return [f"{what}: {error}."]
    return list(_too_long(addressing.dialect, f"The {what} {queue!r}", table))


def own_queue_faults(addressing: Addressing, own: Sequence[Address], what: str, queue: str) -> list[str]:
    """Fault of a queue in the settings that is the endpoint's own."""
    try:
        comes_back = queue and addressing.resolve(queue) in own
    except AddressUnreadable:  # reported by queue_faults
        return []
    return [f"The {what} {queue!r} is the endpoint's own: {_COMES_BACK[what]}."] if comes_back else []


def _too_long(dialect: Dialect, what: str, table: str) -> Iterator[str]:
    """Measure bytes, not characters: beyond the limit PostgreSQL would truncate names of keys and sequences."""
    size, limit = len(table.encode()), dialect.max_table_bytes
    if size > limit:
        yield f"{what} is {size - limit} bytes too long: its table {table!r} has {size} bytes and {limit} are allowed."
