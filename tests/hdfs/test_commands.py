"""Whole commands that have everything in HDFS, or in S3: the copy, results, tables, plans, and what is made."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from jobs.runtime.setup import ROOT
from tests.support.processes.remote_places import Place, in_hdfs, in_s3
from tests.support.stores import corpus_tools

pytestmark = pytest.mark.hdfs


@pytest.fixture(params=["hdfs", "s3"])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "hdfs":
        return in_hdfs(request.getfixturevalue("hdfs"))
    return in_s3(request.getfixturevalue("server"))


def submit(place: Place, *words: object) -> subprocess.CompletedProcess[str]:
    command = [ROOT / "spark-submit.sh", *map(str, words)]
    return subprocess.run(command, env=place.variables, capture_output=True, text=True)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_audits_and_their_history(place: Place, tmp_path: Path) -> None:
    (case,) = corpus_tools.cases("g14")
    own = case.unpack(tmp_path / "own").rename(tmp_path / "copy")
    copy, out = place.put(own, "copy"), f"{place.uri}/results"
    conf = ["--release", case.release, "--broker-conf", tmp_path / "own" / "broker.conf"]
    for more in (["--write", "messages"], ["--since-run", "last"]):
        done = submit(place, "audit", copy, *conf, "--out", out, *more)
        assert done.returncode in (0, 10, 20) and f"tables in {out}/tables" in done.stdout, done.stdout + done.stderr
    local = submit(place, "audit", own, *conf, "--out", tmp_path / "out")
    assert local.returncode == done.returncode
    for name in ("plan.json", "findings.jsonl"):
        assert place.get(f"results/copy/{name}") == (tmp_path / "out" / "copy" / name).read_bytes()
    tables = ["--tables", f"{out}/tables"]
    report = submit(place, "report", *tables, "--out", f"{place.uri}/report.json", "--format", "json")
    assert report.returncode == 0, report.stderr
    assert json.loads(place.get("report.json"))["runs"] == 2
    for words, shown in (
        (["coverage", *tables, "--within", "1d", "--format", "json"], '"copy"'),
        (["diff", "last", *tables, "--format", "json"], '"copy"'),
        (["runs", out], f"2 runs in {out}/tables"),
        (["tables", "info", *tables], "2 runs, "),
    ):
        told = submit(place, *words)
        assert told.returncode == 0 and shown in told.stdout, told.stdout + told.stderr
    commands = [
        ["query", copy, *conf[:2], "--limit", "5", "--format", "jsonl"],
        ["explain", copy, *conf, "--phy-offset", "0"],
        ["manifest", copy],
    ]
    for words in commands:
        there, here = submit(place, *words), submit(place, words[0], own, *words[2:])
        assert there.returncode == here.returncode == 0 and there.stdout.replace(copy, str(own)) == here.stdout, there.stderr
    script = tmp_path / "count.py"
    script.write_text(
        "from jobs import sources\nfrom jobs.runtime import session\n"
        "with session.start() as started:\n"
        f"    for path in ({copy!r}, {str(own)!r}):\n"
        f"        frame = sources.read(started.spark, 'messages', path, release={case.release!r})\n"
        "        print('counted', frame.selectExpr('count(*)', 'sum(total_size)').first())\n"
    )
    counted = submit(place, "run", script)
    lines = [line for line in counted.stdout.splitlines() if line.startswith("counted")]
    assert counted.returncode == 0 and len(lines) == 2 and lines[0] == lines[1], counted.stdout + counted.stderr


def test_what_is_made_of_a_copy(place: Place, tmp_path: Path) -> None:
    """Repair, export and rescue, from there and to there."""
    (case,) = corpus_tools.cases("g14")
    own = case.unpack(tmp_path / "own").rename(tmp_path / "copy")
    copy, out = place.put(own, "copy"), f"{place.uri}/results"
    conf = ["--broker-conf", tmp_path / "own" / "broker.conf", "--release", case.release]
    audited = submit(place, "audit", copy, *conf, "--out", out)
    told = f"repair {copy} --release {case.release} --broker-conf {conf[1]} --plan {out}/copy/plan.json --to {copy}-repaired"
    assert audited.returncode in (10, 20) and told in audited.stdout, audited.stdout + audited.stderr
    local = submit(place, "audit", own, *conf, "--out", tmp_path / "out")
    assert local.returncode == audited.returncode
    for source, plan, new in (
        (copy, f"{out}/copy/plan.json", tmp_path / "new"),
        (own, tmp_path / "out" / own.name / "plan.json", tmp_path / "new-local"),
        (copy, f"{out}/copy/plan.json", f"{place.uri}/new"),
    ):
        done = submit(place, "repair", source, "--plan", plan, "--to", new, *conf)
        assert done.returncode == 0 and f"{new}.handover.html" in done.stdout, done.stdout + done.stderr
    made = files(tmp_path / "new")
    assert made and made == files(tmp_path / "new-local") == {name: place.get(f"new/{name}") for name in place.names("new")}
    again = submit(place, "audit", f"{place.uri}/new", *conf, "--out", tmp_path / "again")
    assert again.returncode == 0, again.stdout + again.stderr
    for source, to in ((copy, tmp_path / "there"), (own, tmp_path / "here"), (copy, f"{place.uri}/export")):
        exported = submit(place, "export", source, *conf, "--format", "jsonl", "--to", to)
        assert exported.returncode == 0, exported.stderr
    rows = {name: content for name, content in files(tmp_path / "here").items() if name != "manifest.json"}
    assert rows and all(content == (tmp_path / "there" / name).read_bytes() for name, content in rows.items())
    assert place.names("export") == {*rows, "manifest.json"}
    assert all(place.get(f"export/{name}") == content for name, content in rows.items())
    rescued = submit(place, "rescue", copy, *conf, "--to", tmp_path / "rescued", "--yes")
    assert rescued.returncode == 0, rescued.stdout + rescued.stderr
