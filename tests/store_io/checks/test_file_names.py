"""What names and lengths alone show."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from schemas.rows import NOTE, REBUILDABLE
from store_io.broker.loading import load_store
from store_io.broker.releases import broker_rules
from store_io.checks import file_names as checks
from store_io.checks.file_names import file_names, name_findings
from tests.support.handmade.evidence import QUEUE_FILE, SEGMENT, SETTINGS, copy_of, evidence_of, log_path, queue_path


def told(files: Mapping[str, int]) -> list[tuple[str, str]]:
    copy = copy_of(files)
    return [(f.code, f.file) for f in name_findings(copy.tree, copy.rules)]


def test_neighbouring_files_of_the_right_length_are_no_finding() -> None:
    index = copy_of().rules.index_file_bytes
    assert told({log_path(0): SEGMENT, log_path(SEGMENT): SEGMENT, queue_path(400): QUEUE_FILE, "index/7": index}) == []


@pytest.mark.parametrize(
    ("path", "size", "code"),
    [
        ("commitlog/readme", 1, "file_unrecognised"),
        ("commitlog/folder/x", 1, "file_unrecognised"),
        (log_path(SEGMENT), 0, "segment_empty"),
        (log_path(SEGMENT), 77, "segment_wrong_size"),
        (log_path(SEGMENT + 1), SEGMENT, "segment_misnamed"),
        ("consumequeue/plain", 1, "file_unrecognised"),
        ("consumequeue/T/no number", 1, "file_unrecognised"),
        ("consumequeue/T/0/-5", QUEUE_FILE, "file_unrecognised"),
        (queue_path(0), 0, "queue_file_empty"),
        (queue_path(0), 20, "queue_file_wrong_size"),
        ("index/readme", 1, "file_unrecognised"),
        ("index/7", 1, "index_file_wrong_size"),
    ],
)
def test_what_no_broker_leaves(path: str, size: int, code: str) -> None:
    found = dict(reversed(told({log_path(0): SEGMENT, path: size})))
    blamed = path if not path.endswith("/x") else "commitlog/folder"
    assert found[code] == blamed


@pytest.mark.parametrize(
    ("path", "size", "release", "severity"),
    [
        ("commitlog/lost+found/x", 1, "5.3.3", NOTE),
        ("commitlog/lost+found/x", 1, "5.1.0", NOTE),
        ("commitlog/lost+found/x", 1, "5.0.0", REBUILDABLE),  # refused
        ("commitlog/lost+found/x", 1, "4.9.2", REBUILDABLE),  # ends the list of segments
        (f"commitlog/{SEGMENT:020d}/x", 1, "5.3.3", REBUILDABLE),  # the next segment cannot be made
        ("commitlog/.DS_Store", 1, "5.3.3", REBUILDABLE),  # refused
        ("consumequeue/.DS_Store", 1, "4.8.0", NOTE),
        ("consumequeue/T/.DS_Store", 1, "4.8.0", NOTE),
        ("consumequeue/T/lost+found/x", 1, "4.8.0", NOTE),
        ("consumequeue/T/1", 1, "5.3.3", REBUILDABLE),  # a queue's folder is expected there
        ("consumequeue/T/0/lost+found/x", 1, "5.3.3", NOTE),
        ("consumequeue/T/0/lost+found/x", 1, "4.9.8", REBUILDABLE),
        ("consumequeue/T/0/.DS_Store", 1, "5.3.3", REBUILDABLE),  # refused
        ("index/.DS_Store", 1, "4.8.0", NOTE),
        ("index/lost+found/x", 1, "5.3.3", NOTE),
        ("index/7/x", 1, "5.3.3", REBUILDABLE),
    ],
)
def test_a_name_that_the_release_skips_is_a_note(path: str, size: int, release: str, severity: str) -> None:
    copy = copy_of({log_path(0): SEGMENT, queue_path(0): QUEUE_FILE, path: size})
    rules = broker_rules(release, SETTINGS)
    (found,) = name_findings(copy.tree, rules)
    assert (found.code, found.severity or NOTE) == ("file_unrecognised", severity)
    assert path.startswith(found.file)
    loaded = load_store(copy.tree, rules, frozenset())
    refused = loaded.refusal or loaded.later_refusal
    assert severity == REBUILDABLE or (refused is None and len(loaded.segments) == 1 and len(loaded.queues) == 1)


def test_gaps_are_told_by_the_path_that_is_missing() -> None:
    assert told({log_path(0): SEGMENT, log_path(3 * SEGMENT): SEGMENT}) == [
        ("segment_missing", log_path(SEGMENT)),
        ("segment_missing", log_path(2 * SEGMENT)),
    ]
    assert told({queue_path(0): QUEUE_FILE, queue_path(400): QUEUE_FILE}) == [("queue_file_missing", queue_path(200))]
    assert told({"consumequeue/T/0": 0}) == [("file_unrecognised", "consumequeue/T/0")]


def test_a_wide_gap_is_bounded_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MAX_MISSING_NAMES", 3)
    copy = copy_of({log_path(0): SEGMENT, log_path(10 * SEGMENT): SEGMENT})
    found = name_findings(copy.tree, copy.rules)
    assert len(found) == 4 and sum(f.count for f in found) == 9


def test_a_gap_means_nothing_where_the_log_could_not_be_read_and_each_file_is_blamed_once() -> None:
    copy = copy_of({log_path(0): SEGMENT, log_path(2 * SEGMENT): SEGMENT, "core.1": 1})
    assert [f.code for f in file_names(evidence_of(copy))] == ["segment_missing", "file_unrecognised"]
    assert [f.code for f in file_names(evidence_of(copy, broken=True))] == ["file_unrecognised"]


@pytest.mark.parametrize(
    ("beside", "name", "severity"),
    [
        (0, f"+{SEGMENT:020d}", ""),
        (0, str(SEGMENT), REBUILDABLE),
        (SEGMENT, "-0", REBUILDABLE),
        (SEGMENT, "+" + "0" * 30, REBUILDABLE),
    ],
)
def test_a_name_that_java_takes_for_a_number_is_told_with_what_it_does_to_the_order(
    beside: int, name: str, severity: str
) -> None:
    """A sign sorts before all digits."""
    copy = copy_of({log_path(beside): SEGMENT, f"commitlog/{name}": SEGMENT, "commitlog/readme": 1})
    (found,) = (f for f in name_findings(copy.tree, copy.rules) if f.code != "file_unrecognised")
    assert (found.code, found.file, found.severity) == ("segment_misnamed", f"commitlog/{name}", severity)
    assert found.expected == f"{int(name):020d}"


def test_two_names_of_one_number_and_a_negative_one() -> None:
    assert told({log_path(0): SEGMENT, "commitlog/+0": SEGMENT, "commitlog/-7": SEGMENT}) == [
        ("file_unrecognised", "commitlog/-7"),
        ("segment_misnamed", "commitlog/+0"),
        ("segment_twice", log_path(0)),
    ]
