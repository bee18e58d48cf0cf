"""Puts together what a broker does by itself after a start at a named moment."""

from __future__ import annotations

from dataclasses import replace

from schemas.first_day import FirstDay, Retention, StartMoment
from store_io.broker.settings.day_settings import named_settings
from store_io.first_day.delays import delays_of_day
from store_io.first_day.registration import registers
from store_io.first_day.retention import retention
from store_io.first_day.timers import timers_lost, timers_of_day
from store_io.first_day.transactions import transactions
from store_io.model.evidence import Evidence
from store_io.model.start_moment import start_moment


def first_day(evidence: Evidence, asked: StartMoment) -> FirstDay | None:
    """Return what the broker does by itself after this start. None: it is after a last message that is not known."""
    moment = start_moment(evidence, asked)
    if moment is None:
        return None
    day = FirstDay(
        moment,
        timers=timers_of_day(evidence, moment),
        delays=delays_of_day(evidence, moment),
        transactions=transactions(evidence, moment),
        registers=registers(evidence),
        settings=tuple(named_settings(evidence.request.broker_conf, evidence.copy.rules).items()),
    )
    return replace(day, retention=_retention(evidence, moment, _written(day)))


def _retention(evidence: Evidence, moment: StartMoment, written: int) -> Retention | None:
    kept = retention(evidence, moment, written)
    if kept is None:
        return None
    return replace(kept, timers_lost=timers_lost(evidence, moment, kept.at_once, kept.in_delete_when, kept.next_hour_ms))


def _written(day: FirstDay) -> int:
    """Return how many messages the broker writes within a minute: what is due, and half messages, which each check puts again."""
    found = day.transactions.open if day.transactions is not None else 0
    for part in (day.timers, day.delays):
        found += part.at_once if part is not None else 0
    return found
