"""examples/kubernetes, held without Kubernetes: shapes, names that lead to one another, and the command line."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.cli import options, parser
from jobs.runtime import setup as environment

FOLDER = environment.ROOT / "examples" / "kubernetes"
INSTALLED = "/opt/store-audit"
KINDS = {
    "ServiceAccount": ("v1", {"apiVersion", "kind", "metadata"}),
    "Role": ("rbac.authorization.k8s.io/v1", {"apiVersion", "kind", "metadata", "rules"}),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", {"apiVersion", "kind", "metadata", "subjects", "roleRef"}),
    "Service": ("v1", {"apiVersion", "kind", "metadata", "spec"}),
    "Job": ("batch/v1", {"apiVersion", "kind", "metadata", "spec"}),
    "Pod": ("v1", {"apiVersion", "kind", "metadata", "spec"}),
}
CONTAINER = {"name", "image", "command", "workingDir", "env", "resources", "securityContext", "volumeMounts"}
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
POD = {
    "serviceAccountName", "restartPolicy", "terminationGracePeriodSeconds", "automountServiceAccountToken", "securityContext",
    "containers", "volumes",
}  # fmt: skip


@pytest.fixture
def objects() -> dict[str, Any]:
    """Kind -> the one object of it, of both files."""
    found = [one for name in ("audit.yaml", "executor.yaml") for one in yaml.safe_load_all((FOLDER / name).read_text())]
    assert {one["kind"] for one in found} == set(KINDS) and len(found) == len(KINDS)
    return {one["kind"]: one for one in found}


def test_shapes(objects: dict[str, Any]) -> None:
    for kind, (version, keys) in KINDS.items():
        assert objects[kind]["apiVersion"] == version and objects[kind].keys() == keys
    for pod in (objects["Job"]["spec"]["template"]["spec"], objects["Pod"]["spec"]):
        assert pod.keys() <= POD
        (container,) = pod["containers"]
        assert container.keys() <= CONTAINER
        mounted = {mount["name"]: mount for mount in container["volumeMounts"]}
        assert mounted.keys() == {volume["name"] for volume in pod["volumes"]}
        assert mounted["copies"]["readOnly"] is True
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == RESTRICTED
        for one in container["env"]:
            assert isinstance(one.get("value"), str) != (
                one.get("valueFrom", {}).keys() <= {"fieldRef", "secretKeyRef"} and "valueFrom" in one
            )
        assert not any("KEY" in one["name"] and "value" in one for one in container["env"]), "a secret is never in a manifest"
        # Temporary files lie on a disk of the node: a volume in memory would save none.
        assert {"name": "TMPDIR", "value": mounted["scratch"]["mountPath"]} in container["env"]
        assert {"name": "scratch", "emptyDir": {"sizeLimit": "20Gi"}} in pod["volumes"], "a full node is everybody's"


def test_names_lead_to_one_another(objects: dict[str, Any]) -> None:
    account, role, binding = (objects[kind] for kind in ("ServiceAccount", "Role", "RoleBinding"))
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role["metadata"]["name"]}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account["metadata"]["name"]}]
    template = objects["Job"]["spec"]["template"]
    assert template["spec"]["serviceAccountName"] == account["metadata"]["name"]
    assert objects["Service"]["spec"]["selector"] == template["metadata"]["labels"]
    (rule,) = role["rules"]
    assert {"pods", "configmaps"} <= set(rule["resources"]) and {"create", "delete", "watch"} <= set(rule["verbs"])
    driver = template["spec"]["containers"][0]
    codes = objects["Job"]["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]
    assert (codes["containerName"], codes["values"]) == (driver["name"], [2, 3, 10, 20])
    copies = [next(v for v in spec["volumes"] if v["name"] == "copies") for spec in (template["spec"], objects["Pod"]["spec"])]
    assert copies[0] == copies[1]


def test_an_executor_starts_as_spark_wants_it(objects: dict[str, Any], tmp_path: Path) -> None:
    """Its command, with the variables and the argument that Spark sets, and a java that shows its own arguments."""
    (container,) = objects["Pod"]["spec"]["containers"]
    (tmp_path / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "java").chmod(0o755)
    given = {f"SPARK_JAVA_OPT_{n}": f"-Done={n} two" for n in range(11)}
    told = "DRIVER_URL EXECUTOR_ID EXECUTOR_CORES APPLICATION_ID EXECUTOR_POD_IP RESOURCE_PROFILE_ID EXECUTOR_POD_NAME".split()
    given |= {f"SPARK_{name}": name for name in told} | {"SPARK_EXECUTOR_MEMORY": "1g", "SPARK_CLASSPATH": "own"}
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **given}
    done = subprocess.run([*container["command"], "executor"], env=variables, capture_output=True, text=True, check=True)
    words = done.stdout.splitlines()
    assert words[:13] == [*(f"-Done={n} two" for n in range(11)), "-Xms1g", "-Xmx1g"]
    assert words[13] == "-cp" and words[14].endswith("/pyspark/jars/*:own") and words[15].endswith(".KubernetesExecutorBackend")
    options = ("driver-url", "executor-id", "cores", "app-id", "hostname", "resourceProfileId", "podName")
    assert words[16:] == [word for option, name in zip(options, told, strict=True) for word in (f"--{option}", name)]


def test_the_image_is_the_dockerfiles(objects: dict[str, Any]) -> None:
    text = (environment.ROOT / "Dockerfile").read_text()
    driver = objects["Job"]["spec"]["template"]["spec"]["containers"][0]
    home = next(one["value"] for one in driver["env"] if one["name"] == "STORE_AUDIT_HOME")
    assert f"STORE_AUDIT_HOME={home} " in text and f"{home}/lib/python3" in objects["Pod"]["spec"]["containers"][0]["command"][-1]
    assert f"WORKDIR {INSTALLED}\n" in text and "useradd --uid 10001 " in text


def test_the_command_is_one_that_we_understand(objects: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = objects["Job"]["spec"]["template"]["spec"]["containers"][0]
    script, *words = driver["command"]
    assert (environment.ROOT / script.removeprefix(INSTALLED + "/")).is_file()
    places = {mount["mountPath"] for mount in driver["volumeMounts"]}
    fleet = words[words.index("--fleet") + 1]
    assert fleet.rpartition("/")[0] in places and words[words.index("--out") + 1] in places
    (tmp_path / "fleet.toml").write_text('[[store]]\nname = "a"\npath = "/copies/a"\nrelease = "5.3.3"\n')
    words[words.index("--fleet") + 1] = str(tmp_path / "fleet.toml")
    words[words.index("--out") + 1] = str(tmp_path / "out")
    command = options.parse(words)
    assert command.audit is not None and command.audit.run_id_named
    told = {name: parser.spark_setting(command.spark, name, "") for name in (
        "spark.driver.host", "spark.driver.port", "spark.driver.blockManager.port", "spark.kubernetes.container.image",
        "spark.kubernetes.executor.podTemplateFile", "spark.pyspark.python",
    )}  # fmt: skip
    service = objects["Service"]
    assert told["spark.driver.host"] == service["metadata"]["name"]
    ports = {str(port["port"]) for port in service["spec"]["ports"]}
    assert {told["spark.driver.port"], told["spark.driver.blockManager.port"]} == ports
    assert told["spark.kubernetes.container.image"] == driver["image"]
    assert str(told["spark.kubernetes.executor.podTemplateFile"]).rpartition("/")[2] == "executor.yaml"
    home = next(one["value"] for one in driver["env"] if one["name"] == "STORE_AUDIT_HOME")
    assert told["spark.pyspark.python"] == f"{home}/bin/python"
