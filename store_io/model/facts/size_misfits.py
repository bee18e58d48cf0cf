"""Sizes in a broker.conf that no file of the copy has. It is probably another store's broker.conf, and much else follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from schemas.advice import Advice, Step
from schemas.finding_codes import CATALOGUE, Code, Part
from schemas.layouts import consumequeue_layout
from schemas.rows import Finding
from store_io.base.java.java_compat import parse_number
from store_io.broker.releases import Setting, index_bytes
from store_io.broker.settings.read_settings import INDEX_KEYS, agreed_size, mapped_files
from store_io.model.facts.odd_settings import UnknownName, shown_name
from store_io.source.byte_source import folder_of, name_of
from store_io.source.store_dir import StoreListing

_STEP = Advice(Step.OWN_CONF)


@dataclass(frozen=True)
class Misfit:
    """A size by a broker.conf that no file of its kind has.

    part: whose files.
    alone: there is one file of its kind, so that it may as well be this file that is wrong.
    """

    file: str
    expected: str
    actual: str
    part: Part
    sentence: str
    alone: bool = False
    step: Advice = _STEP


def size_misfits(
    broker_conf: str | None,
    listing: StoreListing,
    settings: Mapping[str, Setting],
    misnamed: Sequence[UnknownName] = (),
    left_out: Callable[[], Mapping[str, Setting]] | None = None,
) -> list[Misfit]:
    """Return the sizes in a broker.conf for which the files agree on another size.

    Such a broker.conf is probably another store's, unless a line that the release does not know by its name has the right size.
    left_out: the settings that hold without this broker.conf; None: nobody reads the next step.
    """
    if broker_conf is None:
        return []
    kinds = mapped_files(listing)
    unit = consumequeue_layout.ENTRY_BYTES
    queue_bytes = -(-settings["mappedFileSizeConsumeQueue"].value // unit) * unit
    index = [
        e
        for e in listing.files
        if folder_of(e.path) == "index" and e.kind == "file" and parse_number(name_of(e.path), 64) is not None
    ]
    slots, entries = (settings[key] for key in INDEX_KEYS)
    rows = (
        (Part.LOG, "segment", kinds["commitlog"], 1, ("mappedFileSizeCommitLog",), settings["mappedFileSizeCommitLog"].value),
        (Part.QUEUE, "ConsumeQueue file", kinds["consumequeue"], unit, ("mappedFileSizeConsumeQueue",), queue_bytes),
        (Part.INDEX, "index file", [e for e in index if e.size], 1, INDEX_KEYS, index_bytes(slots.value, entries.value)),
    )
    found, wrong = [], set[str]()
    for part, noun, files, piece, keys, wanted in rows:
        size = agreed_size(files, piece)
        if not size or any(entry.size == wanted for entry in files):
            continue
        wrong.update(keys)
        same = [entry for entry in files if entry.size == size]
        said = " and ".join(
            f"{'says ' if settings[key].origin == 'broker.conf' else 'leaves the default '}{key} = {settings[key].value}"
            for key in keys
        )
        said += f", which makes files of {wanted:,} bytes" if keys == INDEX_KEYS else ""
        if len(files) == 1:
            what, why = f"the only {noun} of this copy is", "this broker.conf is not this store's, or the file was cut"
        else:
            many = f"all {len(files):,}" if len(same) == len(files) else f"{len(same):,} of {len(files):,}"
            what, why = f"{many} {noun}s of this copy are", "this broker.conf is probably not this store's"
        step, right = _STEP, [line for line in misnamed if line.meant in keys]
        if right and _made_by(right, keys, settings) == size:
            why = f"{_both(shown_name(line.key) for line in right)} would fit under the right name"
            step = Advice(Step.CORRECT_NAMES, tuple(name for line in right for name in (line.meant, shown_name(line.key))))
        found.append(
            Misfit(
                same[0].path,
                f"{wanted} bytes",
                f"{size} bytes",
                part,
                f"broker.conf {said}; {what} {size:,} bytes long: {why}",
                len(files) == 1,
                step,
            )
        )
    if left_out is None or not found or any(misfit.alone for misfit in found) or not _shown(listing, settings, left_out(), wrong):
        return found
    return [replace(misfit, step=Advice(Step.OWN_CONF_OR_NONE)) if misfit.step == _STEP else misfit for misfit in found]


def _shown(listing: StoreListing, settings: Mapping[str, Setting], left_out: Mapping[str, Setting], wrong: Set[str]) -> bool:
    """Say whether the files show all that a broker.conf says.

    They do if they show sizes in place of the wrong ones, and all else as it is.
    """
    others = (key for key, setting in settings.items() if setting.origin == "broker.conf" and key not in wrong)
    return not size_misfits("", listing, left_out) and all(left_out[key].value == settings[key].value for key in others)


def _made_by(misnamed: Sequence[UnknownName], keys: Sequence[str], settings: Mapping[str, Setting]) -> int:
    """Return the length of the files of a kind if these lines had the names that were meant. 0 if one is no number."""
    values = {key: int(settings[key].value) for key in keys}
    for line in misnamed:
        values[line.meant] = parse_number(line.value.strip(), 32) or 0
    if min(values.values()) < 1:
        return 0
    if keys == INDEX_KEYS:
        return index_bytes(*(values[key] for key in INDEX_KEYS))
    unit = consumequeue_layout.ENTRY_BYTES if keys == ("mappedFileSizeConsumeQueue",) else 1
    return -(-values[keys[0]] // unit) * unit


def _both(names: Iterable[str]) -> str:
    return " and ".join(names)


def misfit_findings(misfits: Iterable[Misfit]) -> list[Finding]:
    """Return a note for each, at the first file that has another size."""
    return [
        Finding(Code.SETTING_MISMATCH, m.file, expected=m.expected, actual=m.actual, message=f"{m.sentence}.", next=m.step)
        for m in misfits
    ]


def with_cause(findings: Iterable[Finding], misfits: Sequence[Misfit]) -> Iterator[Finding]:
    """Return the findings, those that follow from a wrong broker.conf with that as their next step. One that has a step of its
    own keeps it: it has another cause."""
    steps = {misfit.part: misfit.step for misfit in misfits}
    if not steps:
        return iter(findings)
    return (_with_step(finding, steps) for finding in findings)


def _with_step(finding: Finding, steps: Mapping[Part, Advice]) -> Finding:
    caused = [step for part, step in steps.items() if CATALOGUE[finding.code].wrong_size_of & part]
    return replace(finding, next=caused[0]) if caused and finding.next is None else finding
