"""Findings on a copy that must not become master as it is: other copies of its group hold messages or newer tables.

A copy that is a clean earlier moment of another one has none. It is what a slave, or an older copy, is by its nature; the answer
names the copy to start in its place.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.finding_codes import Code
from schemas.layouts.store_names import COMMITLOG
from schemas.replicas import LOGS_APART, Group, TableAhead
from schemas.rows import Finding
from store_io.base.wording import count_text
from store_io.outcome.safety import as_master, is_earlier

_NOUNS = {"topics": "topic", "groups": "group", "offsets": "offset", "delay_offsets": "delay level's offset"}


def behind_findings(group: Group, store: str) -> Iterator[Finding]:
    """Yield the finding on messages that the copy lacks, and one for each table of config/ that is newer elsewhere."""
    lacking = as_master(group, store)
    if lacking is not None and not lacking.earlier:
        yield Finding(
            Code.COPY_IS_BEHIND,
            COMMITLOG,
            expected=f"what {lacking.diverged_from or lacking.holder} holds",
            message=lacking.clause(),
            count=lacking.lacks or lacking.undecided,
        )
    most: dict[str, TableAhead] = {}
    for ahead in group.ahead_of(store):
        if is_earlier(group, store, ahead.holder):
            continue
        if group.relation(store, ahead.holder) in LOGS_APART:  # neither table fits the other log
            continue
        if ahead.table not in most or _size(ahead) > _size(most[ahead.table]):
            most[ahead.table] = ahead
    for table, ahead in most.items():
        counts = (ahead.behind, " smaller than there"), (ahead.lacks, " not at all")
        parts = [count_text(number, _NOUNS[table]) + words for number, words in counts if number]
        yield Finding(
            Code.COPY_IS_BEHIND,
            ahead.file or ahead.holder_file,
            expected=f"what {ahead.holder_file} of {ahead.holder} holds",
            message=f"another copy, {ahead.holder}, holds a newer {ahead.holder_file}: this copy has {' and '.join(parts)}",
            count=_size(ahead),
        )


def _size(ahead: TableAhead) -> int:
    return ahead.lacks + ahead.behind
