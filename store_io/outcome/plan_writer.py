"""Writes what an audit says of a start as plan.json has it. Nothing else knows the keys of these sections."""

from __future__ import annotations

from dataclasses import asdict, fields

from schemas.losses import ALL_READ, TimerCount
from schemas.outcome import Outcome
from schemas.rows import Comparison, PlanStep, Row, Start
from schemas.start_effect import (
    BrokerState,
    ConfigLoad,
    ControlledStart,
    LostByStart,
    QueueEnds,
    QueueLost,
    Setting,
    StartEffect,
    TimersAfter,
)
from store_io.base.documents import document_of
from store_io.base.packed import mapped
from store_io.base.times import iso_time
from store_io.first_day.plan_section import first_day_section
from store_io.wording.gaps import gap_rows
from store_io.wording.refusals import refusal_row, refusal_sentence

_STEP = [each.name for each in fields(PlanStep)]
_OF_A_START = (
    "start_segment", "stop_reason", "min_phy_offset", "truncate_at", "lost", "deleted_files", "after_load", "after_dispatch",
    "after_election", "controller", "dledger",
)  # fmt: skip


def audit_plan(outcome: Outcome) -> Row:
    """Return plan.json of an audit, but for what a repair would do. Long lists in it are made while they are read."""
    return {
        "schema_version": 1,
        "store": outcome.name,
        "release": outcome.release,
        "release_from": outcome.assumed.release_from,
        "complete": outcome.complete,
        "gaps": gap_rows(outcome.gaps),
        **({"not_read": asdict(outcome.covered.not_read)} if outcome.covered.not_read != ALL_READ else {}),
        **({"not_judged": outcome.covered.not_judged} if outcome.covered.not_judged else {}),
        "settings": {key: _setting_row(setting) for key, setting in sorted(outcome.plan.settings.items())},
        "inputs": outcome.plan.inputs,
        "broker": broker_section(outcome.effect) if outcome.effect is not None else None,
        "first_day": first_day_section(outcome.first_day),
        "steps": mapped(outcome.plan.steps, step_row),
        **(_comparison(outcome.comparison) if outcome.comparison is not None else {}),
        **({"edges": [edge._asdict() for edge in outcome.plan.edges]} if outcome.plan.edges is not None else {}),
    }


def step_row(step: PlanStep) -> Row:
    """Return a row of the plan's `steps`."""
    return {name: getattr(step, name) for name in _STEP}


def _setting_row(setting: Setting) -> Row:
    """Return a setting with the text that the release made its value of, unless both are the same."""
    row = {"value": setting.value, "from": setting.origin}
    same = (
        setting.text is None
        or setting.text == str(setting.value)
        or isinstance(setting.value, bool)
        and (setting.text.lower() == str(setting.value).lower())
    )
    return row if same else {**row, "text": setting.text}


def broker_section(effect: StartEffect) -> Row:
    """Return the plan's `broker`."""
    started = effect.started
    beside = {
        "starts": effect.starts,
        "exit": effect.exit,
        **refusal_row(effect.refusal),
        "config": _config(effect.config) if effect.config is not None else None,
        "timer": _timers(effect.timers) if effect.timers is not None else None,
    }
    if started is None:
        return {**beside, **dict.fromkeys(_OF_A_START)}
    return {
        **beside,
        "start_segment": started.start_segment,
        "stop_reason": started.stop_reason,
        "min_phy_offset": started.min_phy_offset,
        "truncate_at": started.truncate_at,
        **({"lost": _lost(started.lost)} if started.lost is not None else {}),
        "deleted_files": list(started.deleted_files),
        "after_load": _state(started.after_load),
        "after_dispatch": _state(started.after_dispatch),
        "after_election": _state(started.after_election) if started.after_election is not None else None,
        "controller": _controller(started.controller) if started.controller is not None else None,
        "dledger": document_of(started.ledger) if started.ledger is not None else None,
    }


def _state(state: BrokerState) -> Row:
    return {
        "commitlog": [asdict(file) for file in state.commitlog],
        "queues": mapped(state.queues, _queue),
        **({} if state.queues_files is None else {"queues_files": mapped(state.queues_files, _queue)}),
        "index": [asdict(file) for file in state.index],
    }


def _queue(queue: QueueEnds) -> Row:
    row = queue._asdict()
    del row["other"]
    return row if queue.other is None else {**row, "or": queue.other._asdict()}


def _lost(lost: LostByStart) -> Row:
    return {"messages": lost.messages, "bytes": lost.bytes, "by_queue": mapped(lost.by_queue, _queue_lost)}


def _queue_lost(lost: QueueLost) -> Row:
    times = {"first_store_time": iso_time(lost.first_store_time), "last_store_time": iso_time(lost.last_store_time)}
    return {**lost._asdict(), **times}


def _controller(controller: ControlledStart) -> Row:
    row: Row = document_of(controller)
    if controller.identity is not None:
        row["identity"]["id"] = row["identity"].pop("broker_id")
    return row


def _timers(timers: TimersAfter) -> Row:
    return {
        "log_end": timers.log_end,
        "queue_offset": timers.queue_offset,
        "lost": _timers_lost(timers.lost) if timers.lost is not None else None,
    }


def _timers_lost(lost: TimerCount) -> Row:
    first, last = (iso_time(at) if lost.messages else None for at in (lost.first_time, lost.last_time))
    return {"messages": lost.messages, "first_delivery_time": first, "last_delivery_time": last}


def _config(load: ConfigLoad) -> Row:
    return {
        "starts": not load.refused_by,
        "refused_by": load.refused_by or None,
        "refusal": str(refusal_sentence(load.refusal)) if load.refusal is not None else None,
        "read": dict(load.read),
        "topics": load.topics,
        "groups": load.groups,
        "offsets": load.offsets,
    }


def _comparison(compared: Comparison) -> Row:
    return {
        "releases": [{"release": row.release, **_compared(row)} for row in compared.releases],
        "lose_least": list(compared.least),
        "other_settings": [{"setting": row.setting, "value": row.value, **_compared(row)} for row in compared.settings],
        "settings_without_effect": list(compared.unchanged),
    }


def _compared(row: Start) -> Row:
    timers = {"timers_lost": row.timers_lost}
    lost = {"lost_messages": row.lost_messages, "lost_bytes": row.lost_bytes, "deleted_file_count": row.deleted_files, **timers}
    ends = {"starts": row.starts, **refusal_row(row.refusal), "truncate_at": row.truncate_at}
    return {"known": row.known, "why": row.why, "doubt": row.doubt, **ends, **lost, "exit_code": row.exit_code}
