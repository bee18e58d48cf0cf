"""The one answer about a copy, and what to do in which order: values, in no language. `store_io.answer` decides them.

The values of `Answer` and `StepName` are keys of result.json and of the tables: they never change.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from schemas.advice import Advice, NotWhole


class Answer(StrEnum):
    """What to do with a copy: the first of these that holds."""

    NOT_KNOWN = "not_known"  # what decides could not be read, or is not modelled
    COPY_AGAIN = "copy_again"  # it is shown that the copy is not whole, and the rest may still be where the copy was made
    OTHER_COPY = "other_copy"  # another copy that was named holds what this one lacks, or is sound when this one is not
    CHANGE = "change"  # a setting or a file stops the start, or makes the start drop or hide messages
    REPAIR = "repair"  # a repair keeps what a start would lose, or mends what a start does not
    START_MENDS = "start_mends"  # a start loses nothing, and mends what differs
    EMPTY = "empty"  # no message, and nothing shows that there ever was one
    START = "start"  # nothing is lost; conditions follow, if there are any


class StepName(StrEnum):
    """Names a step. The order is that of the list: from what costs nothing to what gives something up."""

    STOP = "stop"
    COPY = "copy"
    OTHER = "other"
    CHANGE = "change"
    REPAIR = "repair"
    CONDITION = "condition"
    START = "start"
    CHECK = "check"
    RESEND = "resend"


@dataclass(frozen=True, slots=True)
class GivesUp:
    """What a repair gives up, in numbers. entries: of tables of config/ that only a form shows which is not taken."""

    messages: int = 0
    offsets: int = 0
    timers: int = 0
    entries: int = 0


@dataclass(frozen=True, slots=True)
class AnswerStep:
    """One step of the list.

    what: the fact from which its sentence is rendered; None for a repair, which the plan's proposals describe.
    files: the files that the step is about, below the store.
    gives_up: None unless it is a repair that was worked out.
    """

    name: StepName
    what: Advice | NotWhole | None = None
    files: tuple[str, ...] = ()
    gives_up: GivesUp | None = None
