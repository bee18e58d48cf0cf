"""Reads the command line of a repair: its store, its plan, the new store's place, another copy to take from.

All of it is settled before anything is read of a message or written.
"""

from __future__ import annotations

import errno
import glob
import os
import time
from collections.abc import Mapping
from typing import Any

from jobs.audit.copy_at_rest import broker_signs, refused
from jobs.cli import argument_places, options
from jobs.cli.options import Command
from jobs.cli.start_options import asked_start
from jobs.cli.stores import StoreArgument
from jobs.repair.disk_of_target import on_its_disk
from jobs.runtime.faults import say
from jobs.runtime.output import OutputFailed, OutputFolder
from jobs.runtime.remote_files import TEMPORARY
from schemas.first_day import StartMoment
from schemas.layouts.store_names import BESIDE
from schemas.rows import NAMED
from store_io.base.errors import StoreError, UsageError
from store_io.base.failed_reads import every_read
from store_io.base.paths import is_uri
from store_io.broker.settings.read_settings import read_given
from store_io.repair.repair_copy import needed_bytes
from store_io.repair.repair_plan import BROKER, PLAN_BYTES, RepairPlan, other_settings, read_plan
from store_io.repair.repair_work import RepairRequest
from store_io.repair.writing.store_writer import left_beside, take_back
from store_io.source.byte_source import StoreLocation
from store_io.source.store_dir import list_store


@every_read()
def read_request(command: Command) -> tuple[StoreArgument, RepairRequest]:
    """Return the store and the repair that a command line asks for. Raises UsageError, StoreError."""
    given = command.options
    store = options.single_store(command)
    for option in ("--plan", "--to"):
        if option not in given:
            wrote = "; an audit writes the plan: OUT/NAME/plan.json" if option == "--plan" else ""
            raise UsageError(f"{option} is missing: repair STORE --plan PLAN --to NEWSTORE{wrote}")
    target = target_of(given["--to"], store)
    plan = plan_at(given["--plan"])
    if "--release" in given and (store.release, store.release_from) != (plan.release, NAMED):
        raise UsageError(f"--release {given['--release']}: the plan was made for {plan.release}")
    if plan.assumed and "--release" not in given:
        raise UsageError(
            f"--plan {given['--plan']!r}: its release, {plan.release}, was assumed: name the broker's own with --release"
        )
    if "--empty-config" in command.flags and "--fix-config" not in command.flags:
        raise UsageError("--empty-config: it says how --fix-config decides; name that, too")
    settings = _compare_settings(store.broker_conf, plan)
    location = StoreLocation(store.path, store.parts)
    _look_for_a_broker(location)
    donor = donor_of(given["--donor"], location, target) if "--donor" in given else None
    return store, RepairRequest(
        plan.store,
        location,
        target,
        plan.with_day_of(store.broker_conf),
        given.get("--policy", BROKER),
        donor,
        fix_offsets="--fix-offsets" in command.flags,
        fix_config="--fix-config" in command.flags,
        empty_config="--empty-config" in command.flags,
        settings=settings,
        heal_risk=_heal_risk(command),
        with_earlier="--with-earlier" in command.flags,
        late_timers="--late-timers" in command.flags,
        start=_start(given, location, target),
    )


def _start(given: Mapping[str, Any], location: StoreLocation, target: str) -> StartMoment:
    """Return the moment of the broker's start, on the disk of the target if that is known."""
    moment = asked_start(given).moment(time.time_ns())
    try:
        return on_its_disk(moment, target, needed_bytes(location), location)
    except StoreError:
        return moment  # no store: the repair itself says why


def _look_for_a_broker(location: StoreLocation) -> None:
    """Say what shows that a broker still writes to the copy. Raises StoreError if its lock is held."""
    try:
        signs = broker_signs(location.root, list_store(location).files)
    except StoreError:
        return  # no store: the repair itself says why
    if signs.held:
        raise StoreError(refused(signs, "repair"))
    for said in signs.sentences():
        say(f"warning: {said}. Repair a copy that nothing writes to.")


def _heal_risk(command: Command) -> float | None:
    if "--heal" in command.flags:
        from store_io.audit.healing.changes import DEFAULT_RISK

        return float(command.options.get("--heal-risk", DEFAULT_RISK))
    if "--heal-risk" in command.options:
        raise UsageError("--heal-risk: it says how --heal decides; name that, too")
    return None


def donor_of(text: str, store: StoreLocation, target: str) -> StoreLocation:
    """Return the second copy: a store, and not the one that is repaired."""
    donor = StoreLocation(argument_places.absolute(text))
    argument_places.refuse_inside(target, "--to", [donor.root])
    try:
        list_store(donor)
    except StoreError as problem:
        raise type(problem)(f"--donor {text}: {problem}") from None
    logs = [paths[0] for part, paths in store.parts if part == "commitlog"] or [f"{store.root}/commitlog"]
    for own, other in ((store.root, donor.root), (logs[0], f"{donor.root}/commitlog")):
        if own == other or os.path.exists(own) and os.path.exists(other) and os.path.samefile(own, other):
            raise UsageError(f"--donor {text}: {other!r} is {own!r} itself, so it has nothing to give; name another copy")
    return donor


def target_of(text: str, store: StoreArgument) -> str:
    """Return the path of the new store. Raises UsageError."""
    target = argument_places.absolute(text)
    if is_uri(target):
        raise UsageError(f"--to {text!r}: a folder of this machine, or one that is mounted here")
    if os.path.lexists(target):
        raise UsageError(f"--to {text!r}: exists; a repair makes a new folder and replaces nothing")
    if not os.path.isdir(os.path.dirname(target)):
        raise UsageError(f"--to {text!r}: there is no folder {os.path.dirname(target)!r}")
    argument_places.refuse_inside(target, "--to", store.roots)
    _refuse_beside(target, text)
    return target


def _refuse_beside(target: str, text: str) -> None:
    """Raise UsageError, naming the files, if some lie beside the target as beside a new store.

    They may be the only list of messages to be sent again. Those of a killed run, whose store never got its place, are no reason:
    this one removes them.
    """
    found = [path for path in (target + suffix for suffix in BESIDE) if os.path.lexists(path)]
    if found and not left_beside(target).issuperset(found):
        are = "is" if len(found) == 1 else "are"
        raise UsageError(
            f"--to {text!r}: {' and '.join(map(repr, found))} {are} left from another new store, and nothing is replaced;"
            " keep them elsewhere, or name another folder"
        )


def remove_unfinished(target: str) -> list[str]:
    """Remove files beside the target that a killed run had not written to the end. Returns those that cannot be removed.

    Runs of this version write none there: theirs wait in the hidden folder of the run.
    """
    parent, name = os.path.split(target)
    hidden = (f"{glob.escape(parent)}/.{glob.escape(name + suffix)}.{'[0-9a-f]' * 8}{TEMPORARY}" for suffix in BESIDE)
    return take_back(path for pattern in hidden for path in glob.glob(pattern))


def plan_at(path: str) -> RepairPlan:
    """Return the plan that --plan names. Raises UsageError, StoreError."""
    place = argument_places.absolute(path)
    try:
        data = _fetched(place) if is_uri(place) else argument_places.read_regular(place, PLAN_BYTES)
    except (OSError, ValueError) as problem:
        raise UsageError(f"--plan {path!r}: {getattr(problem, 'strerror', None) or problem}") from None
    except OutputFailed as problem:
        raise StoreError(f"--plan {problem}") from None
    try:
        return read_plan(data)
    except StoreError as problem:
        raise type(problem)(f"--plan {path}: {problem}") from None


def _fetched(uri: str) -> bytes:
    """Read a plan in the place of an audit's --out. Raises FileNotFoundError, OutputFailed."""
    folder, _, name = uri.rpartition("/")
    data = OutputFolder(folder).read(name, PLAN_BYTES) if name else None
    if data is None:
        raise FileNotFoundError(errno.ENOENT, "no such file")
    return data


def _compare_settings(text: str | None, plan: RepairPlan) -> str:
    """Return the origin of the settings, for the report. Raises UsageError if the file given now says anything else."""
    own = sum(origin == "broker.conf" for origin in plan.origins.values())
    if text is None:
        made = f"{own} of them from the broker.conf of its audit" if own else "made without a broker.conf"
        return f"those of the plan, {made}; no --broker-conf was given to compare them with"
    if wrong := other_settings(plan, read_given(text, plan.release)):
        raise UsageError(f"--broker-conf: {wrong[0]}. Name the file that the audit was given, or audit again with this one")
    return "those of the plan; broker.conf agrees"
