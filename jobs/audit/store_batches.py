"""Puts the stores of a run together that go through Spark at once, and names the slow ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from jobs.audit.one_store import Opened, WholeStore
from jobs.cli.stores import StoreArgument
from jobs.runtime import interrupts
from schemas.outcome import Outcome
from store_io.audit.audit_store import StoreAudit
from store_io.base.wording import names_text
from store_io.replicas.same_logs import same_logs

BATCH_STORES = 256  # opened together; bounds what the driver holds of a large fleet
# Read together, for each core: enough that the waiting at the end of each round is not felt, and little enough that stores end
# one after the other: what has ended is kept (`jobs.audit.finished_stores`).
BYTES_PER_CORE = 4 << 30

SLOW_SECONDS = 10.0  # of a store's tasks: shorter ones are not called slow
_SLOW = 4  # times slower than the fleet's median


def batches(
    stores: Sequence[StoreArgument], most: int = BATCH_STORES, weights: Sequence[int] | None = None
) -> Iterator[list[tuple[int, StoreArgument]]]:
    """Yield the stores with their numbers, as many together as reach `most`.

    A batch has more only if a group's copies would be separated.
    weights: the weight of each store; None: 1.
    """
    groups: dict[str, list[int]] = {}
    for number, store in enumerate(stores):
        if store.replica_group:
            groups.setdefault(store.replica_group, []).append(number)
    batch: list[int] = []
    taken: set[int] = set()
    load = 0
    for number, store in enumerate(stores):
        if number in taken:
            continue
        together = groups[store.replica_group] if store.replica_group else [number]
        taken.update(together)
        batch += together
        load += len(together) if weights is None else sum(weights[n] for n in together)
        if load >= most:
            yield [(n, stores[n]) for n in sorted(batch)]
            batch, load = [], 0
    if batch:
        yield [(n, stores[n]) for n in sorted(batch)]


def slow_stores(read: Sequence[tuple[str, int, float]]) -> list[str]:
    """Return a sentence for each store that was read much more slowly than the others.

    read: (name, bytes, seconds of its tasks).
    """
    rates = {name: size / seconds for name, size, seconds in read if size and seconds >= SLOW_SECONDS}
    if len(rates) < 3:
        return []
    usual = median(rates.values())
    slow = sorted((rate, name) for name, rate in rates.items() if rate * _SLOW <= usual)
    return [f"{name} was slow: {rate / 1e6:.1f} MB/s, half of the stores {usual / 1e6:.1f} MB/s or more" for rate, name in slow]


@dataclass
class FoundCopies:
    """Copies of one log that no row of a fleet file puts into a group. sentences: about them, for whoever reads the results.

    compare: put them into a group, as nobody could name one. In a fleet file somebody could, and may have had reasons not to.
    """

    compare: bool
    sentences: list[str] = field(default_factory=list)

    def grouped(
        self, stores: Sequence[tuple[int, StoreArgument]], prepared: Sequence[Opened]
    ) -> tuple[list[tuple[int, StoreArgument]], list[Opened | None]]:
        """Return the numbered stores, copies with the name of their group, and their audits, which get that name.

        None in the place of an audit that has ended, and of a copy that could not be read: it is to be made anew.
        """
        grouped, audits = list(stores), list[Opened | None](prepared)
        alone = [
            (place, one)
            for place, one in enumerate(prepared)
            if not isinstance(one, Outcome) and not one.failed and not stores[place][1].replica_group
        ]
        if len(alone) < 2:
            return grouped, audits
        with interrupts.threads(8) as threads:
            found = same_logs([audit for _, audit in alone], threads.map)
        for together in found:
            names = names_text([stores[alone[each][0]][1].name for each in together], 5)
            said = f"{names} are copies of one log: they hold the same messages at the same physical offsets"
            if not self.compare:
                self.sentences.append(f"{said}; they were not compared: give them one replica_group in the fleet file")
                continue
            name = f"log-of-{stores[alone[together[0]][0]][1].name}"
            self.sentences.append(f"{said}; no group was named, so they are compared as group {name}")
            for place, audit in (alone[each] for each in together):
                grouped[place] = (stores[place][0], replace(stores[place][1], replica_group=name))
                if isinstance(audit, StoreAudit):
                    audit.request = replace(audit.request, replica_group=name)
                else:
                    audits[place] = None
        return grouped, [None if isinstance(one, WholeStore) and one.failed else one for one in audits]
