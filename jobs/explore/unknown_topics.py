"""A topic that is asked for and has no queue in the copy: most often its name is mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from jobs.report.texts.text import name_text
from store_io.base.errors import StoreError
from store_io.base.wording import names_text
from store_io.messages.open_store import OpenStore

NO_SEGMENT = "this copy holds no CommitLog segment"
_CLOSE = 3  # names shown
_LOOKED_AT = 10_000  # names compared
_LETTERS = 100  # of a name


def unknown_topics(store: OpenStore, topics: Iterable[str] | None) -> str:
    """Return one sentence, without a full stop, on topics that have no queue.

    "" without any, or if nothing is known of queues.
    """
    try:
        known = sorted({queue.key[0] for queue in store.queues()})
    except StoreError:
        return ""
    unknown = sorted(set(topics or ()) - set(known))
    if not unknown or not known:
        return ""
    close: dict[str, None] = {}
    for name in unknown[:_CLOSE]:
        close |= dict.fromkeys(difflib.get_close_matches(name, known[:_LOOKED_AT], _CLOSE))
    lead = "this copy has no queue of the topic" if len(unknown) == 1 else "this copy has no queue of these topics:"
    near = f"; it has {names_text([name_text(name, _LETTERS) for name in close], _CLOSE)}" if close else ""
    return f"{lead} {names_text([name_text(name, _LETTERS) for name in unknown], _CLOSE)}{near}"
