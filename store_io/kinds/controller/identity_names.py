"""The names in brokerIdentity against those in broker.conf: a broker whose names differ never registers, and serves nobody.

Source: ReplicasManager.register, checkMetadataValid and confirmNowRegisteringState, 5.1.1 to 5.5.1 (controller.md 2).
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.finding_codes import Code
from schemas.rows import Finding
from schemas.store_names import IDENTITY_FILE
from store_io.kinds.controller.controller_kind import CONTROLLER
from store_io.model.evidence import Evidence


def identity_names(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each name that differs.

    Without a broker.conf nobody knows the broker's names. One that leaves brokerName out means the host's name: not known either.
    A repair of a copy without a broker.conf names all settings, and the host's as "".
    """
    copy, identity = evidence.copy, evidence.copy[CONTROLLER].identity
    nameless = copy.rules.settings["brokerName"].origin == "broker.conf" and not copy.rules.value("brokerName")
    if identity is None or evidence.request.broker_conf is None or nameless or not copy.rules.checks_identity:
        return
    path = f"{IDENTITY_FILE}-temp" if identity.temporary else IDENTITY_FILE
    for key, stored in (("brokerName", identity.broker), ("brokerClusterName", identity.cluster)):
        setting = copy.rules.settings[key]
        known = setting.origin == "broker.conf" or key == "brokerClusterName"
        if known and stored != setting.value:
            yield Finding(
                Code.IDENTITY_DIFFERS,
                path,
                *copy.entry_range(path),
                expected=f"{key}={stored}",
                actual=f"{key}={setting.value}",
                message=f"{path} says {stored}: correct the one or remove the file; until then the broker stays fenced",
            )
