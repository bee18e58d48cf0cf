"""examples/schedule: the night's script against a stand-in for the tool, and cron's, systemd's and Kubernetes' files as far as
they can be held without cron, systemd and Kubernetes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.cli import options
from jobs.cli.command_table import COMMAND_TABLE
from jobs.cli.stores import read_fleet_file
from jobs.report.files.ci_files import prometheus_text
from jobs.report.files.result_files import result_json
from jobs.runtime import setup as environment
from store_io.answer.headline import judge
from tests.support.handmade import samples

SCHEDULE = environment.ROOT / "examples" / "schedule"
INSTALLED = "/opt/store-audit"
TOOL = """#!/bin/sh
echo "$*" >>"$OUT/calls"
while [ $# -gt 0 ]; do
  case $1 in
    audit) echo "what was found" && echo "a complaint" >&2 && command=audit ;;
    diff) command=diff ;;
    tables) echo "tidying" && exit "${TIDY:-0}" ;;
    --out) out=$2 ;;
  esac
  shift
done
[ "${command:-}" != audit ] || [ -z "${NO_RESULT:-}" ] || exit "$AUDIT"
[ "${command:-}" != audit ] || { mkdir -p "$out" && echo "  \\"tables\\": $TABLES" >"$out/result.json" && exit "$AUDIT"; }
[ -n "${NO_TEXT:-}" ] || echo text >"$out"
[ "${command:-}" != diff ] || exit "$DIFF"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Everything that the script is told of, with the stand-in and a `date` that says what $DAY says."""
    (tmp_path / "bin").mkdir()
    for name, text in (("tool", TOOL), ("bin/date", '#!/bin/sh\n[ "$*" = "-u +%Y-%m-%d" ] && echo "$DAY"\n')):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def night(
    place: Path, day: str, audit: int = 0, diff: int = 0, tables: str = '"/t"', **more: str
) -> tuple[int, str, str, list[str]]:
    """(code, standard output, standard error, calls of the tool) of one night."""
    (place / "out").mkdir(exist_ok=True)
    (place / "out" / "calls").write_text("")
    variables = {
        "PATH": f"{place}/bin:{os.environ['PATH']}", "STORE_AUDIT": f"{place}/tool", "FLEET": "/etc/fleet.toml",
        "OUT": f"{place}/out", "DAY": day, "AUDIT": str(audit), "DIFF": str(diff), "TABLES": tables, **more,
    }  # fmt: skip
    done = subprocess.run(["sh", str(SCHEDULE / "nightly.sh")], env=variables, capture_output=True, text=True, timeout=30)
    calls = (place / "out" / "calls").read_text().replace(str(place), "").splitlines()
    return done.returncode, done.stdout, done.stderr, calls


AUDIT = "audit --fleet /etc/fleet.toml --out /out/latest --tables /out/tables --run-id {}"
REPORT = "report --tables /out/tables --since 30d --out /out/fleet.html"
DIFF = "diff {} {} --tables /out/tables --out /out/diff.txt"


def test_nights(place: Path) -> None:
    assert night(place, "d1") == (0, "", "", [AUDIT.format("d1"), REPORT])
    assert night(place, "d2") == (0, "", "", [AUDIT.format("d2"), REPORT, DIFF.format("d1", "d2")])
    code, said, errors, calls = night(place, "d3", audit=20, diff=20, METRICS="/m.prom")
    assert (code, said, errors) == (20, "what was found\na complaint\ntext\n", "")
    assert calls == [AUDIT.format("d3") + " --prometheus /m.prom", REPORT, DIFF.format("d2", "d3")]
    assert night(place, "d3")[3] == [AUDIT.format("d3"), REPORT, DIFF.format("d2", "d3")]  # the same day again


def test_nights_that_keep_the_tables_small(place: Path) -> None:
    tidy = [f"tables {action} --tables /out/tables" for action in ("prune --keep 90d", "compact", "vacuum")]
    assert night(place, "d1", KEEP="90d") == (0, "", "", [AUDIT.format("d1"), REPORT, *tidy])
    code, said, _, calls = night(place, "d2", KEEP="90d", TIDY="3")
    assert (code, said, calls) == (3, "tidying\n", [AUDIT.format("d2"), REPORT, tidy[0], DIFF.format("d1", "d2")])


def test_nights_that_leave_nothing_to_compare(place: Path) -> None:
    night(place, "d1")
    for code in (2, 130, 143):
        assert night(place, "d2", audit=code) == (code, "", "what was found\na complaint\n", [AUDIT.format("d2")])
    assert night(place, "d2", audit=3, tables="null")[::3] == (3, [AUDIT.format("d2")])
    assert night(place, "d3", audit=3)[3][-1] == DIFF.format("d1", "d3")  # one store was not wholly audited, the others were
    done = subprocess.run(["sh", str(SCHEDULE / "nightly.sh")], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        2,
        "nightly.sh: set FLEET (a file like examples/schedule/fleet.toml) and OUT (a folder for results)\n",
    )


@pytest.mark.parametrize(
    ("audit", "diff", "code"),
    [
        (0, 0, 0), (0, 10, 10), (0, 20, 20), (0, 3, 3), (10, 0, 10), (10, 3, 3), (10, 20, 20), (3, 10, 3), (3, 20, 20),
        (20, 0, 20), (20, 10, 20), (20, 3, 20), (0, 2, 3), (10, 130, 3), (20, 143, 20), (0, 1, 3),
    ],
)  # fmt: skip
def test_a_night_ends_with_the_worse_of_both(place: Path, audit: int, diff: int, code: int) -> None:
    night(place, "d1")
    found, said, _, calls = night(place, "d2", audit=audit, diff=diff)
    assert found == code and calls[-1] == DIFF.format("d1", "d2")
    assert said.endswith("text\n") == (diff != 0)
    assert night(place, "d3", diff=diff, NO_TEXT="1")[1:3] == ("", ""), "a comparison that wrote nothing has nothing to show"


@pytest.mark.parametrize("code", [0, 3, 10])
def test_a_night_without_a_result(place: Path, code: int) -> None:
    """An audit that could not even begin: the first one, and one that leaves an older night's result where it was."""
    audit = "what was found\na complaint\n" if code else ""
    first = night(place, "d1", audit=code, NO_RESULT="1")
    assert first == (code, audit, "", [AUDIT.format("d1")])
    assert night(place, "d2")[3] == [AUDIT.format("d2"), REPORT]
    (place / "out" / "latest" / "result.json").write_text('{\n  "run_id": "d2",\n  "tables": "/t"\n}\n')
    assert night(place, "d3", audit=code, NO_RESULT="1") == (code, audit, "", [AUDIT.format("d3")])
    assert (place / "out" / "last-run").read_text() == "d2\n"


def test_its_calls_are_calls_of_this_tool(place: Path, tmp_path: Path) -> None:
    night(place, "d1")
    calls = night(place, "d2", METRICS=f"{tmp_path}/m.prom")[3]
    (tmp_path / "fleet.toml").write_text('[[store]]\npath = "s"\n')
    for call in calls:
        words = [str(tmp_path / word[1:]) if word in ("/etc/fleet.toml", "/m.prom") else word for word in call.split()]
        words = [word.replace("/etc/", "/") if word.endswith("fleet.toml") else word for word in words]
        assert options.parse(words).name == words[0]
        assert words[0] == "audit" or {w for w in words if w.startswith("--")} <= {
            row.name for row in COMMAND_TABLE[words[0]].options
        }


def test_cron(place: Path) -> None:
    """The line as cron runs it: variables from the file, a bare PATH, the rest to sh. An unescaped "%" would end it."""
    variables: dict[str, str] = {}
    lines = [line for line in (SCHEDULE / "crontab").read_text().splitlines() if line and not line.startswith("#")]
    (job,) = [line for line in lines if not re.match(r"[A-Z_]+=", line)]
    variables.update(line.split("=", 1) for line in lines if line != job)
    *when, command = job.split(None, 5)
    assert len(when) == 5 and all(re.fullmatch(r"\*|\d+", field) for field in when) and "%" not in command
    assert variables.keys() >= {"FLEET", "OUT", "METRICS", "STORE_AUDIT_HOME"}
    told = {"OUT": f"{place}/out", "STORE_AUDIT": f"{place}/tool", "AUDIT": "10", "DIFF": "0", "TABLES": "1", "DAY": "d1"}
    variables |= {**told, "PATH": f"{place}/bin:/usr/bin:/bin"}
    command = command.replace(INSTALLED, str(environment.ROOT))
    done = subprocess.run(["/bin/sh", "-c", command], env=variables, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (10, "what was found\na complaint\n", "")
    (audit, _) = (place / "out" / "calls").read_text().splitlines()
    assert audit.endswith("--prometheus /var/lib/node_exporter/textfile/store-audit.prom")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd(tmp_path: Path) -> None:
    for name in ("store-audit.service", "store-audit.timer"):
        text = (SCHEDULE / name).read_text().replace(INSTALLED, str(environment.ROOT))
        (tmp_path / name).write_text(text)
    units = [str(tmp_path / name) for name in ("store-audit.service", "store-audit.timer")]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, timeout=60)
    said = [line for line in (done.stdout + done.stderr).splitlines() if str(tmp_path) in line or "store-audit" in line]
    assert (done.returncode, said) == (0, [])
    broken = tmp_path / "broken.service"
    broken.write_text("[Service]\nType=oneshot\nTimeoutStartSec=soon\n")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(broken)], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 or "TimeoutStartSec" in done.stderr, "it would not see a fault"


# ---- YAML ----------------------------------------------------------------------------------------------------------

# What Kubernetes and Prometheus call what these files say: a key of another name would be refused, or say nothing.
KEYS = {
    "cronjob.yaml": """apiVersion kind metadata name spec schedule timeZone concurrencyPolicy startingDeadlineSeconds
        successfulJobsHistoryLimit failedJobsHistoryLimit jobTemplate backoffLimit podFailurePolicy rules action onExitCodes
        containerName operator values onPodConditions type template restartPolicy terminationGracePeriodSeconds securityContext
        runAsNonRoot runAsUser fsGroup containers image command env value resources requests limits cpu memory
        allowPrivilegeEscalation readOnlyRootFilesystem volumeMounts mountPath readOnly volumes persistentVolumeClaim claimName
        configMap hostPath path emptyDir""",
    "alerts.yml": "groups name rules alert expr for labels severity annotations summary",
}


def read(name: str) -> Any:
    """A file of the folder, with no key but those that are known."""
    found = yaml.safe_load((SCHEDULE / name).read_text())
    assert set(keys_of(found)) <= set(KEYS[name].split())
    return found


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys_of(item)


def test_kubernetes() -> None:
    job = read("cronjob.yaml")
    assert (job["apiVersion"], job["kind"], job["spec"]["concurrencyPolicy"]) == ("batch/v1", "CronJob", "Forbid")
    assert re.fullmatch("[a-z0-9-]{1,52}", job["metadata"]["name"]) and re.fullmatch(r"(\S+ ){4}\S+", job["spec"]["schedule"])
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    rules = job["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert pod["restartPolicy"] == "Never" and {rule["action"] for rule in rules} <= {"FailJob", "Ignore", "Count", "FailIndex"}
    (container,) = pod["containers"]
    assert container["name"] == "audit" and pod["securityContext"].keys() == {"runAsNonRoot", "runAsUser", "fsGroup"}
    assert container.keys() == {"name", "image", "command", "env", "resources", "securityContext", "volumeMounts"}
    assert container["resources"].keys() == {"requests", "limits"} and pod["securityContext"]["runAsNonRoot"] is True
    mounted = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert mounted.keys() == {volume["name"] for volume in pod["volumes"]}
    assert mounted["copies"]["readOnly"] is True
    told = {one["name"]: one["value"] for one in container["env"]}
    places = tuple(mount["mountPath"] for mount in mounted.values())
    assert all(told[name].startswith(places) for name in ("FLEET", "OUT", "METRICS", "STORE_AUDIT_HOME", "HOME"))
    assert told["TMPDIR"] == mounted["scratch"]["mountPath"] and {"name": "scratch", "emptyDir": {}} in pod["volumes"]
    assert (environment.ROOT / container["command"][0].removeprefix(INSTALLED + "/")).is_file()


def test_the_alert_of_code_20_is_true_of_every_verdict_with_that_code() -> None:
    (group,) = read("alerts.yml")["groups"]
    (rule,) = [rule for rule in group["rules"] if rule["expr"] == "rocketmq_store_audit_exit_code == 20"]
    told = rule["annotations"]["summary"]
    assert judge(samples.already_damaged()).headline.endswith("a start makes nothing worse")
    assert "do not start" not in told.lower() and "unsafe" not in rule["alert"].lower()
    for cause in ("damaged", "missing", "would lose messages", "fail"):
        assert cause in told
    (row,) = [line for line in (environment.ROOT / "docs" / "nightly.md").read_text().splitlines() if f"`{rule['expr']}`" in line]
    assert "do not start" not in row


def test_the_dashboard_asks_for_metrics_that_are_written() -> None:
    board = json.loads((SCHEDULE / "dashboard.json").read_text())
    result = json.loads(result_json(samples.RUN, [samples.lacking(samples.damaged()), samples.emptied()]))
    text = prometheus_text(result, 0)
    written = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    labels = set(re.findall(r'[{,](\w+)="', text))
    source, store = board["templating"]["list"]
    assert (source["type"], store["query"]["query"]) == ("datasource", "label_values(rocketmq_store_audit_exit_code, store)")
    panels, cells = board["panels"], set()
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        own = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert max(x for x, _ in own) < 24 and not own & cells, panel["title"]
        cells |= own
        assert panel["description"].endswith(".") and panel["fieldConfig"]["defaults"]["unit"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            asked = re.findall(r"(rocketmq_store_audit_\w+)(\{[^}]*\})?", target["expr"])
            assert asked and all(name in written and choice == '{store=~"$store"}' for name, choice in asked), target
            assert set(re.findall(r"by \((\w+)\)|\{\{(\w+)\}\}", target["expr"] + target["legendFormat"])) <= {
                pair for label in labels for pair in ((label, ""), ("", label))
            }
            assert target["expr"].count("(") == target["expr"].count(")")
            assert {one["uid"] for one in (panel["datasource"], target["datasource"])} == {"${datasource}"}


def test_alerts_ask_for_metrics_that_are_written() -> None:
    (group,) = read("alerts.yml")["groups"]
    result = json.loads(result_json(samples.RUN, [samples.behind(samples.damaged()), samples.emptied()]))
    written = set(re.findall(r"^# TYPE (\S+)", prometheus_text(result, 0), re.MULTILINE))
    for one in group["rules"]:
        assert re.fullmatch("[A-Z][A-Za-z]+", one["alert"]) and re.fullmatch(r"\d+[smhd]", one.get("for", "1h")), one
        assert one.keys() - {"for"} == {"alert", "expr", "labels", "annotations"}
        assert one["labels"].keys() == {"severity"} and one["annotations"].keys() == {"summary"}
        asked = set(re.findall(r"rocketmq_store_audit_\w+", one["expr"]))
        assert asked and asked <= written, asked - written
        assert ("$labels.store" in one["annotations"]["summary"]) == ("absent(" not in one["expr"])


def test_the_fleet_file_that_is_put_into_another_folder_names_places_that_stay() -> None:
    """A relative path would start at /etc, and a ConfigMap holds no broker.conf."""
    (store,) = read_fleet_file(str(SCHEDULE / "fleet.toml"), {})
    assert store.path.startswith("/copies/") and store.problem.endswith(
        "'/copies/broker-a-0/broker.conf': No such file or directory"
    )
