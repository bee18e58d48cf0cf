"""The titles of stores for people: if the name of a store's folder says nothing, its broker's name comes first.

For reading alone: folders, tables, links and options go by the store's own name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from jobs.report.texts.text import printable
from schemas.rows import AuditOutcome, Row

_LONGEST = 127  # characters of a brokerName that are shown: as many as RocketMQ allows
# Names of folders that any store may lie in, as RocketMQ's own default; a run makes them unique with -2, -3.
# A name that a person may have chosen, such as broker-1 or backup, is none of them.
_SAYS_NOTHING = re.compile(r"(store|data|rocketmq)(-[0-9]+)?", re.IGNORECASE)


def broker_name_of(outcome: AuditOutcome) -> str:
    """Return brokerName of broker.conf, else the controller's name of the broker; "" if neither is known."""
    named: Row = outcome.plan.get("settings", {}).get("brokerName") or {}
    controller: Row = (outcome.plan.get("broker") or {}).get("controller") or {}
    return str(named.get("value") or (controller.get("identity") or {}).get("broker") or "")


def store_title(name: str, broker_name: str | None, room: int = 0) -> str:
    """Return the store's name, or `broker-a (store)`.

    broker_name: hostile; "" or None if it is not known. A name with parentheses is not shown: it could end as another store's
    name does.
    room: if above 0, the characters of the whole; the broker's name is cut to fit.
    """
    if not broker_name or broker_name == name or not says_nothing(name) or {"(", ")"} & set(broker_name):
        return name
    own = f" ({name})"
    return printable(broker_name, max(room - len(own), 1) if room else _LONGEST) + own


def short_names(stores: Iterable[str]) -> dict[str, str]:
    """Return store -> the name that people read in its place.

    For a place this is its end, with the fewest folders that make it unlike all others.
    """
    known = sorted(set(stores))
    parts = {store: store.split("/") for store in known}
    ends = Counter("/".join(own[-n:]) for own in parts.values() for n in range(1, len(own) + 1))
    return {
        store: next((end for n in range(1, len(own)) if own[-n] and ends[end := "/".join(own[-n:])] == 1), store)
        for store, own in parts.items()
    }


def says_nothing(name: str) -> bool:
    """Whether any store's folder may be called that."""
    return _SAYS_NOTHING.fullmatch(name) is not None


def title_of(outcome: AuditOutcome) -> str:
    """Return the title of an audited store."""
    return store_title(outcome.name, broker_name_of(outcome))
