"""Puts together what a broker does by itself after a start at a named moment."""

from __future__ import annotations

from schemas.first_day import FirstDay, StartMoment
from store_io.first_day.registration import registers
from store_io.first_day.transactions import transactions
from store_io.model.evidence import Evidence


def first_day(evidence: Evidence, moment: StartMoment) -> FirstDay:
    """Return what the broker does by itself if it is started on this copy at this moment."""
    return FirstDay(moment, transactions=transactions(evidence, moment), registers=registers(evidence))
