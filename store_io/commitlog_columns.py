"""The fast decoder: segment bytes -> rows in one compiled pass. Same contract as the reference in `commitlog_reader`."""

from __future__ import annotations

from store_io.commitlog_reader import decode
from store_io.message_columns import Columns, RecordCheck, Stop, TopicTable, append_message

__all__ = ["Columns", "RecordCheck", "Stop", "TopicTable", "append_message", "decode"]
