"""Settings, and how much was read."""

from __future__ import annotations

from jobs.report.pages.sections_on_outcome import Setting, limits_view, settings_view
from tests.support.handmade import samples


def test_settings_other_than_the_defaults_stand_apart_and_read_as_in_a_broker_conf() -> None:
    outcome = samples.clean()
    outcome.plan["settings"] = {
        "b": {"value": True, "from": "default"},
        "c": {"value": 5, "from": "inferred"},
        "a": {"value": "x", "from": "broker.conf"},
    }
    assert settings_view(outcome) == {
        "own": [Setting("a", "x", "broker.conf"), Setting("c", "5", "inferred")],
        "defaults": [Setting("b", "true", "default")],
    }


def test_what_was_read_is_counted_by_kind_of_file() -> None:
    outcome = samples.clean()
    outcome.segments = [{"size_bytes": 10, "bytes_read": 7, "problem": "cannot be read"}, {"size_bytes": 5, "bytes_read": 5}]
    outcome.segment_count = 2
    outcome.queues = [{"file_count": 3, "bytes_read": 60}]
    parts = limits_view(outcome)["parts"]
    assert isinstance(parts, list)
    assert [(part.name, part.found, part.read, part.size, part.problems) for part in parts] == [
        ("CommitLog", "2 segments", 12, 15, 1),
        ("ConsumeQueues", "1 queue, 3 files", 60, None, 0),
        ("index", "0 files", 0, 0, 0),
    ]
