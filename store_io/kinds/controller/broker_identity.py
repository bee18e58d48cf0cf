"""By which name and id the controller knows the broker of a copy.

`brokerIdentity`: `cluster#broker#id` once the id is the broker's own; before that `brokerIdentity-temp` with the id that it asks
for and a code of its own. Source: BrokerMetadata, TempBrokerMetadata, ReplicasManager.register (controller.md 2).
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.rows import Row
from schemas.store_names import IDENTITY_FILE
from store_io.base.errors import StoreError
from store_io.base.java_compat import decode_utf8, parse_number, split_dropping_tail
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing

IDENTITY_BYTES = 4 << 10  # names of clusters and brokers have at most 255 characters


@dataclass(frozen=True)
class BrokerIdentity:
    """The identity in a broker's file. Names are as hostile as any in a store.

    temporary: the id was asked for and not yet confirmed.
    """

    cluster: str
    broker: str
    broker_id: int
    temporary: bool

    def row(self) -> Row:
        """Return the identity as a row of plan.json."""
        return {"cluster": self.cluster, "broker": self.broker, "id": self.broker_id, "temporary": self.temporary}


def read_identity(source: ByteSource, listing: StoreListing) -> BrokerIdentity | None:
    """Read the broker's identity; None if no file holds it. A start without one registers as a new replica. Never raises."""
    for path, parts in ((IDENTITY_FILE, 3), (IDENTITY_FILE + "-temp", 4)):
        if not listing.is_file(path):
            continue
        try:
            text = decode_utf8(source.read_small(path, IDENTITY_BYTES))
        except StoreError:
            continue
        found = split_dropping_tail(text, "#")
        number = parse_number(found[2], 64) if len(found) >= parts else None
        if number is not None:
            return BrokerIdentity(found[0], found[1], number, parts == 4)
    return None
