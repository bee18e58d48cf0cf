"""Lines of the benchmark's table."""

from __future__ import annotations

import re
from dataclasses import replace

from dev import figures
from dev.measures import KindTimes, RepairTimes, ScanTimes
from dev.peers import LoadTimes


def test_limits_stand_beside_the_figures() -> None:
    found = figures.scan_figures(ScanTimes(1024, 1 << 30, 880_000, 0.1, 0.2, 0.31))
    found += [figures.peak_figure(2 << 30, 700_000_000), figures.peak_figure(1 << 30, None)]
    lines = figures.table(found).splitlines()
    assert re.search(r"^segment task +1 KiB +0\.200 s +5\.37 +2\.00 +2 x floor +yes$", lines[3])
    assert re.search(r"^segment task with index +1 KiB +0\.310 s +3\.46 +3\.10 +2\.3 x floor +NO$", lines[4])
    assert lines[5].endswith("NO") and "segment of 2 GiB" in lines[5]
    assert lines[6].endswith("not known on this system")


def test_a_repair_stands_beside_a_flushed_copy_of_the_same_bytes() -> None:
    found = figures.repair_figures(RepairTimes(4096, 3 << 29, 1.0, 2.0, 2.9))
    assert [(f.ratio, f.met) for f in found] == [("1.00", None), ("", None), ("1.45", True)]
    assert figures.repair_figures(RepairTimes(4096, 3 << 29, 1.0, 2.0, 3.1))[-1].met is False
    assert figures.repair_figures(RepairTimes(4096, 6 << 30, 1.0, 2.0, 2.9))[-1].met is False, "a start weighs less there"
    assert figures.repair_figures(RepairTimes(4096, 1 << 28, 1.0, 2.0, 2.9))[-1].met is None, "and more there"
    assert "no cp" in figures.repair_figures(None)[0].value


def test_a_release_s_own_load_is_held_against_the_audit() -> None:
    found = figures.peer_figures(LoadTimes("5.3.3", 0.5, 4.2), 3 << 29, 0.7)
    found += figures.peer_figures(LoadTimes("4.9.8", 1, 2), 1 << 30, None)
    lines = figures.table(found).splitlines()
    said = "load() of RocketMQ 5.3.3, queues and index rebuilt, 6.0 times the repeated audit (1.5 GiB)"
    assert lines[3].startswith(said) and "4.200 s" in lines[3]
    assert lines[4].startswith("load() of RocketMQ 4.9.8, queues kept (1 GiB)")


def test_kinds_have_their_floor_and_their_entries() -> None:
    found = figures.kind_figures([KindTimes("dledger", 1 << 30, 880_000, 0.1, 1.76), "rocksdb"])
    lines = figures.table(found).splitlines()
    assert re.search(r"^floor of the log, dledger +1 KiB +0\.100 s +10\.74 +1\.00$", lines[2].rstrip())
    assert re.search(r"^audit, dledger \(0\.50 M entries/s\) +1 KiB +1\.760 s +0\.61 +17\.60$", lines[3].rstrip())
    assert lines[4].split("  ")[0] == "audit, rocksdb" and lines[4].rstrip().endswith("rocksdict is not installed")


def test_a_repair_stands_beside_a_release_that_makes_the_same_anew() -> None:
    times = RepairTimes(4096, 2**30, 1.0, 1.5, 4.0, 3.5)
    found = figures.load_figures(times, "5.3.3")
    assert [(f.value, f.ratio, f.met) for f in found] == [("5.000 s", "1.00", None), ("4.000 s", "0.80", True)]
    assert found[-1].what == "the same repair, against copy and load()"
    assert figures.load_figures(replace(times, load=2.0), "5.3.3")[-1].met is False
    assert figures.load_figures(replace(times, load=None), "5.3.3") == []
