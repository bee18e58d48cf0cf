"""Findings on a copy that must not become master as it is: other copies of its group hold messages or newer tables.

A copy that is a clean earlier moment of another one has none. It is what a slave, or an older copy, is by its nature; the answer
names the copy to start in its place.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.finding_codes import Code
from schemas.rows import Finding, Row
from schemas.store_names import COMMITLOG
from store_io.base.wording import count_text
from store_io.outcome.safety import LOGS_APART, as_master, is_earlier, relation_of

_NOUNS = {"topics": "topic", "groups": "group", "offsets": "offset", "delay_offsets": "delay level's offset"}


def behind_findings(group: Row, store: str) -> Iterator[Finding]:
    """Yield the finding on messages that the copy lacks, and one for each table of config/ that is newer elsewhere.

    group: its row of replicas.json.
    """
    lacking = as_master(group, store)
    if lacking is not None and not lacking.earlier:
        yield Finding(
            Code.COPY_IS_BEHIND,
            COMMITLOG,
            expected=f"what {lacking.diverged_from or lacking.holder} holds",
            message=lacking.clause(),
            count=lacking.lacks or lacking.undecided,
        )
    most: dict[str, Row] = {}
    for row in group.get("config", ()):
        if row["store"] != store or is_earlier(group, store, row["holder"]):
            continue
        if relation_of(group, store, row["holder"]) in LOGS_APART:  # neither table fits the other log
            continue
        if row["table"] not in most or _size(row) > _size(most[row["table"]]):
            most[row["table"]] = row
    for table, row in most.items():
        parts = [
            count_text(row[name], _NOUNS[table]) + words
            for name, words in (("behind", " smaller than there"), ("lacks", " not at all"))
            if row[name]
        ]
        yield Finding(
            Code.COPY_IS_BEHIND,
            row["file"] or row["holder_file"],
            expected=f"what {row['holder_file']} of {row['holder']} holds",
            message=f"another copy, {row['holder']}, holds a newer {row['holder_file']}: this copy has {' and '.join(parts)}",
            count=_size(row),
        )


def _size(row: Row) -> int:
    return int(row["lacks"]) + int(row["behind"])
