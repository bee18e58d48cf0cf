"""Puts together what a broker does by itself after a start at a named moment."""

from __future__ import annotations

from schemas.first_day import FirstDay, StartMoment
from store_io.first_day.delays import delays_of_day
from store_io.first_day.registration import registers
from store_io.first_day.timers import timers_of_day
from store_io.first_day.transactions import transactions
from store_io.model.evidence import Evidence
from store_io.model.start_moment import start_moment


def first_day(evidence: Evidence, asked: StartMoment) -> FirstDay | None:
    """Return what the broker does by itself after this start. None: it is after a last message that is not known."""
    moment = start_moment(evidence, asked)
    if moment is None:
        return None
    return FirstDay(
        moment,
        timers=timers_of_day(evidence, moment),
        delays=delays_of_day(evidence, moment),
        transactions=transactions(evidence, moment),
        registers=registers(evidence),
    )
