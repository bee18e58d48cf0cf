"""The code's own shape: which way imports point, who opens files, who knows bytes, and that the text speaks of the project."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.texts.own_code import forget, nodes_of, tree

SPARK_TYPES = ROOT / "schemas" / "tables.py"  # rows as Spark types: the one exception, marked there
FORBIDDEN_IMPORTS = {
    "schemas": {"store_io", "jobs", "dev", "tests", "pyspark", "delta", "py4j"},
    "store_io": {"jobs", "dev", "tests", "pyspark", "delta", "py4j"},
    "jobs": {"dev", "tests", "struct"},
}
# Folders of store_io in the order in which bytes become a plan: each imports from itself and from those before it.
ORDER = (
    "base", "source", "rocksdb", "broker", "log", "wording", "model", "kinds", "first_day", "checks", "outcome", "audit",
    "replicas", "messages", "repair", "answer",
)  # fmt: skip
# Folders of jobs, from what a command line is to the commands. `installation` is for all of them; `entry` and `warm_up` use all.
JOBS_ORDER = ("cli", "report", "runtime", "tables", "tasks", "audit", "repair", "messages", "sources", "commands")
LAYOUTS = {path.stem for path in (ROOT / "schemas").glob("*_layout.py")}
MAGICS = (0xDAA320A7, 0xDAA320AB, 0xCBD43194)
OPENERS = {
    "open",
    "os.open",
    "io.open",
    "io.FileIO",
    "os.fdopen",
    "mmap.mmap",
    "np.memmap",
    "np.fromfile",
    "numpy.memmap",
    "numpy.fromfile",
}
OPENING_METHODS = {"read_bytes", "read_text", "open_input_file", "open_input_stream", "get_object", "head_object"}
CHANGERS = {
    "write_bytes", "write_text", "unlink", "rmdir", "rename", "replace", "touch", "mkdir", "symlink_to", "hardlink_to", "chmod",
    "utime", "rmtree", "remove", "makedirs", "copyfile", "copytree", "open_output_stream", "delete_file",
    "put_object", "delete_object", "delete_objects", "copy_object", "create_multipart_upload", "upload_part", "put_object_acl",
}  # fmt: skip


def teardown_module() -> None:
    forget()


def modules(package: str) -> list[Path]:
    """Those of a package and of all below it; there is at least one: a test over none would prove nothing."""
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"no module in {package}: nothing was tested"
    return found


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Every name that the module imports, wherever in it: "a.b.c" and, for "from a import b", "a.b" too."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in nodes_of(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call as its dotted text ("os.open", "path.read_bytes")."""
    for node in nodes_of(tree(path)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


@pytest.mark.parametrize("package", FORBIDDEN_IMPORTS)
def test_imports_point_one_way(package: str) -> None:
    for path in modules(package):
        tops = {name.split(".")[0] for name in imported(path)}
        wrong = tops & FORBIDDEN_IMPORTS[package]
        if path == SPARK_TYPES:
            wrong -= {"pyspark"}
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


@pytest.mark.parametrize(("package", "order"), [("store_io", ORDER), ("jobs", JOBS_ORDER)])
def test_folders_import_from_those_before_them(package: str, order: tuple[str, ...]) -> None:
    folders = {path.name for path in (ROOT / package).iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(order)
    rebuilds = rebuilding_modules()
    for path in modules(package):
        name = ".".join(path.relative_to(ROOT / package).with_suffix("").parts)
        own = "repair" if name in rebuilds else name.partition(".")[0]
        if own not in order:  # a module beside the folders may use all of them
            continue
        used = {other.split(".")[1] for other in imported(path) if other.startswith(f"{package}.")} & folders
        later = used - set(order[: order.index(own) + 1])
        assert not later, f"{path.relative_to(ROOT)} imports {later}"
        if own != "repair":
            above = {other for other in imported(path) if other.removeprefix("store_io.") in rebuilds}
            assert not above, f"{path.relative_to(ROOT)} imports {above}, which belong to the repair"


def rebuilding_modules() -> set[str]:
    """Name the modules of kinds that make files of a new store: in the order of folders they stand beside the repair."""
    return {
        ".".join(path.relative_to(ROOT / "store_io").with_suffix("").parts)
        for path in modules("store_io/kinds")
        if any(name.startswith("store_io.repair.") for name in imported(path))
    }


def test_rounds_and_healing_know_neither_checks_nor_the_outcome() -> None:
    for path in modules("store_io/audit"):
        if path.name != "audit_store.py" and path.parent.name != "compared":
            used = {name.split(".")[1] for name in imported(path) if name.startswith("store_io.")}
            assert not used & {"checks", "outcome"}, f"{path.relative_to(ROOT)} imports from {used & {'checks', 'outcome'}}"


def test_every_folder_has_a_map_of_its_modules() -> None:
    for package in ("schemas", "store_io", "jobs", "dev"):
        for start in sorted((ROOT / package).rglob("__init__.py")):
            shown = ast.get_docstring(tree(start)) or ""
            inside = [path for path in start.parent.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()]
            missing = [path.name for path in inside if path != start and not re.search(rf"\b{path.stem}\b", shown)]
            assert not missing, f"{start.relative_to(ROOT)} says nothing of {missing}"


def test_schemas_hold_no_logic() -> None:
    for path in modules("schemas"):
        if path.stem.endswith("_layout"):
            kinds = {type(node) for node in nodes_of(tree(path))}
            assert not kinds & {ast.FunctionDef, ast.If, ast.For, ast.While}, f"{path.name} has logic"


FOLDERS = ("local_folder.py", "s3_folder.py", "hdfs_folder.py", "arrow_folder.py")  # these alone open files of a store


def test_only_folders_open_files_of_a_store() -> None:
    """Files and objects. And one module alone writes: a new store, never one that is read. Others write our own temporary files
    and code."""
    for path in modules("store_io"):
        if path.name in ("store_writer.py", "private_folder.py", "scratch.py", "read_rate.py", "code_files.py", "disk_cache.py"):
            continue
        for name, node in calls(path):
            where = f"{path.relative_to(ROOT)}:{node.lineno}: {name}"
            last = name.rsplit(".", 1)[-1]
            if path.name not in FOLDERS:
                assert name not in OPENERS and last not in OPENING_METHODS, f"{where} opens a file"
            owner = name.rpartition(".")[0]
            changes = last in CHANGERS and not (last in ("replace", "remove") and owner not in ("os", "shutil", "Path"))
            assert not changes, f"{where} changes the file system"


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_only_read(name: str) -> None:
    text = (ROOT / "store_io" / "source" / name).read_text(encoding="utf-8")
    if name == "local_folder.py":
        assert "O_RDONLY" in text and "O_NONBLOCK" in text
    assert not re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)|os\.p?write|open_(output|append)_stream", text)
    assert not [node for called, node in calls(ROOT / "store_io" / "source" / name) if called == "open"]


def test_the_writer_of_new_stores_opens_no_source() -> None:
    """It gets what it copies as open files of a source, and makes every path of its own below its own folder."""
    path = ROOT / "store_io" / "repair" / "writing" / "store_writer.py"
    opened = [node for name, node in calls(path) if name in OPENERS and name != "os.open"]
    assert not opened
    origins = {ast.unparse(node.args[0]) for name, node in calls(path) if name == "os.open"}
    assert origins == {"self._full(path)", "full", "path", "path / _LOCK"}


# native: for the length of a call.  queue_probe: of bytes that the probe holds.  The others call C functions with an array that
# they hold.
KNOW_ADDRESSES = ("native.py", "queue_probe.py", "checksum.py", "message_search.py")


def test_addresses_of_arrays_are_passed_on_by_calls_that_hold_them() -> None:
    for path in (*modules("store_io"), *modules("jobs")):
        if path.name not in KNOW_ADDRESSES:
            found = re.findall(r"\bctypes\.data\b|\baddressof\b|__array_interface__|from_buffer\(", path.read_text("utf-8"))
            assert not found, f"{path.relative_to(ROOT)}: {found}: declare the parameter of the kept function as an Address"


def test_jobs_know_no_bytes() -> None:
    for path in modules("jobs"):
        names = {part for name in imported(path) for part in name.split(".")}
        assert not names & LAYOUTS, f"{path.relative_to(ROOT)} imports {names & LAYOUTS}"
        for node in nodes_of(tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, int):
                assert node.value & 0xFFFFFFFF not in MAGICS, f"{path.relative_to(ROOT)}:{node.lineno} holds a magic"
        for name, node in calls(path):
            assert not name.endswith((".frombuffer", ".from_bytes", "unpack_from")), (
                f"{path.relative_to(ROOT)}:{node.lineno}: {name}"
            )


def test_builders_are_a_witness_of_their_own() -> None:
    stores = [
        ROOT / "tests" / "support" / "stores" / f"{name}.py"
        for name in ("builders", "strategies", "random_stores", "random_days")
    ]
    alone = [*stores, ROOT / "tests" / "support" / "damage.py"]
    witness = list(modules("tests/support/second_witness"))
    assert len(witness) > 5
    for path in [*alone, *witness]:
        tops = {name.split(".")[0] for name in imported(path)}
        assert not tops & {"schemas", "store_io", "jobs"}, f"{path.relative_to(ROOT)} imports the product"


OTHER_MACHINES = ("/home/you", "/home/audit", "/tmp/root", "/tmp/c")  # what examples and tests call somebody's folders
TEXTS = {"", *".py .md .sh .toml .html .css .js .ipynb .txt .yml .yaml .cfg .in .json .java .service".split()}


def tracked() -> list[Path]:
    """The project's files: those that Git knows; without Git all that lie here."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split("\n")
    return [ROOT / name for name in listed if name] or [p for p in ROOT.rglob("*") if p.is_file() and ".git" not in p.parts]


def test_text_speaks_of_the_project_alone() -> None:
    """No path of a machine that it was written on, no word of how it came to be."""
    words = [
        r"(?<![\w.~$}/-])/(?:home|root|Users|work|mnt|tmp)/[\w.-]+",
        r"\b(?:Cla" r"ude|Anthro" r"pic|sub-?ag" r"ents?|LL" r"M)\b",
    ]
    pattern = re.compile("|".join(words))
    searched = 0
    for path in tracked():
        if path.suffix in TEXTS and path.is_file() and "corpus" not in path.parts:
            searched += 1
            for found in pattern.finditer(path.read_text(encoding="utf-8", errors="replace")):
                assert found.group() in OTHER_MACHINES, f"{path.relative_to(ROOT)}: {found.group()}"
    assert searched > 1000


def test_what_is_no_text_is_a_sample_or_a_picture() -> None:
    """No file that a tool has left behind."""
    samples = ("tests/corpus/", "tests/jobs/tables/first_release", "examples/damaged-store/store/", "docs/")
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if path.is_file() and b"\0" in path.read_bytes():
            assert name.startswith(samples) and (not name.startswith("docs/") or path.suffix == ".png"), name
