"""Stores with index and transactions in RocksDB, written by real brokers."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from random import Random

from tests.broker_truth.harness.damaged_copies import PLAIN, puts
from tests.broker_truth.harness.real_broker import Broker, Jvm, Put
from tests.support.stores.rocksdb_tables import DONE, HALF

SETTINGS = PLAIN | {"indexRocksDBEnable": "true", "transRocksDBEnable": "true"}


def half(number: int) -> Put:
    unique = f"H{number:031d}"
    properties = {"REAL_TOPIC": "pay", "REAL_QID": "0", "TRAN_MSG": "true", "__transactionId__": unique}
    return Put(HALF, b"half", uniq=unique, properties=properties)


def done(number: int, phy_offset: int) -> Put:
    properties = {"REAL_TOPIC": "pay", "TRANS_OFFSET": str(phy_offset), "__transactionId__": f"H{number:031d}"}
    return Put(DONE, b"\0", tags="d", uniq=f"D{number:031d}", properties=properties)


def put_transactions(broker: Broker, first: int) -> None:
    """Nine half messages, numbered from `first` on, three of them done."""
    answers = broker.put([half(first + n) for n in range(9)])
    broker.put([done(first + n, answers[n].phy_offset) for n in range(3)])


def put_all(broker: Broker, life: int) -> None:
    """Messages with keys and tags, text that is no ASCII, delayed ones, batches; nine half messages, three of them done."""
    random = Random(life)
    keyed = [Put("Topic0", b"k", keys=f"k{n} schlüssel k{n}", tags="tägs", uniq=f"K{life}-{n}") for n in range(60)]
    broker.put([*puts(random, 1000 * life, 100), *keyed])
    put_transactions(broker, 100 * life)
    broker.put([*puts(random, 1000 * life + 500, 30)])
    broker.catch_up()
    time.sleep(1)  # threads of their own write the tables


def write_lives(jvm: Jvm, folder: Path) -> Path:
    """The folder with `stopped` after two lives, `killed` a copy from within the second, `older` the database of the first."""
    for life in range(2):
        broker = jvm.broker(folder / "live", SETTINGS)
        broker.begin()
        put_all(broker, life)
        if life:
            shutil.copytree(folder / "live", folder / "killed")
        broker.shutdown()
        if not life:
            shutil.copytree(folder / "live" / "rocksdbstore", folder / "older")
    (folder / "live").rename(folder / "stopped")
    return folder
