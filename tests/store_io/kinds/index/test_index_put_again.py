"""Index entries that a start after a crash put a second time, of messages that share their batch's unique key: normal."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.answers import product
from tests.support.stores.builders import Dispatcher, Message, Record, Sizes, StoreBuilder


@dataclass
class Restarting(Dispatcher):
    """Dispatches with a crash behind each of these messages: the last one that is indexed is put once more."""

    restarts: set[int] = field(default_factory=set)  # physical offsets

    def _put_index(self, record: Record) -> None:
        for _ in range(1 + (record.phy_offset in self.restarts)):
            super()._put_index(record)


class Batches(StoreBuilder):
    """Writes batches as 5.3.3's clients send them: the batch's unique key stands last in each message, so that one counts."""

    restarts: set[int] = set()  # noqa: RUF012  (one store per test)

    def dispatcher(self) -> Dispatcher:
        return Restarting(self.release, self.sizes, restarts=self.restarts)

    def batch(self, number: int, count: int, keys: str | None) -> list[Record]:
        return self.put_batch(
            [
                Message(
                    "T",
                    body=b"m",
                    uniq=f"own{number}.{i}",
                    keys=keys and keys.format(i),
                    tags="a",
                    properties=(("UNIQ_KEY", f"B{number}"),),
                )
                for i in range(count)
            ]
        )


@pytest.mark.parametrize("release", ["5.3.3", "5.5.0"])
@pytest.mark.parametrize("keys", [None, "same", "k{}"])
@pytest.mark.parametrize("place", [0, 3, 5])
def test_a_batch_s_keys_put_again_are_normal(tmp_path: Path, release: str, keys: str | None, place: int) -> None:
    builder = Batches(release, Sizes(segment=4096, slots=20, index_max=60))
    batches = [builder.batch(number, 6, keys) for number in range(5)]
    builder.restarts = {batches[0][place].at, batches[2][0].at, batches[2][place].at, batches[3][5 - place].at, batches[4][5].at}
    store = builder.write(tmp_path / "store")
    audited = product.audit(store.root, store.release, store.broker_conf)
    assert not audited.above_note
    again = [f for f in audited.findings if f.code == "index_entry_duplicate"]
    each = 1 + (keys is not None) + (release == "5.5.0")
    assert sum(f.count for f in again) == len(builder.restarts) * each
    assert {f.phy_offset for f in again} <= builder.restarts


@pytest.mark.parametrize("release", ["5.3.3", "5.5.0"])
@pytest.mark.parametrize("bare", [1, 3])
@pytest.mark.parametrize("more", [[], [Message("T", body=b"m", uniq="last", tags="a")]], ids=["end", "more"])
def test_a_message_put_again_before_messages_with_tags_alone(
    tmp_path: Path, release: str, bare: int, more: list[Message]
) -> None:
    """5.4.0 and later put the tags of a message without a unique key too: they are in the index once, as they should be."""
    builder = Batches(release, Sizes(segment=4096, slots=20, index_max=60))
    again = builder.put(Message("T", body=b"m", uniq="U", keys="k", tags="a"))
    builder.restarts = {again.at}
    for message in [*[Message("T", body=b"m", tags=f"tag{n}") for n in range(bare)], *more]:
        builder.put(message)
    store = builder.write(tmp_path / "store")
    (found,) = product.audit(store.root, store.release, store.broker_conf).findings
    assert (found.code, found.severity, found.phy_offset, found.count) == (
        "index_entry_duplicate",
        "note",
        again.at,
        2 + (release == "5.5.0"),
    )
