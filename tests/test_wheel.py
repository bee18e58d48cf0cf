"""The wheel: its ranges, its names, and, under the mark `big`, the command and the data sources in environments of their own.

Those make environments with the oldest and the newest PySpark of the range, a gigabyte each, and take a quarter of an hour.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

from jobs import installation
from jobs.sources import helpers
from jobs.sources.store_source import StoreSource
from tests import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXAMPLE = ROOT / "examples" / "damaged-store"
# The lowest versions of the ranges. Those of Python go with PySpark's own.
LOWEST = [re.sub(r">=([0-9.]+).*", r"==\1.*", text) for text in PROJECT["project"]["dependencies"]]
READS = """
from pyspark.sql import SparkSession
from rocketmq_store_audit import sources
import schemas  # the caller's own

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
counts = {}
for source in ("messages", "consumequeue", "index", "extents"):  # Spark finds them by itself
    counts[source] = spark.read.format(f"rocketmq.{source}").load(STORE).count()
found = sources.read(spark, "messages", STORE).where("phy_offset >= 530000 and topic = 'Topic1'")
counts["Topic1"] = found.count()
print(schemas.MINE, counts)
"""


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("builder_of_the_wheel", ROOT / "setup.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- ranges and pins -------------------------------------------------------------------------------------------------


def requirements(texts: list[str]) -> dict[str, Requirement]:
    return {requirement.name: requirement for requirement in map(Requirement, texts)}


def test_each_pin_is_in_its_range() -> None:
    ranges = requirements(PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["rocksdb"])
    groups = PROJECT["dependency-groups"]
    pins = requirements(groups["environment"] + groups["environment-rocksdb"])
    assert pins.keys() - ranges.keys() == {"delta-spark"}, "the wheel has Delta's jars without its Python package"
    assert ranges.keys() <= pins.keys()
    for name, allowed in ranges.items():
        (pin,) = pins[name].specifier
        assert pin.operator == "==" and allowed.specifier.contains(pin.version), name


def test_every_pyspark_of_the_range_has_jars() -> None:
    allowed = requirements(PROJECT["project"]["dependencies"])["pyspark"].specifier
    releases = list(PROJECT["tool"]["store-audit"]["jars-for-spark"])
    assert [f"{major}.{minor}" for major in (3, 4, 5) for minor in range(10) if f"{major}.{minor}.9" in allowed] == releases


# ---- names -----------------------------------------------------------------------------------------------------------


def test_imports_name_the_packages_of_the_wheel(builder: ModuleType) -> None:
    source = (
        "from jobs import sources\nfrom jobs.entry import (\n    main,\n)\nimport os\nfrom jobsite import x\n"
        "def f():\n    'é'; from store_io.base.errors import StoreError as S  # from jobs import y\n"
        "TEXT = 'from schemas import rows'\n"
    )
    assert builder.renamed(source, "module.py") == (
        "from rocketmq_store_audit.jobs import sources\nfrom rocketmq_store_audit.jobs.entry import (\n    main,\n)\nimport os\n"
        "from jobsite import x\ndef f():\n    'é'; from rocketmq_store_audit.store_io.base.errors import StoreError as S"
        "  # from jobs import y\nTEXT = 'from schemas import rows'\n"
    )
    for bad in ("import jobs.entry\n", "import os, schemas\n"):
        with pytest.raises(SystemExit, match="line 1: write the import as"):
            builder.renamed(bad, "module.py")


def test_no_module_is_named_in_a_way_that_a_wheel_does_not_know() -> None:
    own = "|".join(installation.PACKAGES)
    statement, name = re.compile(rf"^\s*import (?:{own})\b", re.MULTILINE), re.compile(rf"""["'](?:{own})\.[\w.]+["']""")
    asked = re.compile(rf"""(?:module_name\(|^    module=)["'](?:{own})\.[\w.]+["']""", re.MULTILINE)
    for package in installation.PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text("utf-8")
            assert not statement.search(text), f"{path}: setup.py renames `from PACKAGE import NAME` alone"
            left = asked.sub("", text) if name.search(text) else ""
            found = [text for text in name.findall(left) if (ROOT / (text[1:-1].replace(".", "/") + ".py")).is_file()]
            assert not found, f"{path}: {found} have other names in the wheel; ask `installation.module_name`"


def test_spark_finds_each_source_in_a_package_of_its_own(builder: ModuleType) -> None:
    """Spark imports pyspark_*, and takes their DefaultSource."""
    found = {}
    for name, text in builder.spark_packages().items():
        assert builder.renamed(text, name).startswith("from rocketmq_store_audit.jobs.sources.")
        module: dict[str, type[StoreSource]] = {}
        exec(text, module)
        found[name] = module["DefaultSource"]
    assert found == {f"pyspark_rocketmq_{source}": kind for source, kind in helpers._BY_NAME.items()}


# ---- installed -------------------------------------------------------------------------------------------------------


def run(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    for name in ("JAVA_HOME", "PIP_CERT", "PIP_FIND_LINKS", "PIP_INDEX_URL"):
        if name in os.environ:
            clean.setdefault(name, os.environ[name])
    return subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, timeout=3000)


@pytest.mark.big
@pytest.mark.parametrize("versions", ["oldest", "newest"])
def test_the_command_and_the_sources_of_an_installed_wheel(versions: str, tmp_path: Path) -> None:
    # Beside a person's own packages of these names.
    for package in installation.PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("MINE = 'mine'\n")
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
    done = run([*pip, *(LOWEST if versions == "oldest" else []), str(ROOT)], tmp_path)
    assert done.returncode == 0, done.stderr
    path = f"{venv}/bin:{os.environ['PATH']}"

    done = run(["python", "-c", f"STORE = {str(EXAMPLE / 'store')!r}\n{READS}"], tmp_path, PATH=path)
    assert done.stdout.splitlines()[-1:] == [
        "mine {'messages': 1670, 'consumequeue': 1657, 'index': 2956, 'extents': 12, 'Topic1': 85}"
    ], done.stderr

    script = tmp_path / "own.py"
    script.write_text(
        "import sys\nfrom rocketmq_store_audit import sources\n"
        "print('read', sources.read(spark, 'messages', sys.argv[1]).count())\nsys.exit(7)\n"
    )
    done = run(["rmq-audit", "run", str(script), str(EXAMPLE / "store")], tmp_path, PATH=path)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (7, ["read 1670"]), done.stderr
    told = run(["rmq-audit", "run", "--help"], tmp_path, PATH=path)
    assert "from rocketmq_store_audit import sources" in told.stdout and "from jobs" not in told.stdout, told.stderr

    words = ["audit", str(EXAMPLE / "store"), "--release", "4.9.8", "--broker-conf", str(EXAMPLE / "broker.conf")]
    installed = run(["rmq-audit", *words, "--out", str(tmp_path / "installed")], tmp_path, PATH=path)
    assert installed.returncode == 20, installed.stderr
    assert "\n  Closer     rmq-audit explain " in installed.stdout
    by_script = [str(ROOT / "spark-submit.sh"), *words, "--out", str(tmp_path / "script")]
    assert subprocess.run(by_script, capture_output=True, text=True).returncode == 20
    for name in ("plan.json", "findings.jsonl", "config.json"):
        assert (tmp_path / "installed" / "store" / name).read_bytes() == (tmp_path / "script" / "store" / name).read_bytes()
    shown = run(
        ["rmq-audit", "report", "--tables", str(tmp_path / "installed" / "tables"), "--format", "json"], tmp_path, PATH=path
    )
    assert shown.returncode == 0 and json.loads(shown.stdout), shown.stderr
