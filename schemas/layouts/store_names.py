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
USERS, ACLS = "config/users", "config/acls"  # databases of ACL 2.0
POP_RECORDS = "kvStore"  # the database of POP consumers
TIERED_METADATA = "config/tieredStoreMetadata.json"
EPOCH_FILE = "epochFileCheckpoint"
IDENTITY_FILE = "brokerIdentity"
UPLOAD_MARK = "UPLOAD_NOT_FINISHED"  # ours: an object beside a new store's files in S3 until all of them are there
PARTS = (COMMITLOG, QUEUES, INDEX)  # what may lie elsewhere: storePathCommitLog ...

REPORT_SUFFIX, PAGE_SUFFIX, PLAN_SUFFIX = ".repair.json", ".handover.html", ".plan.json"
UNSAVED_SUFFIX, RESEND_SUFFIX = ".unsaved.jsonl", ".resend.jsonl"
BESIDE = REPORT_SUFFIX, PAGE_SUFFIX, PLAN_SUFFIX, UNSAVED_SUFFIX, RESEND_SUFFIX  # ours: beside a new store, after its own name
BRIDGE_TOPIC = "STORE_AUDIT_BRIDGE"  # of messages that a repair puts in place of damaged bytes
