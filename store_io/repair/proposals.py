"""Decides which of the two repairs in plan.json is recommended; no other module does.

An audit's text, its page and a rescue all read the recommendation from the section `repair` of the plan, so that they print the
same command. `ways` makes the section.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.advice import Lack, Step
from schemas.finding_codes import Code
from schemas.rows import NOTE, AuditOutcome, Row
from store_io.audit.healing.changes import DEFAULT_RISK
from store_io.broker.settings.config_rules import CONFIG_FILES, DATABASE_TABLES
from store_io.repair.repair_plan import BROKER, POLICIES
from store_io.repair.repair_steps import COPY, CORRECT_OFFSETS

HEAL, HEAL_RISK, FIX_CONFIG, EMPTY_CONFIG, FIX_OFFSETS, WITH_EARLIER, LATE_TIMERS, DONOR = (
    "--heal", "--heal-risk", "--fix-config", "--empty-config", "--fix-offsets", "--with-earlier", "--late-timers", "--donor",
)  # fmt: skip
MOST_RISK = DEFAULT_RISK  # of all records together that are healed without a person who asked for it
_CONFIG_CODES = frozenset(
    {
        Code.CONFIG_DAMAGED, Code.CONFIG_BACKUP_TAKEN, Code.CONFIG_TABLE_LOST, Code.CONFIG_OLDER, Code.TOPIC_NOT_IN_TABLE,
        Code.DELAYED_MESSAGES_AGAIN, Code.CONFIG_NOT_COPIED,
    }
)  # fmt: skip


@dataclass(frozen=True)
class RepairProposal:
    """The section's answer about one policy.

    refused: why it does not go, None if it does.
    worked_out: whether that was tried.
    options: words of the command besides --policy.
    changes: the new store is anything else than a copy.
    unserved: messages of an earlier life of their queue, which get no entry.
    config_left: why files of config/ are not mended.
    given_up_more: it may give up more messages than that.
    offsets: positions of consumers, delay levels and timers that it sets back.
    not_kept: entries in forms of config/ that it does not take.
    """

    policy: str
    refused: str | None = None
    worked_out: bool = True
    options: tuple[str, ...] = ()
    kept: int = 0
    given_up: int = 0
    healed: int = 0
    risk: float = 0.0
    risk_left: float = 0.0
    unserved: int = 0
    config_left: str = ""
    changes: bool = False
    given_up_more: bool = False
    offsets: int = 0
    not_kept: int = 0


def proposals(outcome: AuditOutcome) -> list[RepairProposal]:
    """Return the proposals of the section `repair` of the outcome's plan, the recommended one first.

    For files of two brokers in one folder that is policy broker: it does not mix the messages of both in the same queues.
    """
    section = outcome.plan.get("repair") or {}
    merged = any(lack.kind == Lack.STORES_MERGED for lack in outcome.not_whole)
    found = [_proposal(policy, section[policy]) for policy in POLICIES if policy in section]

    def rank(one: RepairProposal) -> tuple[object, ...]:
        return one.refused is not None, merged and one.policy != BROKER, -one.kept, one.given_up, one.policy != BROKER

    return sorted(found, key=rank)


def recommended(outcome: AuditOutcome) -> RepairProposal | None:
    """Return the proposal that keeps most; if both keep the same, that of the policy which surprises consumers least. None if
    none goes, or none changes anything."""
    return next((one for one in proposals(outcome) if one.refused is None and one.changes), None)


def _proposal(policy: str, row: Row) -> RepairProposal:
    if row["refused"] is not None:
        return RepairProposal(policy, row["refused"], row["worked_out"])
    return RepairProposal(
        policy, options=tuple(row["options"]), kept=row["messages_after"], given_up=row["given_up"], healed=row["healed"],
        risk=row["risk"], risk_left=row["risk_left"], unserved=row["unserved"],
        config_left=row["config_left"],
        changes=any(step["action"] != COPY for step in row["steps"]),
        given_up_more=row.get("given_up_more", False),
        offsets=sum(step["kept"].get("positions", 0) for step in row["steps"] if step["action"] == CORRECT_OFFSETS),
        not_kept=sum(form["count"] for file in row["config"] for form in file.get("not_kept", ())),
    )  # fmt: skip


def timers_late(outcome: AuditOutcome) -> bool:
    """Say whether a start that somebody decided on passes over timer messages: --late-timers keeps them."""
    return any(f.code == Code.TIMERS_PASSED_OVER for f in outcome.findings)


def refused_section(sentence: str, worked_out: bool = True) -> Row:
    """Return a policy's part of the section if it has no steps. worked_out: whether a repair refuses; else nobody tried."""
    return {
        "refused": sentence, "worked_out": worked_out, "options": [], "messages_before": None, "messages_after": None,
        "healed": None, "risk": None, "risk_left": None, "config_left": "", "lost": None, "given_up": None,
        "given_up_more": None, "config": [], "unserved": None, "steps": [],
    }  # fmt: skip


def config_helps(outcome: AuditOutcome) -> bool:
    """Say whether --fix-config writes a file of config/ that is damaged, lost or older; it writes no database."""
    refused_by = ((outcome.plan.get("broker") or {}).get("config") or {}).get("refused_by")
    mended = (f for f in outcome.findings if f.code in _CONFIG_CODES and f.severity != NOTE)
    files = [f.file for f in mended if not f.has_step(Step.OLDER_LIGHT_OFFSETS)]
    files += [f"config/{refused_by}"] if refused_by else []
    if outcome.config_database:
        return any(file in {each.path for each in CONFIG_FILES} - {*DATABASE_TABLES} for file in files)
    return bool(files)
