"""What consumers do not get after a start: those that lose most first, and the commands that list it."""

from __future__ import annotations

from jobs.installation import ENTRY
from jobs.report.pages.page import MAX_ROWS
from jobs.report.pages.sections_on_outcome import MAX_COMMANDS, lost_view
from tests.support.handmade import samples


def test_those_that_lose_most_come_first_and_a_command_lists_what_each_queue_loses() -> None:
    outcome = samples.damaged()
    topics = [{"topic": name, "messages": number} for name, number in (("a", 1), ("b", 9), ("c", 9))]
    queues = [{"topic": "b", "queue_id": i, "messages": i} for i in range(9)]
    outcome.loss = {"by_topic": topics, "groups": [], "delay_levels": [{"level": 1, "offset": 2, "new_max": 1}]}
    outcome.queues = [{"topic": "b", "queue_id": i, "log_end_offset": 20, "dispatch_max_offset": 20 - i % 8} for i in range(9)]
    view = lost_view(outcome, {"lost": {"by_queue": queues}}, ("/s",))
    assert [topic["topic"] for topic in view["topics"]] == ["b", "c", "a"]  # type: ignore[attr-defined]
    assert [queue["queue_id"] for queue in view["queues"]] == [8, 7, 6, 5, 4, 3, 2, 1, 0]  # type: ignore[attr-defined]
    commands = view["commands"]
    assert isinstance(commands, list) and len(commands) == MAX_COMMANDS - 1  # queue 8 has all its entries
    assert commands[0] == f"{ENTRY} query /s --topic b --queue 7 --from-queue-offset 13 --to-queue-offset 20"
    assert view["levels"] == outcome.loss["delay_levels"]
    many = [{"topic": "b", "queue_id": i, "messages": 1 + i // 2} for i in range(MAX_ROWS + 5)]
    view = lost_view(outcome, {"lost": {"by_queue": many}}, ("/s",))
    assert view["queue_count"] == MAX_ROWS + 5
    assert view["queues"] == sorted(many, key=lambda q: (-q["messages"], q["queue_id"]))[:MAX_ROWS]
    for queue in (*outcome.queues, *queues):
        queue["topic"] = "b\n"
    view = lost_view(outcome, {"lost": {"by_queue": queues}}, ("/s",))
    assert view["commands"] == [] and len(view["withheld"]) == 1  # type: ignore[arg-type]
    assert "--topic-file" in view["withheld"][0]  # type: ignore[index]
    nothing = {"topics": [], "queues": [], "queue_count": 0, "commands": [], "withheld": [], "groups": [], "levels": []}
    assert lost_view(samples.clean(), None, ("/s",)) == nothing
