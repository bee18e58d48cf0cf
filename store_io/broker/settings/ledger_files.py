"""The files of a DLedger group, and those that its load() maps (dledger.md 1, 2).

Source: DLedgerConfig.getDefaultPath, MmapFileList.load and doLoad, DLedgerMmapFileStore.load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from schemas.advice import Refusal, RefusalKind
from schemas.layouts import dledger_layout as layout
from schemas.rows import MappedFile, StoreFile
from store_io.base.java.java_compat import parse_number
from store_io.broker.releases import BrokerRules, Setting
from store_io.source.byte_source import name_of
from store_io.source.store_dir import DLEDGER

_ENABLED = "enableDLegerCommitLog"


@dataclass
class LedgerFiles:
    """The group's files as DLedger maps them.

    refusal: why it does not, else empty.
    old_segments: how many CommitLog files the older part of the log has.
    misfit: where data or index files do not adjoin.
    """

    folder: str
    data: list[MappedFile] = field(default_factory=list)
    index: list[MappedFile] = field(default_factory=list)
    refusal: Refusal | None = None
    old_segments: int = 0
    misfit: Refusal | None = None


def ledger_folder(rules: BrokerRules) -> str:
    """Return the group's folder below the store's root. "" if the broker has no DLedger log, or nobody knows its own id."""
    self_id = str(rules.value("dLegerSelfId"))
    return f"{layout.FOLDER_PREFIX}{self_id}" if rules.value(_ENABLED) and self_id else ""


def is_group(settings: Mapping[str, Setting]) -> bool:
    """Say whether the log is that of a DLedger group of several nodes, by dLegerPeers."""
    peers = str(settings["dLegerPeers"].value).split(";")
    return bool(settings[_ENABLED].value) and sum(bool(peer.strip()) for peer in peers) > 1


def settings_refusal(rules: BrokerRules) -> Refusal | None:
    """Return why a broker with a DLedger log ends over its settings alone, before it loads a store; None if it does not.

    Settings that were inferred are not judged. Source: BrokerStartup.buildBrokerController; DLedgerCommitLog (constructor),
    DLedgerConfig.initSelfAddress, MemberState (constructor), DLedgerRpcNettyService (constructor).
    """
    if not rules.value(_ENABLED) or rules.settings[_ENABLED].origin == "inferred":
        return None
    if rules.controller_mode and rules.refuses_ledger_with_controller:
        return Refusal(RefusalKind.LEDGER_AND_CONTROLLER, setting="enableControllerMode=true")
    self_id, peers = str(rules.value("dLegerSelfId")), str(rules.value("dLegerPeers"))
    for key, value in (("dLegerSelfId", self_id), ("dLegerPeers", peers)):
        if not value:
            return Refusal(RefusalKind.LEDGER_LINE_MISSING, expected=key, setting=key)
    if parse_number(self_id[1:], 32) is None:
        return Refusal(RefusalKind.LEDGER_SELF_ID, actual=self_id, setting=f"dLegerSelfId={self_id}")
    own = [address for node, _, address in (peer.partition("-") for peer in peers.split(";")) if node == self_id]
    if not own or parse_number("".join(own[0].split(":")[1:2]), 32) is None:
        return Refusal(RefusalKind.LEDGER_PEERS, expected=self_id, actual=peers, setting=f"dLegerPeers={peers}")
    return None


def ledger_folders(files: Iterable[StoreFile], with_data: bool = False) -> list[str]:
    """Return the folders of groups, by name. with_data: of those alone that hold a data file."""
    found = set()
    for entry in files:
        folder, _, rest = entry.path.partition("/")
        if folder in found or not DLEDGER.fullmatch(folder):
            continue
        part, _, name = rest.partition("/")
        holds = entry.kind == "file" and part == layout.DATA and bool(name)
        if holds or not with_data and (rest or entry.kind == "directory"):
            found.add(folder)
    return sorted(found)


def load_ledger(folder: str, data: Iterable[StoreFile], index: Iterable[StoreFile], rules: BrokerRules) -> LedgerFiles:
    """Return the files that DLedger maps of these names, sorted as it sorts them, or why the process ends.

    A file of another length, a directory too, ends the process by System.exit(-1); a name that is no number fails load().
    """
    found = LedgerFiles(folder)
    for entries, size, files in ((data, rules.segment_bytes, found.data), (index, layout.INDEX_FILE_BYTES, found.index)):
        for entry in entries:
            start = parse_number(name_of(entry.path), 64)
            if entry.kind == "directory" or entry.size != size:
                if entry.kind == "directory":
                    found.refusal = Refusal(RefusalKind.LEDGER_FILE_IS_FOLDER, entry.path, size)
                else:
                    found.refusal = Refusal(RefusalKind.LEDGER_FILE_LENGTH, entry.path, size, entry.size)
            elif start is None:
                found.refusal = Refusal(RefusalKind.FILE_NAME, entry.path)
            if found.refusal:
                return found
            files.append(MappedFile(entry.path, start or 0, entry.size))
    for files in (found.data, found.index):
        for before, after in pairwise(files):
            if after.start - before.start != before.size and not found.misfit:
                found.misfit = Refusal(RefusalKind.LEDGER_FILES_APART, after.path, before.path)
    return found
