"""Finds the logs in the copy that a start does not read: by their folders and the settings, without opening a file.

A broker reads one log. Without enableDLegerCommitLog that is commitlog/; with it that of dLegerSelfId, and commitlog/ below the
first data file alone. All else stays where it is, and the start makes the queues fit the log that it reads.
Source: DefaultMessageStore (constructor), DLedgerConfig.getDefaultPath, DLedgerCommitLog.recover and getData (dledger.md 6).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from schemas.layouts.dledger_layout import DATA, FOLDER_PREFIX
from schemas.layouts.store_names import COMMITLOG
from schemas.rows import MappedFile
from store_io.broker.loading import Tree, numbered_files
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.ledger_files import ledger_folder, ledger_folders

_LEDGER, _NODE = "enableDLegerCommitLog", "dLegerSelfId"


@dataclass(frozen=True)
class UnreadLog:
    """A folder with a log that a start does not read.

    files: those that may hold messages, by name.
    has: the setting, as `key=value`, that keeps a start from the log; "" if a line is missing.
    needs: the lines with which a start reads the log.
    own: the data files of the log that a start reads and that may hold the same entries.
    """

    folder: str
    files: tuple[MappedFile, ...]
    has: str
    needs: tuple[str, ...]
    own: tuple[MappedFile, ...] = ()

    @property
    def of_ledger(self) -> bool:
        """Say whether the files are data files of a DLedger group."""
        return self.folder != COMMITLOG


def unread_logs(tree: Tree, rules: BrokerRules) -> list[UnreadLog]:
    """Return the logs that a start does not read. [] if DLedger's mode was inferred, so that nobody said what is read."""
    if rules.settings[_LEDGER].origin == "inferred":
        return []
    return [*_of_other_nodes(tree, rules), *_behind_the_divide(tree, rules)]


def _of_other_nodes(tree: Tree, rules: BrokerRules) -> Iterator[UnreadLog]:
    own = ledger_folder(rules)
    known = tuple(numbered_files(tree, f"{own}/{DATA}")) if own else ()
    for folder in ledger_folders(tree.all, with_data=True):
        node = f"{_NODE}={folder.removeprefix(FOLDER_PREFIX)}"
        files = tuple(numbered_files(tree, f"{folder}/{DATA}"))
        if folder == own or not files:
            continue
        if not rules.value(_LEDGER):
            yield UnreadLog(folder, files, f"{_LEDGER}=false", (f"{_LEDGER}=true", node))
        else:
            yield UnreadLog(folder, files, f"{_NODE}={rules.value(_NODE)}" if own else "", (node,), known)


def _behind_the_divide(tree: Tree, rules: BrokerRules) -> Iterator[UnreadLog]:
    """Yield segments of commitlog/ from the first data file on: DLedger serves the offsets before that from commitlog/ alone."""
    own = ledger_folder(rules)
    data = numbered_files(tree, f"{own}/{DATA}") if own else []
    files = tuple(file for file in numbered_files(tree, COMMITLOG) if data and file.start >= data[0].start)
    if files:
        yield UnreadLog(COMMITLOG, files, f"{_LEDGER}=true", (f"{_LEDGER}=false",))
