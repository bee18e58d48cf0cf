"""The place of the CommitLog in broker.conf. Such a path is said and never opened: the copy lies on another machine, or
elsewhere.
"""

from __future__ import annotations

import json
import posixpath
import re
from typing import NamedTuple

from schemas.advice import Cause, Gap
from schemas.layouts.dledger_layout import DATA
from schemas.layouts.store_names import COMMITLOG
from store_io.base.java.java_compat import parse_number
from store_io.base.java.java_properties import parse_properties
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.ledger_files import ledger_folder, ledger_folders
from store_io.source.byte_source import name_of
from store_io.source.store_dir import StoreListing
from store_io.wording.gaps import log_kept_at

_ROOT, _LOG, _LEDGER = "storePathRootDir", "storePathCommitLog", "storePathDLedgerCommitLog"
_MOST_LETTERS = 200
_OWN_DEFAULT = "4.9.4"  # before, a CommitLog that no line names lies in ~/store, whatever storePathRootDir says


class LogPlace(NamedTuple):
    """The place of the CommitLog by broker.conf, if it is another one.

    asked: why the audit is incomplete: the log lies outside of the folder and the copy has none.
    said: the log in the folder may come from another place, a clause; elsewhere: that place. "" if broker.conf names none.
    """

    asked: Gap | None = None
    said: str = ""
    elsewhere: str = ""


def log_place(broker_conf: str | None, listing: StoreListing, rules: BrokerRules) -> LogPlace:
    """Return the place of the CommitLog by broker.conf, if nobody named the place of the copy's own.

    Source: MessageStoreConfig.getStorePathCommitLog, getStorePathDLedgerCommitLog; MultiPathMappedFileQueue, MULTI_PATH_SPLITTER.
    """
    conf = parse_properties(broker_conf or "")
    root = conf.get(_ROOT, "").strip().replace("\\", "/")
    if rules.value("enableDLegerCommitLog"):
        return _ledger_place(conf, root, listing, rules)
    if COMMITLOG in dict(listing.location.parts):
        return LogPlace()
    given = conf.get(_LOG, "").strip()
    if not given and root and not rules.at_least(_OWN_DEFAULT) and not _in_default_root(root):
        given = "~/store/commitlog"
        kept = given, rules.release
    else:
        kept = _shown(given), ""
    if all(_is_default(folder, root) for folder in _folders(given, root)):
        return LogPlace()
    if not _has_segments(listing, COMMITLOG):
        return LogPlace(Gap(Cause.LOG_ELSEWHERE, COMMITLOG, kept))
    said = f"{log_kept_at(*kept)}; the log in {COMMITLOG}/ of this folder was read: make sure that it is from there"
    return LogPlace(said=said, elsewhere=kept[0])


def broker_folder(broker_conf: str | None, part: str) -> str:
    """Return where the broker keeps a part of its store, by broker.conf; "" if it names no place that a command can show."""
    conf = parse_properties(broker_conf or "")
    root = conf.get(_ROOT, "").strip().rstrip("/")
    path = (conf.get(_LOG, "").strip().rstrip("/") if part == COMMITLOG else "") or root and f"{root}/{part}"
    return path if re.fullmatch(r"[\w./~-]+", path, re.ASCII) else ""


def _ledger_place(conf: dict[str, str], root: str, listing: StoreListing, rules: BrokerRules) -> LogPlace:
    path, own = conf.get(_LEDGER, "").strip(), ledger_folder(rules)
    if not path or not rules.ledger_data_path or own in ledger_folders(listing.files, with_data=True):
        return LogPlace()
    folders = _folders(path, root)
    if own and root and all(posixpath.normpath(f"{root}/{own}/{DATA}") == folder for folder in folders):
        return LogPlace()
    into = f"{own}/{DATA}" if own else "the node's folder"
    return LogPlace(Gap(Cause.LEDGER_LOG_ELSEWHERE, values=(_shown(path), into)))


def _folders(given: str, root: str) -> list[str]:
    """Return the folders that a value names, several of them joined by "," or ":"."""
    named = given.replace("\\", "/").replace("${" + _ROOT + "}", root or "~/store")
    parts = re.split(r",|(?<=\w\w):(?=\s*[/~])", named)  # D:/store is one folder
    return [posixpath.normpath(part.strip()) for part in parts if part.strip()]


def _is_default(folder: str, root: str) -> bool:
    """Say whether the folder is the one below the root in which a broker looks if no line names another."""
    if root:
        return folder == posixpath.normpath(f"{root}/{COMMITLOG}")
    return folder.endswith(f"/store/{COMMITLOG}") or folder == f"store/{COMMITLOG}"


def _in_default_root(root: str) -> bool:
    return posixpath.basename(posixpath.normpath(root)) == "store" and posixpath.normpath(root).startswith(
        ("/root/", "/home/", "~")
    )


def _has_segments(listing: StoreListing, folder: str) -> bool:
    return any(
        entry.kind == "file"
        and entry.size
        and entry.path.startswith(f"{folder}/")
        and parse_number(name_of(entry.path), 64) is not None
        for entry in listing.files
    )


def _shown(text: str) -> str:
    if len(text) <= _MOST_LETTERS and re.fullmatch(r"[\w./:;,~${}-]+", text, re.ASCII):
        return text
    return json.dumps(text[:_MOST_LETTERS] + ("..." if len(text) > _MOST_LETTERS else ""), ensure_ascii=False)
