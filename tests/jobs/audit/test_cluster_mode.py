"""Cluster deploy mode from both sides, with Spark's part played by a function; and what executors are sent."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobs import entry
from jobs.audit import cluster_mode
from jobs.cli import options, parser
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument
from jobs.commands import audit
from jobs.runtime.session import zip_packages
from store_io.base.errors import UsageError
from store_io.source import storage_options

Submit = Callable[[list[str]], int]


@pytest.fixture
def asked(tmp_path: Path) -> AuditOptions:
    return AuditOptions((StoreArgument("store", f"{tmp_path}/a store"),), f"{tmp_path}/out", run_id="r1")


@pytest.fixture
def spark_submit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Submit], None]:
    """Puts a function in the place of Spark's own script."""

    def put(does: Submit) -> None:
        monkeypatch.setattr(cluster_mode, "_WAIT_SECONDS", 0.0)
        monkeypatch.setattr(cluster_mode.subprocess, "run", lambda command: SimpleNamespace(returncode=does(command)))

    return put


def driver(code: int, run_id: str = "r1") -> Submit:
    """A cluster that runs a driver which leaves that code."""

    def run(command: list[str]) -> int:
        asked = options.from_word(command[command.index("--submitted") + 1])
        Path(asked.out).mkdir(exist_ok=True)
        (Path(asked.out) / "result.json").write_text(json.dumps({"exit_code": code, "run_id": run_id}))
        return 0

    return run


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--deploy-mode", "cluster"], True),
        (["--conf", "spark.submit.deployMode=cluster"], True),
        (["--conf", "spark.submit.deployMode=cluster", "--deploy-mode", "client"], False),
        (["--master", "yarn"], False),
    ],
)
def test_when_it_is_cluster_mode(words: list[str], expected: bool) -> None:
    assert parser.is_cluster_mode(words) is expected


@pytest.mark.parametrize("code", [0, 3, 10, 20])
def test_the_drivers_code_comes_from_its_result(code: int, asked: AuditOptions, spark_submit: Callable[[Submit], None]) -> None:
    spark_submit(driver(code))
    assert cluster_mode.submit(asked, ["--deploy-mode", "cluster"]) == code


def test_a_driver_without_a_result_is_told(
    asked: AuditOptions, spark_submit: Callable[[Submit], None], capsys: pytest.CaptureFixture[str]
) -> None:
    for does, said in ((lambda _: 1, "ended with 1"), (driver(20, "an earlier run"), "ended with 0")):
        spark_submit(does)
        command = options.Command("audit", ("--deploy-mode", "cluster"), asked)
        assert audit.run(command) == 3
        assert said in capsys.readouterr().err
        result = json.loads((Path(asked.out) / "result.json").read_text())
        assert (result["exit_code"], result["run_id"]) == (3, "r1")


def test_no_part_of_a_login_is_put_on_the_command_line_of_a_driver(asked: AuditOptions) -> None:
    for key in storage_options.LOGIN:
        with pytest.raises(UsageError, match=f"--storage-option {key} does not go with cluster deploy mode"):
            cluster_mode.submit(replace(asked, storage={key: "wJalrXUtnFEMI"}), ["--deploy-mode", "cluster"])
    there = options.from_word(options.to_word(replace(asked, storage={"aws_region": "eu-1"})))
    assert there.storage == {"aws_region": "eu-1"}


def test_the_command_that_submits(asked: AuditOptions) -> None:
    words = ["--master", "yarn", "--deploy-mode", "cluster", "--verbose", "--py-files", "mine.zip", "--conf", "a=b"]
    command = cluster_mode._command(words, options.to_word(asked), "/t/packages.zip")
    assert command[0].endswith("/bin/spark-submit")
    assert command.count("--deploy-mode") == 1
    assert command[command.index("--py-files") + 1] == "/t/packages.zip,mine.zip"
    assert "delta-spark" in command[command.index("--jars") + 1]
    by_setting = ["--conf", "spark.submit.pyFiles=mine.zip", "--conf", "spark.jars=mine.jar"]
    command = cluster_mode._command([*words[:5], *by_setting], options.to_word(asked), "/t/packages.zip")
    assert command[command.index("--py-files") + 1] == "/t/packages.zip,mine.zip"
    assert command[command.index("--jars") + 1].endswith(",mine.jar")
    assert command[-3:] == [entry.__file__, "--submitted", options.to_word(asked)]
    assert options.from_word(command[-1]) == asked


@pytest.mark.parametrize("code", [0, 20])
def test_the_driver_ends_with_0_once_its_result_is_there(code: int, asked: AuditOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[AuditOptions] = []

    def run(options_there: AuditOptions, _: object) -> int:
        ran.append(options_there)
        return code

    monkeypatch.setattr(audit, "_audit_here", run)
    assert entry.main(["--submitted", options.to_word(asked)]) == 0
    assert ran == [asked]


def test_storage_options_that_do_not_work_there_are_in_the_drivers_result(
    asked: AuditOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def use(_: object) -> None:
        raise UsageError("they do not fit together")

    monkeypatch.setattr(storage_options, "use", use)
    assert entry.main(["--submitted", options.to_word(asked)]) == 0
    result = json.loads((Path(asked.out) / "result.json").read_text())
    assert result["exit_code"] == 3 and "they do not fit together" in json.dumps(result)


def test_the_packages_work_from_their_zip(tmp_path: Path) -> None:
    path = zip_packages(tmp_path)
    check = "import jobs.runtime.session, store_io.broker.releases, schemas.rows; print(jobs.runtime.session.__file__)\n"
    check += (
        "from jobs.report.pages.page import template_text; assert template_text('macros.html') and template_text('style.css')"
    )
    done = subprocess.run([sys.executable, "-P", "-c", check], env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.stdout.strip() == f"{path}/jobs/runtime/session.py", done.stderr
