"""Stores with queues, index, transactions or timers in RocksDB."""
