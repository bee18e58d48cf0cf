"""The premises that a verdict assumes because nobody named them. They come before the verdict, which another assumption may
reverse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from schemas.layouts.store_names import EPOCH_FILE
from schemas.rows import ASSUMED, DEFAULT, DOUBT, NAMED, NOTED, TAKEN, Premise
from store_io.base.errors import StoreError
from store_io.base.failed_reads import unless_denied
from store_io.broker.releases import DECISIVE, NEWEST_RELEASE, BrokerRules, Setting, parse_known
from store_io.model.written_by import HEAD_BYTES, HEADS, WrittenBy
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing


@dataclass(frozen=True)
class GivenConf:
    """The facts to be said of a broker.conf that was named.

    misfits: why it is probably not this store's.
    odd: lines that the release takes otherwise than they read; such a line may be why nothing else fits.
    noted: facts that are to be known and decide nothing.
    """

    misfits: Sequence[str] = ()
    odd: Sequence[str] = ()
    noted: Sequence[str] = ()


def premises(
    release: str, release_from: str, written: WrittenBy, settings: Mapping[str, Setting], conf: GivenConf | None
) -> list[Premise]:
    """Return all premises, the most severe first.

    conf: None if no broker.conf was named.
    """
    given = conf or GivenConf()
    found = [*(Premise(TAKEN, odd) for odd in given.odd), *(Premise(DOUBT, sentence) for sentence in given.misfits)]
    if release_from == NAMED and written.surely_since and parse_known(release) < parse_known(written.surely_since):
        traces = ", ".join(written.newer[:3])
        found.append(
            Premise(
                DOUBT, f"RocketMQ {release} was named, but a broker of {written.surely_since} or newer wrote this copy: {traces}"
            )
        )
    if release_from != NAMED:
        sentence = f"{assumed_sentence(release, release_from)}."
        wrote = written.sentence()
        if wrote:
            sentence += f" This copy was {wrote}."
        if not written.holds(release):
            sentence += " Under the release that wrote it the answer may be another."
        whose = "the broker's own" if release_from == DEFAULT else "a known one"
        found.append(Premise(ASSUMED, f"{sentence} Name {whose} with --release"))
    if conf is None:
        inferred = [f"{key} = {setting.value}" for key, setting in sorted(settings.items()) if setting.origin == "inferred"]
        decisive = f"{', '.join(DECISIVE[:-1])} or {DECISIVE[-1]}"
        from_files = f"from the files {', '.join(inferred)}; " if inferred else ""
        found.append(
            Premise(
                ASSUMED,
                f"No broker.conf was named: {from_files}RocketMQ's defaults for all {'else' if inferred else 'settings'}. Other"
                f" settings, such as {decisive}, change what a start does. Name the broker's own with --broker-conf",
            )
        )
    if release_from == NAMED and written.older and parse_known(written.newest) < parse_known(release):
        wrote = f"This copy was probably written by RocketMQ {written.range_text()}"
        found.append(
            Premise(NOTED, f"{wrote}: a start of {release} is an upgrade, and the older release may not read what it writes")
        )
    return found + [Premise(NOTED, sentence) for sentence in given.noted]


def mode_doubts(listing: StoreListing, rules: BrokerRules) -> list[str]:
    """Return the doubt on a broker.conf that leaves controller mode out although the copy's broker ran in it."""
    if rules.controller_mode or not rules.knows_controller_mode or not listing.is_file(EPOCH_FILE):
        return []
    if rules.settings["enableControllerMode"].origin == "broker.conf":
        return []
    return [
        f"The broker of this copy ran in controller mode ({EPOCH_FILE}), and broker.conf leaves out enableControllerMode: this"
        " broker.conf is probably not this store's"
    ]


def inferred_mode(rules: BrokerRules) -> str:
    """Return the mode that nobody named, with the file that shows it, if the release knows the mode; else ""."""
    inferred = rules.controller_mode and rules.settings["enableControllerMode"].origin == "inferred"
    return f"controller mode ({EPOCH_FILE} is there, which a broker keeps that has left this mode)" if inferred else ""


def assumed_sentence(release: str, release_from: str) -> str:
    """Return a clause on a release that nobody named, or that is not known; without a full stop."""
    if release_from != DEFAULT:
        return f"RocketMQ {release_from} is not known: the rules of {release}, the newest known release below it, are assumed"
    newest = ", the newest known, is assumed" if release == NEWEST_RELEASE else " is assumed"
    return f"No release was named: RocketMQ {release}{newest}"


def heads_of(source: ByteSource, listing: StoreListing) -> dict[str, bytes]:
    """Return the beginnings of the files in config/ whose form differs between releases. Unreadable files are left out."""
    found = {}
    for path in HEADS:
        if listing.is_file(path):
            try:
                found[path] = unless_denied(partial(_head, source, path))
            except StoreError:  # a failed read is noted: `base.failed_reads`
                continue
    return found


def _head(source: ByteSource, path: str) -> bytes:
    with source.open(path) as file:
        return file.read(0, min(file.size, HEAD_BYTES))
