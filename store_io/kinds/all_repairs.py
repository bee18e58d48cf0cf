"""Lists the kinds' parts in a repair. A kind whose files a repair clears away or makes anew has a row here."""

from __future__ import annotations

from store_io.kinds.checkpoint.checkpoint_rebuild import CheckpointRepair
from store_io.kinds.config.rebuild.offsets import ConfigRepair
from store_io.kinds.controller.epoch_rebuild import ControllerRepair
from store_io.kinds.dledger.group_files import LedgerRepair
from store_io.kinds.index.index_rebuild import IndexRepair
from store_io.kinds.queues.queue_rebuild import QueueRepair
from store_io.kinds.rocksdb_queues.rocksdb_queue_rebuild import RocksQueueRepair
from store_io.kinds.rocksdb_tables.table_rebuild import TableRepair
from store_io.kinds.timers.timer_rebuild import TimerRepair
from store_io.repair.kind_repair import KindRepair

# In the order in which files are made anew: each may need those before it.
REPAIRS: tuple[KindRepair, ...] = (
    LedgerRepair(),
    ConfigRepair(),
    IndexRepair(),
    QueueRepair(),
    RocksQueueRepair(),  # of a double write it takes the places of entries from the plans of the files
    TableRepair(),
    CheckpointRepair(),
    ControllerRepair(),
    TimerRepair(),
)
