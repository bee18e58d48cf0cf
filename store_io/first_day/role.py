"""Whether a started broker does by itself what a master does: it delivers what waits, and checks half messages.

Source: BrokerController.changeSpecialServiceStatus, startService (5.x); DefaultMessageStore.start (4.x).
"""

from __future__ import annotations

from store_io.broker.releases import BrokerRules
from store_io.first_day.registration import registers
from store_io.model.evidence import Evidence


def is_slave(rules: BrokerRules) -> bool:
    """Say whether the role stays that of a slave: with a controller, or DLedger, an election decides."""
    elected = rules.controller_mode or bool(rules.value("enableDLegerCommitLog"))
    return not elected and rules.is_slave


def is_master(evidence: Evidence) -> bool:
    """Say whether the broker is, or becomes, a master. One that stays fenced is none."""
    return not is_slave(evidence.copy.rules) and registers(evidence) is not False
