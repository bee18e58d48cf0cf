"""The commands of README and of the pages for tasks print what is shown there, but for times, paths and ids."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from jobs import RULES_VERSION, entry
from jobs.runtime import setup as environment
from store_io.audit.audit_store import run_local
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import StoreLocation

README = environment.ROOT / "README.md"
MESSAGES, REPAIR = (environment.ROOT / "docs" / name for name in ("messages.md", "repair.md"))
BLOCK = re.compile(r"^```console\n\$ (.+)\n((?:.*\n)*?)```$", re.MULTILINE)
CHANGING = (
    (re.compile(r"( in )[\d.]+ (s|min).*"), r"\1TIME"),
    (re.compile(r"run [0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}"), "run ID"),
    (re.compile(r"/\S*?/out\b"), "OUT"),
    (re.compile(r"/\S*?/examples/damaged-store/"), "EXAMPLE/"),
    (re.compile(r"/\S*?/spark-submit\.sh\b"), "ENTRY"),
)


def steady(text: str) -> str:
    for pattern, replacement in CHANGING:
        text = pattern.sub(replacement, text)
    return text


def commands_of_readme() -> list[tuple[str, str]]:
    """(command, what it prints) of each block that begins with the tool."""
    blocks = BLOCK.findall(README.read_text("utf-8"))
    return [(command, shown) for command, shown in blocks if command.startswith("./spark-submit.sh ")]


@pytest.mark.spark
@pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes")
def test_the_first_command_shows_its_real_output(tmp_path: Path) -> None:
    """A user's own Spark and Python are no part of it, and no word of Spark's reaches the terminal."""
    (command, shown), *_ = commands_of_readme()
    words = shlex.split(command)
    assert words[:2] == ["./spark-submit.sh", "audit"] and words[-2:] == ["--out", "out"]
    out = tmp_path / "out"
    own = {**os.environ, "SPARK_HOME": str(tmp_path), "PYSPARK_PYTHON": "/bin/false"}
    done = subprocess.run([*words[:-1], str(out)], cwd=environment.ROOT, env=own, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (20, "")
    assert steady(done.stdout) == steady(shown)
    result = json.loads((out / "result.json").read_text())
    assert (result["exit_code"], result["complete"]) == (20, True)
    assert sorted(os.listdir(out)) == ["index.html", "result.json", "store", "tables"]


def test_commands_about_single_messages_show_their_real_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(environment.ROOT)
    text = MESSAGES.read_text("utf-8")
    shown = re.findall(r"^\$ \./spark-submit\.sh ((?:explain|query) .+)\n((?:(?!\$ |```).*\n)+)", text, re.MULTILINE)
    assert len(shown) == 4
    for command, lines in shown:
        command, _, head = command.partition(" | head -")
        assert entry.main(shlex.split(command)) == 0
        assert "".join(capsys.readouterr().out.splitlines(keepends=True)[: int(head or 1000)]) == lines


def test_the_repair_shows_its_real_output(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    section = REPAIR.read_text("utf-8").partition("## Repair\n")[2].partition("\n## ")[0]
    (command, shown), *_ = BLOCK.findall(section)
    words = shlex.split(command)
    folder = environment.ROOT / "examples" / "damaged-store"
    asked = AuditRequest("store", StoreLocation(str(folder / "store")), "4.9.8", (folder / "broker.conf").read_text())
    (tmp_path / "plan.json").write_text(json.dumps(audit_plan(run_local(asked))))
    places = {"out/store/plan.json": tmp_path / "plan.json", "repaired": tmp_path / "repaired"}
    words = [str(places.get(word, environment.ROOT / word if word.startswith("examples/") else word)) for word in words]
    home = "/home/you/store-audit"
    for more in (["--dry-run"], []):
        assert entry.main([*words[1:], *more]) == 0
        said = capsys.readouterr().out.replace(str(environment.ROOT), home).replace(str(tmp_path), home).splitlines()
        kept = [line for line in shown.splitlines() if not more or not line.startswith(("  Result", "  Report", "  Next"))]
        left_out = kept.index("  ...")  # the lines of config/
        if not more:
            assert (said[:left_out], said[left_out - len(kept) + 1 :]) == (kept[:left_out], kept[left_out + 1 :])
            assert all(line.startswith("  Config ") for line in said[left_out : left_out - len(kept) + 1])
        else:
            assert {*kept[1:]} - {"  ..."} <= set(said)
            assert any("--policy broker would keep 279 fewer messages" in line for line in said)


def test_the_rescue_shows_its_real_output(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    section = REPAIR.read_text("utf-8").partition("## Rescue\n")[2].partition("\n## ")[0]
    (command, shown), *_ = BLOCK.findall(section)
    words = [str(environment.ROOT / word if word.startswith("examples/") else word) for word in shlex.split(command)]
    words[words.index("new")] = str(tmp_path / "new")
    assert entry.main(words[1:]) == 20
    home = "/home/you/store-audit"
    said = capsys.readouterr().out.replace(str(environment.ROOT), home).replace(str(tmp_path), home)
    changing = ("  Space", "  time, about")
    lines, expected = ([line for line in text.splitlines() if not line.startswith(changing)] for text in (said, shown))
    assert lines == expected


def test_the_second_command_is_what_ci_runs() -> None:
    commands = [command for command, _ in commands_of_readme()]
    assert commands == [commands[0], "./spark-submit.sh test"] and commands[1] in (environment.ROOT / ".ci" / "run").read_text(
        "utf-8"
    )


def test_the_changelog_names_the_rules_of_this_version() -> None:
    newest = (environment.ROOT / "CHANGELOG.md").read_text().partition("## [")[2]
    assert f"Rules version {RULES_VERSION}," in newest.partition("## [")[0]
