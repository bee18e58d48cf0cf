"""Opens a copy: the listing, the rules that apply, what load() makes of it, and what each kind of files says of itself."""

from __future__ import annotations

from operator import itemgetter

from schemas.advice import Cause, Gap
from schemas.layouts.checkpoint_layout import ABORT_FILE
from schemas.rows import MappedFile
from store_io.base.errors import NotAStore
from store_io.broker.loading import LoadedStore, Tree, segments_of
from store_io.broker.releases import BrokerRules, Setting, broker_rules
from store_io.broker.settings.read_settings import read_settings
from store_io.kinds.all_kinds import KINDS
from store_io.model.audit_request import AuditRequest
from store_io.model.facts.log_place import log_place
from store_io.model.facts.odd_settings import unknown_names
from store_io.model.facts.size_misfits import size_misfits
from store_io.model.found_gaps import Gaps
from store_io.model.kind import Moment, Opening, Refusals
from store_io.model.opened_copy import MAX_PHY_OFFSET, OpenedCopy
from store_io.model.other_kinds import unmodelled
from store_io.source import store_dir
from store_io.source.byte_source import open_source


def open_copy(request: AuditRequest, gaps: Gaps, beside: OpenedCopy | None = None) -> OpenedCopy:
    """Find out all that needs no large file; what is not understood goes to `gaps`. Raises NotAStore.

    beside: the same copy, opened under other rules: it is not listed again.
    """
    listing = beside.listing if beside is not None else store_dir.list_folder(request.location)
    if request.living:
        listing = listing.without(ABORT_FILE)
    no_store = store_dir.why_no_store(request.location, listing.files)
    if no_store and not request.perhaps_emptied:
        raise NotAStore(no_store)
    source = beside.source if beside is not None else open_source(request.location)
    settings = dict(beside.rules.settings) if beside is not None else read_settings(request.broker_conf, listing, source)
    if request.changed is not None:
        settings[request.changed[0]] = Setting(request.changed[1], "changed")
    rules = broker_rules(request.release, settings)
    unknown = unknown_names(request.broker_conf, rules)
    misfits = size_misfits(request.broker_conf, listing, settings, unknown, lambda: read_settings(None, listing, source))
    place = log_place(request.broker_conf, listing, rules)
    tree = Tree(listing.files)
    not_modelled = unmodelled(listing, rules, request.broker_conf is not None)
    gaps.add([*filter(None, [place.asked]), *not_modelled, *store_dir.unreadable_parts(listing)])
    opening = Opening(source, listing, tree, rules, gaps, not_modelled)
    for kind in KINDS:
        opening.facts[kind.name] = kind.open(opening)
    loaded = opening.loaded
    met: list[Refusals] = [{Moment.BY_NAMES: loaded.refusal, Moment.IN_RECOVERY: loaded.later_refusal}]
    met += [kind.refusals(opening.facts[kind.name]) for kind in KINDS]
    # A broker ends at the first of these that it comes to.
    in_order = sorted(((moment, why) for each in met for moment, why in each.items() if why is not None), key=itemgetter(0))
    loaded.refusal = next((why for moment, why in in_order if moment < Moment.IN_RECOVERY), None)
    loaded.later_refusal = next((why for moment, why in in_order if moment >= Moment.IN_RECOVERY), None)
    not_modelled += [Gap(Cause.SEGMENT_OUT_OF_RANGE, f.path, (f.start,)) for f in loaded.segments if not _in_range(f)]
    gaps.add(not_modelled)
    return OpenedCopy(
        listing=listing,
        no_store=no_store,
        source=source,
        rules=rules,
        misfits=misfits,
        log_place=place,
        tree=tree,
        unmodelled=tuple(not_modelled),
        batch_topics=opening.batch_topics,
        compacted_topics=opening.compacted_topics,
        known_topics=opening.known_topics,
        write_queues=opening.write_queues,
        offsets=opening.offsets,
        delay_offsets=opening.delay_offsets,
        queues_in_files=opening.queues_in_files,
        loaded=loaded,
        checkpoint=opening.checkpoint,
        epochs=opening.epochs,
        marks=opening.marks,
        facts=opening.facts,
        segment_files=_all_segments(tree, loaded, rules),
        headers=opening.headers,
    )


def _in_range(file: MappedFile) -> bool:
    """Say whether the physical offsets of a segment are some that a log can have."""
    return 0 <= file.start <= MAX_PHY_OFFSET - file.size


def _all_segments(tree: Tree, loaded: LoadedStore, rules: BrokerRules) -> list[MappedFile]:
    """Return segments of the listing, and what else the broker loads as such; by name."""
    files = [f for f in segments_of(tree, rules) if _in_range(f)]
    known = {f.path for f in files}
    others = [f for f in loaded.segments if f.path not in known and _in_range(f)]
    return sorted([*files, *others], key=lambda f: (f.start, f.path))
