"""What an export of a store would write, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs.commands.export import file_names
from jobs.messages.export_files import NamedSegment, SegmentFiles
from schemas.rows import MappedFile
from schemas.sources import BODY_COLUMNS
from store_io.messages.redaction import Redaction
from store_io.messages.scans import DEFAULT_COLUMNS, MessageScan
from store_io.source.byte_source import StoreLocation
from tests.support.stores import builders

EVERYTHING = (*DEFAULT_COLUMNS, *BODY_COLUMNS)


def files_of(store: builders.Store, out: Path, form: str, **more: Any) -> tuple[SegmentFiles, list[NamedSegment]]:
    """Where an export of the store would put its files, and its parts."""
    (out / "state").mkdir(parents=True)
    redaction = more.pop("redaction", Redaction())
    scan = MessageScan(StoreLocation(str(store.root)), "", 0, 0, **{"columns": EVERYTHING, **more})
    segments = [
        MappedFile(f"commitlog/{path.name}", int(path.name), path.stat().st_size)
        for path in sorted((store.root / "commitlog").iterdir())
    ]
    parts = [NamedSegment(scan.of(file), name) for file, name in zip(segments, file_names(segments), strict=True)]
    return SegmentFiles(str(out), str(out / "state"), form, redaction), parts
