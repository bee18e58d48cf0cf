"""JSON that people can read too: one line per flat object, keys in the contract's order, ASCII only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from store_io.base.packed import ByPlace

_LISTS = (list, tuple, ByPlace)
# Known keys in the order in which they read well; others follow, sorted. So the order never depends on how a dict was built.
_ORDER = (
    # What an audit reads of a repair's report comes first (store_io/checks/repaired_store.py).
    "schema_version made_at consistent given_up log_tail stays healed_at "
    "exit_code store name code severity action file start end release release_from settings_from verdict safety answer "
    "complete incomplete gaps phy_offset topic queue_id queue_offset expected actual message next count size digest reason "
    "lost_messages lost_bytes location run_id tool_version rules_version started_at value from settings inputs broker starts "
    "refusal refusal_kind exit start_segment stop_reason min_phy_offset truncate_at lost messages bytes by_queue "
    "first_store_time last_store_time deleted_files after_load after_dispatch after_election "
    "controller identity cluster id temporary confirm_offset epochs "
    "election epoch recorded removed cut_at commitlog wrote queues min_offset "
    "max_offset max_phy_offset index begin_phy_offset end_phy_offset index_count steps counts loss rebuildable note "
    "findings_dropped seconds task_seconds bytes_read segments commitlog_bytes damaged_extents damaged_bytes "
    "unverified_bytes tables problems taken_over stores group best why copies pairs lacks holder left right "
    "relation common_start common_end same_until "
    "first_difference rejoin slave master consistent_point outcome differs_before "
    "emptied earlier log_end lacks_messages diverged "
    "releases lose_least other_settings settings_without_effect setting known doubt deleted_file_count timers_lost "
    "not_judged level not_read segment_bytes queue_files queue_bytes index_files index_bytes reused_segments reused_bytes since "
    "cause on_purpose path step text command gives_up "
).split()
_PARTS = 2000
_RANK = {key: rank for rank, key in enumerate(_ORDER)}


def line(value: Any) -> str:
    """Return the value as JSON on one line."""
    return json.dumps(_in_order(value), ensure_ascii=True, allow_nan=False)


def row_line(row: Any) -> str:
    """Return a row in its own order, as a line of a JSON lines file."""
    return json.dumps(row, ensure_ascii=True, allow_nan=False) + "\n"


def document(value: Any) -> str:
    """Return JSON on many lines. A value that holds only scalars stays on one line, so a list of queues is a line per queue."""
    return "".join(document_parts(value))


def document_parts(value: Any) -> Iterator[str]:
    """Yield the document in parts. Each part is small beside a value of a million rows."""
    held: list[str] = []
    for part in _document(value, "\n"):
        held.append(part)
        if len(held) >= _PARTS:
            yield "".join(held)
            held.clear()
    yield "".join(held) + "\n"


def _keys(row: dict[str, Any]) -> list[str]:
    return sorted(row, key=lambda key: (_RANK.get(key, len(_RANK)), key))


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in _keys(value)}
    return [_in_order(item) for item in value] if isinstance(value, _LISTS) else value


def _document(value: Any, end: str) -> Iterator[str]:
    """Yield the parts of a value.

    end: a line feed and the indent of the line in which the value begins.
    """
    inner = end + "  "
    before = ""
    if isinstance(value, dict) and any(isinstance(item, (dict, *_LISTS)) and item for item in value.values()):
        for key in _keys(value):
            yield f"{before or '{'}{inner}{json.dumps(key)}: "
            yield from _document(value[key], inner)
            before = ","
        yield end + "}"
    elif isinstance(value, _LISTS) and any(isinstance(item, (dict, *_LISTS)) for item in value):
        for item in value:
            yield f"{before or '['}{inner}"
            yield from _document(item, inner)
            before = ","
        yield end + "]"
    else:
        yield json.dumps(_in_order(value), ensure_ascii=True, allow_nan=False)
