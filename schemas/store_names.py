"""Names of folders below a store's root, as brokers write them (formats.md 1).

Source: StorePathConfigHelper, ConsumeQueueStore, ConfigManager.configFilePath.
"""

COMMITLOG = "commitlog"
QUEUES = "consumequeue"
BATCH_QUEUES = "batchconsumequeue"
EXT = "consumequeue_ext"
INDEX = "index"
CONFIG = "config"
TIMER_LOG = "timerlog"
COMPACTION = "compaction"
COMPACTED_LOG = "compaction/compactionLog"
COMPACTED_QUEUE = "compaction/compactionCq"
TIERED_METADATA = "config/tieredStoreMetadata.json"
EPOCH_FILE = "epochFileCheckpoint"
IDENTITY_FILE = "brokerIdentity"
PARTS = (COMMITLOG, QUEUES, INDEX)  # what may lie elsewhere: storePathCommitLog ...
