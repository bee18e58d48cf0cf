"""The names in brokerIdentity against those in broker.conf: a broker whose names differ never registers, and serves nobody.

Source: ReplicasManager.register, checkMetadataValid and confirmNowRegisteringState, 5.1.1 to 5.5.1 (controller.md 2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from schemas.finding_codes import Code
from schemas.layouts.store_names import IDENTITY_FILE
from schemas.rows import Finding
from store_io.kinds.controller.controller_kind import CONTROLLER
from store_io.model.evidence import Evidence


@dataclass(frozen=True, slots=True)
class OtherName:
    """A name of the broker that brokerIdentity, or brokerIdentity-temp, gives otherwise than broker.conf.

    own: the value of broker.conf.
    """

    path: str
    key: str
    stored: str
    own: str


def other_names(evidence: Evidence) -> Iterator[OtherName]:
    """Yield each name that differs: with any, the broker stays fenced.

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
            yield OtherName(path, key, stored, setting.value)


def identity_names(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each name that differs."""
    for name in other_names(evidence):
        yield Finding(
            Code.IDENTITY_DIFFERS,
            name.path,
            *evidence.copy.entry_range(name.path),
            expected=f"{name.key}={name.stored}",
            actual=f"{name.key}={name.own}",
            message=f"{name.path} says {name.stored}: correct the one or remove the file; until then the broker stays fenced",
        )
