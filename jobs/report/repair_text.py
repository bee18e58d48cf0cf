"""A repair as people read it on a terminal."""

from __future__ import annotations

from typing import Any

from jobs.report.text import bytes_text, count_text, printable, time_text

MOST = 12


def repair_text(report: dict[str, Any], store: str, target: str, dry: bool = False) -> str:
    """What was done, or with `dry` would be."""
    release, policy = report["release"], report["policy"]
    verb = (
        "would be made of it" if dry else "made of it" if report.get("consistent") else "not made: the result was not consistent"
    )
    lines = [f"{printable(store)}: a store for RocketMQ {release}, policy {policy}, {verb}"]
    if "would_unblock" in report:
        lines.append(f"  Start      the release would not start as it is: {printable(report['would_unblock'])}")
        lines.append("             the cause is taken away first; what is cut behind that is known only then")
        return "\n".join(lines) + "\n"

    def row(title: str, text: str) -> None:
        lines.append(f"  {title:<10} {text}")

    row("Messages", f"{count_text(report['messages_before'])} valid in the copy")
    lost = report["lost"]
    if lost["messages"]:
        row("Cut", f"{count_text(lost['messages'], 'message')}, {bytes_text(lost['bytes'])}, behind {report['log_end']:,}")
    for problem in report.get("problems", [])[:MOST]:
        row("Problem", printable(problem, 300))
    for sentence in report["unblocked"]:
        row("Start", f"would not have started: {printable(sentence, 300)}")
    for bridge in report["bridges"][:MOST]:
        where = f"{bridge['file']} {bridge['start']:,} to {bridge['end']:,}"
        time = f", {time_text(bridge['store_time'])} UTC" if "store_time" in bridge else ""
        row("Bridge", f"{where}, {bytes_text(bridge['end'] - bridge['start'])}, by a {bridge['kind']}{time}")
    _more(lines, report["bridges"])
    for taken in report["from_donor"][:MOST]:
        row("Donor", f"{taken['file']} {taken['start']:,} to {taken['end']:,}")
    _more(lines, report["from_donor"])
    for name in ("dropped", "unserved"):
        for item in report[name][:MOST]:
            row("Left out", printable(", ".join(f"{key} {value}" for key, value in item.items()), 300))
        _more(lines, report[name])
    for path in report["removed"][:MOST]:
        row("Removed", printable(path))
    _more(lines, report["removed"])
    for queue in report["queues"][:MOST]:
        why = ", ".join(queue["reasons"])
        row(
            "Queue",
            f"{printable(queue['folder'])}: {count_text(queue['entries'], 'entry', 'entries')} from the CommitLog ({why})",
        )
    _more(lines, report["queues"])
    answered = sum(item["end"] - item["first"] for item in report["answered"])
    if answered:
        row("Answered", f"{count_text(answered, 'position')} without a message: pulls pass them, or get the queue's next message")
    for name in report["not_copied"][:MOST]:
        row("Not copied", printable(name))
    for note in report.get("offsets", [])[:MOST]:
        row("Offset", printable(note["sentence"], 300))
    _more(lines, report.get("offsets", []))
    for path in report.get("offsets_set_back", []):
        row("Set back", printable(path))
    if report.get("topics_unknown"):
        names = ", ".join(report["topics_unknown"][:MOST])
        row("Topics", f"not in config/topics.json, so clients do not find them: {printable(names, 300)}")
    for finding in report.get("kept", [])[:MOST]:
        row("Kept", printable(f"{finding['file']} {finding['start']}: {finding['message']}", 300))
    if dry:
        row("Bytes", f"{bytes_text(report['bytes'])} needed at most, {bytes_text(report['free'])} free there")
        if report["donor_not_read"]:
            row("Donor", "not read in a dry run: with it less is lost, or nothing")
    elif report.get("consistent"):
        row("Result", printable(target))
        row("Report", printable(target) + ".repair.json")
    return "\n".join(lines) + "\n"


def _more(lines: list[str], items: list[Any]) -> None:
    if len(items) > MOST:
        lines.append(f"             and {count_text(len(items) - MOST)} more")
