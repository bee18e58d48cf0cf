"""The comparison of copies, in words that the terminal and the pages share. Names come as they are: escape the result."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.report.texts.text import bytes_text, count_text
from schemas.rows import Row
from store_io.base.wording import seen

_OTHER_LOGS = ("diverged", "apart", "unknown")  # relations of copies whose offsets do not fit each other's log
_NAMES = 3  # of topics and groups in a sentence
_OTHER_HAS = {
    "missing": "has no file there",
    "unwritten": "has zeros there",
    "damaged": "is damaged there",
    "filler": "has a filler there",
    "disputed": "has the same message with other bytes",
    "other": "has other messages from there on",
}


def choice_words(group: Row) -> str:
    """Return a sentence on the copy to start as master."""
    best = group["best"]
    if not best:
        return str(group["why"])
    loses = next((copy["loses"] for copy in group["copies"] if copy["store"] == best), 0)
    choice = f"each would lose messages as master, {best} the fewest" if loses else f"start {best} as master"
    return f"{choice}: {group['why']}"


def pair_words(pair: Row) -> str:
    """How two copies differ, in a sentence."""
    left, right, relation = pair["left"], pair["right"], pair["relation"]
    both = f"{left} and {right}"
    if relation == "equal" and pair["same_until"] is None:
        return f"{both} are equal: neither has a message that the other lacks"
    if relation == "apart":
        return f"{both} have no physical offset in common"
    if relation == "unknown":
        return f"{both} could not be compared completely"
    text = f"{both} are equal up to physical offset {pair['same_until']:,}"
    if relation == "behind":
        return f"{text}, where one of them ends"
    first = pair["first_difference"]
    if relation == "equal" or first is None:
        return text
    place = f"{seen(first['topic'])}/{first['queue_id']} at queue offset {first['queue_offset']:,}"
    where = f"in {first['field']} of the message of {place}" if first["field"] else f"at the message of {place}"
    return f"{text}: {where}; {first['other']} {_OTHER_HAS.get(first['other_has'], 'differs there')}"


def rejoin_words(pair: Row) -> Iterator[str]:
    """Yield a sentence for each of two replicas in controller mode: its acts as slave of the other."""
    for row in pair.get("rejoin") or ():
        slave, master, outcome = row["slave"], row["master"], row["outcome"]
        text = f"as slave of {master}, {slave} would "
        if outcome == "cuts":
            text += f"cut its log at physical offset {row['consistent_point']:,}, as the epochs say, and lose"
            text += f" {count_text(row['messages'], 'message')} that {master} does not hold" if row["messages"] else " nothing"
        elif outcome == "copies":
            text += "cut nothing and copy what it lacks"
        elif outcome == "keeps_its_log":
            text += "keep its own log, as it has no epochs, whatever the master's log holds"
        else:
            text += "neither cut nor copy: the epochs lead to no place between two of its records"
        if row["differs_before"] and outcome in ("cuts", "copies"):
            text += "; both differ before that place, and this stays"
        yield text


def lack_words(group: Row, store: str) -> Iterator[str]:
    """Yield a sentence for each other copy that has messages which this one lacks."""
    for lack in group["lacks"]:
        if lack["store"] == store and lack["messages"]:
            queues = count_text(len(lack["by_queue"]), "queue")
            said = f"{lack['holder']} holds {count_text(lack['messages'], 'message')} of {queues} that {store} lacks"
            first = next((part["start"] for part in lack["ranges"]), None)
            yield said + (f" ({bytes_text(lack['bytes'])}, from physical offset {first:,} on)" if first is not None else "")


def config_words(group: Row, store: str = "") -> Iterator[str]:
    """Say of each table of config/ which copy has more of it, a sentence for each. store: only of pairs that it belongs to."""
    rows = [row for row in group.get("config", ()) if not store or store in (row["store"], row["holder"])]
    for row in rows:
        own, holder, table = row["store"], row["holder"], row["table"]
        if table in ("topics", "groups"):
            kind = table.removesuffix("s")
            names = ", ".join(seen(entry[kind]) for entry in row["entries"][:_NAMES])
            more = f" and {row['lacks'] - _NAMES:,} more" if row["lacks"] > _NAMES else ""
            yield f"{holder} has {count_text(row['lacks'], kind)} in {row['holder_file']} that {own} lacks: {names}{more}"
            continue
        noun = "consumer offset" if table == "offsets" else "delay level's offset"
        parts = []
        if row["behind"]:
            be = "is" if row["behind"] == 1 else "are"
            by = f", by {count_text(row['messages'], 'message')} in all" if row["behind"] > 1 else f", by {row['messages']:,}"
            parts.append(f"{count_text(row['behind'], noun)} of {own} {be} smaller than those of {holder}{by}")
        if row["lacks"]:
            parts.append(f"{holder} has {count_text(row['lacks'], noun)} that {own} lacks")
        yield "; ".join([*parts, _which_offsets(group, row)])


def config_steps(group: Row, store: str) -> Iterator[str]:
    """Yield the tables of config/ to take from other copies before this copy becomes master.

    This copy lacks no message.
    """
    pairs, tables = _relations(group), dict[str, list[Row]]()
    for row in group.get("config", ()):
        names = row["table"] in ("topics", "groups")
        if row["store"] == store and (names or pairs.get(frozenset((store, row["holder"]))) not in _OTHER_LOGS):
            tables.setdefault(row["table"], []).append(row)
    for table, rows in tables.items():
        lesser = {row["store"] for row in group["config"] if row["table"] == table}
        most = [row for row in rows if row["holder"] not in lesser][:1]  # it has all that any copy has
        if not most:
            files = " and ".join(f"{row['holder_file']} of {row['holder']}" for row in rows)
            what = "the greatest of each offset" if "offsets" in table else f"all {table}"
            yield f"Before this copy becomes master, put together {what} from its own table and {files}."
            continue
        lacks = count_text(most[0]["lacks"], table.removesuffix("s"))
        why = "it has the greater offsets" if "offsets" in table else f"this copy lacks {lacks} of those in it"
        yield f"Take {_holders_table(most[0])} first, before this copy becomes master: {why}."


def _relations(group: Row) -> dict[frozenset[str], str]:
    """Look up how two copies of the group compare, whichever of them is named first."""
    return {frozenset((pair["left"], pair["right"])): pair["relation"] for pair in group.get("pairs", ())}


def _which_offsets(group: Row, row: Row) -> str:
    """Say which offsets of two copies to take, a clause."""
    own, holder = row["store"], row["holder"]
    pairs = _relations(group)
    back = any((r["store"], r["holder"], r["table"]) == (holder, own, row["table"]) for r in group["config"])
    if pairs.get(frozenset((own, holder))) in _OTHER_LOGS:
        return "their logs differ, so neither table fits the other log as it is"
    if back:
        return f"{own} in turn has others that are greater or that {holder} lacks, so take the greatest of each from both"
    if any(copy["store"] == own and copy["lacks"] for copy in group["copies"]):
        return f"{holder} has the greater ones, and the longer log to which they belong"
    whose = f"take {_holders_table(row)} before {own} is started as master"
    return f"{holder} has the greater ones: {whose}; a slave takes smaller ones of its master over"


def _holders_table(row: Row) -> str:
    """Name what to take from the copy that has more of a table: the file, or what a database shows."""
    name = f"{row['holder_file']} of {row['holder']}"
    return f"what {name} shows" if row["holder_file"].endswith("/") else name
