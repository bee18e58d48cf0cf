"""The release of a copy's broker, where the copy itself leaves no choice: for commands that would otherwise have to ask."""

from __future__ import annotations

from dataclasses import dataclass

from store_io.audit.compared.variants import same_rules
from store_io.broker.releases import KNOWN_RELEASES, NEWEST_RELEASE, broker_rules, parse_known
from store_io.model.audit_request import AuditRequest
from store_io.model.found_gaps import Gaps
from store_io.model.opened_copy import open_copy
from store_io.model.premises import heads_of
from store_io.model.written_by import WrittenBy, written_by
from store_io.source.byte_source import StoreLocation


@dataclass(frozen=True)
class Detected:
    """The release of a copy as its files show it.

    release: the release whose rules to apply; "" if that is not sure.
    among: the releases that are possible then, all of which do the same with this copy.
    written: the traces in the files.
    """

    written: WrittenBy
    release: str = ""
    among: tuple[str, ...] = ()


def detect_release(location: StoreLocation, broker_conf: str | None) -> Detected:
    """Detect a copy's release by names, checkpoint and tables; no large file is read. Raises NotAStore.

    Only one fact is sure: which releases are too old. So a release follows if all that are not too old have the same rules.
    """
    copy = open_copy(AuditRequest("", location, NEWEST_RELEASE, broker_conf), Gaps())
    written = written_by(copy.listing.files, copy.checkpoint, heads_of(copy.source, copy.listing))
    if not written.surely_since:
        return Detected(written)
    among = tuple(r for r in KNOWN_RELEASES if parse_known(r) >= parse_known(written.surely_since))
    if len({same_rules(broker_rules(release, copy.rules.settings)) for release in among}) > 1:
        return Detected(written)
    return Detected(written, among[0], among)
