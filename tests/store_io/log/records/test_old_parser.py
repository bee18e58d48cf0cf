"""Values that hold 0x01: releases up to 4.9.0 drop or cut them, later ones take them whole. Keys and tags follow the release."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.answers import product
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

SIZES = Sizes(segment=4096, queue_file=400, slots=20, index_max=100)
ODD = (
    b"KEYS\x01x\x01y\x02UNIQ_KEY\x01u\x02",
    b"KEYS\x01x\x01\x02TAGS\x01a\x02",
    b"TAGS\x01a\x01b\x02KEYS\x01k\x02",
    b"UNIQ_KEY\x01u\x01\x01\x02KEYS\x01\x01k",
    b"KEYS\x01first\x02KEYS\x01x\x01y\x02",
    b"\x01x\x02KEYS\x01k\x02",
    b"long\x01" + b"v" * 150 + b"\x02TAGS\x01" + b"t" * 70 + b"\x01b\x02",
)


def store_of(root: Path, release: str) -> Store:
    builder = StoreBuilder(release, SIZES)
    for data in ODD * 3:
        builder.put(Message("T", body=b"b", raw_properties=data))
        builder.put(Message("T", body=b"b", tags="a", keys="k1 k2", uniq="u"))
    return builder.write(root)


@pytest.mark.parametrize("decoder", ["fast", "reference"])
@pytest.mark.parametrize("release", ["4.9.0", "4.9.1"])
def test_a_healthy_store_with_such_values_has_no_finding(tmp_path: Path, release: str, decoder: str) -> None:
    store = store_of(tmp_path / "store", release)
    audited = product.audit(store.root, release, store.broker_conf, decoder)
    assert not [f for f in audited.findings if f.code != "properties_malformed"]


def test_the_two_parsers_put_different_keys(tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", "4.9.1")
    audited = product.audit(store.root, "4.9.0", store.broker_conf)
    assert {"index_entry_wrong", "queue_entry_wrong"} & {f.code for f in audited.above_note}
