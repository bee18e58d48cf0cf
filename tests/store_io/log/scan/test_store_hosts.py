"""Store hosts: the same finding whatever a batch is, and no end of time for hosts that mean nothing."""

from __future__ import annotations

import numpy as np
import pytest

from store_io.base.findings import Findings
from store_io.log.records.message_columns import ROW_DTYPE
from store_io.log.scan.odd_headers import StoreHosts

ONE, OTHER, ODD = 1, 2, 3


class Window:
    """What a finding shows of the message."""

    def read(self, start: int, end: int) -> bytes:
        return bytes(end - start)


def found(hosts: list[int], batch: int) -> list[int]:
    """The messages, by number, whose store host is odd. batch: how many are fed at once."""
    rows = np.zeros(len(hosts), ROW_DTYPE)
    rows["store_host"], rows["position"] = hosts, np.arange(len(hosts)) * 1000
    findings = Findings()
    known = StoreHosts("commitlog/0", findings)
    for low in range(0, len(rows), batch):
        part = rows[low : low + batch].copy()
        known.feed(part, bool((part["store_host"] != part["store_host"][0]).any()))
        part[:] = 0  # as the next messages take the rows' place
    known.finish(Window(), [("T", 0)])  # type: ignore[arg-type]
    return [int(f.start or 0) // 1000 for f in findings.ordered()]


def moved(count: int, every: int) -> list[int]:
    """The broker has another address from the middle on; each so many messages after that are older ones that it wrote again."""
    return [ONE if n < count // 2 or n % every == 0 else OTHER for n in range(count)]


@pytest.mark.parametrize("batch", [1, 7, 256, 511, 512, 513, 4096])
def test_one_odd_host_is_found_whatever_a_batch_is(batch: int) -> None:
    hosts = moved(3000, 20)
    hosts[700] = ODD
    assert found(hosts, batch) == [700]


@pytest.mark.parametrize("batch", [1, 100, 512, 5000])
def test_hosts_that_mean_nothing_are_not_looked_at_one_by_one(batch: int) -> None:
    senseless = [ONE] * 600 + [n % 2 + 1 for n in range(600)] + [ONE] * 900
    senseless[1900] = ODD
    assert found(senseless, batch) == [1900]
    senseless[300] = ODD + 1  # lies before what means nothing, which takes the place of all that was known by then
    assert found(senseless, batch) == [1900]
