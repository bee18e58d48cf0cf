"""Audits copied Apache RocketMQ stores, and reads them as Spark data sources. In a Spark session of your own:

    from rocketmq_store_audit import sources

    sources.register(spark)
    spark.read.format("rocketmq.messages").schema("topic string").load("copies/broker-a").groupBy("topic").count().show()

`sources`: the data sources and their options. `session`: Spark as the command rmq-audit starts it, with Delta. All else in this
package may change without notice.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from jobs import VERSION as __version__

__all__ = ["__version__", "session", "sources"]
_PUBLIC = {"session": "runtime.session", "sources": "sources"}


def __getattr__(name: str) -> ModuleType:
    """The public modules, loaded when they are first used: workers and short commands need neither."""
    if name in _PUBLIC:
        return importlib.import_module(f"{__name__}.jobs.{_PUBLIC[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
