"""What load() makes of names and lengths, release by release (recovery.md 2; pitfalls C8 to C10, I7)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.advice import Refusal, RefusalKind
from schemas.rows import StoreFile
from store_io.base.paths import is_inner_path
from store_io.broker.loading import Tree, load_store, queue_folder, why_no_folder, why_not_made
from store_io.broker.releases import BrokerRules, Setting, broker_rules
from store_io.source.byte_source import folder_of, name_of

SIZE = 1000


def rules(release: str) -> BrokerRules:
    return broker_rules(release, {"mappedFileSizeCommitLog": Setting(SIZE, "broker.conf")})


def log(*entries: tuple[str, int] | str) -> Tree:
    """A commitlog folder: (name, size) for files, a name alone for a directory."""
    files = [StoreFile("commitlog", "directory")]
    for entry in entries:
        name, size = entry if isinstance(entry, tuple) else (entry, None)
        files.append(StoreFile(f"commitlog/{name}", "directory" if size is None else "file", size or 0))
    return Tree(files)


@given(st.text(max_size=300), st.integers(-(1 << 31), (1 << 31) - 1))
def test_no_topic_leads_elsewhere(topic: str, queue_id: int) -> None:
    path = queue_folder(False, (topic, queue_id))
    names = path.split("/")
    assert is_inner_path(path) and len(names) == 3 and all(len(name.encode("utf-8", "surrogatepass")) <= 255 for name in names)
    assert (names[1] == topic) is not bool(why_no_folder(topic))


def test_a_comma_in_a_topic_stops_later_releases() -> None:
    for topic, releases in {"a,b": ("4.9.4", "5.5.0"), "a\0": ("4.8.0", "5.5.0"), "a/b": ()}.items():
        stopped = [release for release in ("4.8.0", "4.9.3", "4.9.4", "5.0.0", "5.5.0") if why_not_made(topic, rules(release))]
        assert tuple(stopped[:: max(1, len(stopped) - 1)]) == releases, topic
    assert why_not_made("a" * 256, rules("5.1.0")) and not why_not_made("a/" * 200, rules("5.1.0"))
    assert why_not_made("a/" * 2100, rules("5.1.0"))  # no path is so long


GOOD, NEXT = (f"{0:020d}", SIZE), (f"{SIZE:020d}", SIZE)

# entries beside GOOD, release -> segments loaded, files deleted, whether load() refuses
CASES = [
    (
        "wrong length",
        [(NEXT[0], 5)],
        {"4.8.0": (1, 0, True), "4.9.2": (1, 0, False), "4.9.3": (1, 0, True), "5.5.0": (1, 0, True)},
    ),
    (
        "empty last file",
        [(NEXT[0], 0)],
        {"4.9.8": (1, 0, True), "5.1.2": (1, 0, True), "5.1.3": (1, 1, False), "5.5.0": (1, 1, False)},
    ),
    ("directory", ["old"], {"4.9.8": (1, 0, True), "5.0.0": (1, 0, True), "5.1.0": (1, 0, False), "5.4.0": (1, 0, False)}),
    ("foreign name, right length", [("x.bak", SIZE)], {"4.8.0": (1, 0, True), "5.5.0": (1, 0, True)}),
    ("foreign name, wrong length", [("x.bak", 3)], {"4.9.2": (1, 0, False), "5.3.3": (1, 0, True)}),
    ("sign and few digits parse", [("+5", SIZE)], {"5.3.3": (2, 0, False)}),
]


@pytest.mark.parametrize(
    ("entries", "release", "expected"),
    [
        pytest.param(entries, release, want, id=f"{name}, {release}")
        for name, entries, by in CASES
        for release, want in by.items()
    ],
)
def test_segments(entries: list[tuple[str, int] | str], release: str, expected: tuple[int, int, bool]) -> None:
    loaded = load_store(log(GOOD, *entries), rules(release), frozenset())
    assert (len(loaded.segments), len(loaded.deleted), bool(loaded.refusal)) == expected


def test_a_refusal_names_the_file_and_both_lengths() -> None:
    loaded = load_store(log(GOOD, (NEXT[0], 5)), rules("5.3.3"), frozenset())
    assert loaded.refusal == Refusal(RefusalKind.FILE_LENGTH, f"commitlog/{NEXT[0]}", expected=SIZE, actual=5)


def test_queues_are_folders_whose_name_is_a_number_and_plain_files_with_such_a_name() -> None:
    names = [
        StoreFile("consumequeue", "directory"),
        StoreFile("consumequeue/plain", "file", 9),
        StoreFile("consumequeue/T", "directory"),
        StoreFile("consumequeue/T/0", "directory"),
        StoreFile("consumequeue/T/x", "directory"),
        StoreFile("consumequeue/T/7", "file", 3),
    ]
    loaded = load_store(Tree(names), rules("4.8.0"), frozenset())
    assert sorted(loaded.queues) == [("T", 0), ("T", 7)]
    assert not loaded.refusal


@pytest.mark.parametrize(("release", "refuses"), [("4.9.8", False), ("5.0.0", True), ("5.5.0", True)])
def test_a_topic_in_the_wrong_folder_for_its_type_stops_5x(release: str, refuses: bool) -> None:
    names = [StoreFile("consumequeue/T", "directory"), StoreFile("consumequeue/T/0", "directory")]
    names.insert(0, StoreFile("consumequeue", "directory"))
    assert bool(load_store(Tree(names), rules(release), frozenset({"T"})).refusal) is refuses


@pytest.mark.parametrize(("release", "refuses"), [("4.9.8", False), ("5.0.0", False), ("5.1.0", True)])
def test_a_directory_in_index_becomes_the_result_of_load_since_5_1(release: str, refuses: bool) -> None:
    names = [
        StoreFile("index", "directory"),
        StoreFile("index/20200101000000000", "directory"),
        StoreFile("index/readme", "file", 77),
    ]
    loaded = load_store(Tree(names), rules(release), frozenset())
    assert bool(loaded.later_refusal) is refuses
    assert not loaded.refusal


_PATHS = st.lists(
    st.sampled_from(["commitlog", "commitlog[2]", "commitlog[x]", "index[3]", "a", "a-b", "a.b", "0"]), min_size=1, max_size=3
)


@settings(max_examples=30)
@given(st.sets(_PATHS.map("/".join)))
def test_what_lies_in_a_folder(paths: set[str]) -> None:
    """Also where names sort before the "/" of a folder with a shorter name, and where parts have further folders."""
    files = [StoreFile(path, "file", 1) for path in sorted(paths)]
    tree = Tree(files)
    for folder in {"", "b", *paths, *(folder_of(path) for path in paths)}:
        wanted = [file for file in files if folder_of(file.path) == folder]
        assert tree.children(folder) == sorted(wanted, key=lambda file: (name_of(file.path), file.path)), folder
        assert tree.is_folder(folder) == bool(wanted)
