"""How the installed command is called in a line that is printed to be pasted."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs import installation
from jobs.installation import installed_entry


def test_a_command_that_no_shell_finds_by_its_name_is_printed_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "COMMAND", "rmq-audit")
    folder = tmp_path / "bin"
    folder.mkdir()
    own = folder / "rmq-audit"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    assert installed_entry(str(own)) == str(own)
    monkeypatch.setenv("PATH", str(folder))
    assert installed_entry(str(own)) == "rmq-audit"
    other = tmp_path / "other"
    other.mkdir()
    (other / "rmq-audit").write_text("#!/bin/sh\n")
    (other / "rmq-audit").chmod(0o755)
    monkeypatch.setenv("PATH", str(other))
    assert installed_entry(str(own)) == str(own)
    assert installed_entry("-m") == installed_entry(str(tmp_path / "python")) == "rmq-audit"
