"""Whether a started broker ever registers: at name servers, or at its controller.

Source: ReplicasManager.startBasicService, register and checkMetadataValid, 5.1.1 to 5.5.1.
"""

from __future__ import annotations

from store_io.broker.settings.ledger_files import is_group
from store_io.kinds.controller.controller_kind import CONTROLLER
from store_io.kinds.controller.identity_names import other_names
from store_io.model.evidence import Evidence


def registers(evidence: Evidence) -> bool | None:
    """Return False if the broker stays fenced or ends, True if nothing in the copy keeps it from registering, else None.

    None: the start is not predicted, or other nodes decide: those of a DLedger group, or a controller that is asked for an id.
    It is asked if the copy holds none, or none that is confirmed, or if the release's id is the broker's address (5.0.0, 5.1.0).
    """
    prediction, rules = evidence.prediction, evidence.copy.rules
    if prediction is None:
        return None
    if not prediction.starts or prediction.hangs_at >= 0 or any(other_names(evidence)):
        return False
    if not rules.controller_mode:
        return None if is_group(rules.settings) else True
    identity, named = evidence.copy[CONTROLLER].identity, rules.settings["brokerName"]
    known = evidence.request.broker_conf is not None and named.origin == "broker.conf" and bool(named.value)
    return True if rules.checks_identity and known and identity is not None and not identity.temporary else None
