"""Decides which of the two repairs in plan.json is recommended; no other module does.

An audit's text, its page and a rescue all read the recommendation from the outcome's `repairs`, which `ways` makes, so that they
print the same command.
"""

from __future__ import annotations

from schemas.advice import Lack, Step
from schemas.finding_codes import Code
from schemas.outcome import Outcome
from schemas.repair import RepairProposal
from schemas.rows import NOTE
from store_io.audit.healing.changes import DEFAULT_RISK
from store_io.broker.settings.config_rules import CONFIG_FILES, DATABASE_TABLES
from store_io.outcome.safety import refused_by_config
from store_io.repair.repair_plan import BROKER

HEAL, HEAL_RISK, FIX_CONFIG, EMPTY_CONFIG, FIX_OFFSETS, WITH_EARLIER, LATE_TIMERS, DONOR = (
    "--heal", "--heal-risk", "--fix-config", "--empty-config", "--fix-offsets", "--with-earlier", "--late-timers", "--donor",
)  # fmt: skip
_KEPT_MS = 7 * 86_400_000 - 60_000  # of the timer's slots that a start reads, once a repair has made them
MOST_RISK = DEFAULT_RISK  # of all records together that are healed without a person who asked for it
_CONFIG_CODES = frozenset(
    {
        Code.CONFIG_DAMAGED, Code.CONFIG_BACKUP_TAKEN, Code.CONFIG_TABLE_LOST, Code.CONFIG_OLDER, Code.TOPIC_NOT_IN_TABLE,
        Code.DELAYED_MESSAGES_AGAIN, Code.CONFIG_NOT_COPIED,
    }
)  # fmt: skip


def proposals(outcome: Outcome) -> list[RepairProposal]:
    """Return the outcome's repairs, the recommended one first.

    For files of two brokers in one folder that is policy broker: it does not mix the messages of both in the same queues.
    """
    merged = any(lack.kind == Lack.STORES_MERGED for lack in outcome.whole.signs)

    def rank(one: RepairProposal) -> tuple[object, ...]:
        return one.refused is not None, merged and one.policy != BROKER, -one.messages_after, one.given_up, one.policy != BROKER

    return sorted(outcome.repairs or (), key=rank)


def recommended(outcome: Outcome) -> RepairProposal | None:
    """Return the proposal that keeps most; if both keep the same, that of the policy which surprises consumers least. None if
    none goes, or none changes anything."""
    return next((one for one in proposals(outcome) if one.refused is None and one.changes), None)


def timers_late(outcome: Outcome) -> bool:
    """Say whether --late-timers keeps timer messages that a decided start would pass over: a start within a week from now."""
    day = outcome.first_day
    in_time = day is not None and day.moment.at_ms < day.moment.now_ms + _KEPT_MS
    return in_time and any(f.code == Code.TIMERS_PASSED_OVER for f in outcome.found.findings)


def config_helps(outcome: Outcome) -> bool:
    """Say whether --fix-config writes a file of config/ that is damaged, lost or older; it writes no database."""
    refused_by = refused_by_config(outcome)
    mended = (f for f in outcome.found.findings if f.code in _CONFIG_CODES and f.severity != NOTE)
    files = [f.file for f in mended if not f.has_step(Step.OLDER_LIGHT_OFFSETS)]
    files += [f"config/{refused_by}"] if refused_by else []
    if outcome.holds.config_database:
        return any(file in {each.path for each in CONFIG_FILES} - {*DATABASE_TABLES} for file in files)
    return bool(files)
