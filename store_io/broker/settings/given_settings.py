"""One value of broker.conf as a release takes it. What it cannot read it leaves at its default, without a word.

Source: MixAll.properties2Object, the setters of BrokerConfig and MessageStoreConfig, 4.6.1 to 5.5.1 (recovery.md 0).
"""

from __future__ import annotations

from typing import Any

from store_io.base.java.java_compat import TRIMMED, parse_number

ROLES = ("ASYNC_MASTER", "SYNC_MASTER", "SLAVE")
_PRECISIONS_MS = 100, 200, 500, 1000
_RECOVER_MAX = 10
_LONGS = frozenset({"brokerId", "transactionCheckInterval", "transactionTimeOut"})


def taken_value(key: str, text: str, default: Any, trims: bool) -> Any:
    """Return the value that a setter of this kind gets; None if the default stays.

    trims: of texts, not of numbers and switches.
    """
    if isinstance(default, bool):
        return text.lower() == "true"
    if isinstance(default, int):
        number = parse_number(text, 64 if key in _LONGS else 32)
        if number is not None and key == "timerPrecisionMs":
            return _precision(number)
        return _RECOVER_MAX if number is not None and key == "commitLogRecoverMaxNum" and number <= 0 else number
    text = text.strip(TRIMMED) if trims else text
    return None if key == "brokerRole" and text not in ROLES else text


def _precision(asked: int) -> int:
    """Source: MessageStoreConfig.setTimerPrecisionMs."""
    return max((known for known in _PRECISIONS_MS if known <= asked), default=_PRECISIONS_MS[0])
