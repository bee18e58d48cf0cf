"""manifest STORE: names, sizes and digests of a copy, written or compared. Needs no Spark."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from jobs.cli import argument_places, options
from jobs.cli.options import Command
from jobs.report.texts.text import printable
from jobs.runtime import interrupts
from jobs.runtime.output import OutputFolder
from store_io.base.errors import StoreError, UsageError
from store_io.base.paths import is_uri
from store_io.base.wording import count_text
from store_io.messages.copy_manifest import HEAD, manifest_differences, manifest_paths, manifest_row, read_manifest
from store_io.source.byte_source import StoreLocation, open_source

MANIFEST_BYTES = 1 << 30
MOST = 100


def run(command: Command) -> int:
    """Write or verify a manifest. Returns 0, or 3 if a file differs."""
    store = options.single_store(command)
    given = command.options
    if "--write" in given and "--verify" in given:
        raise UsageError("say either --write or --verify")
    location = StoreLocation(store.path, store.parts)
    source = open_source(location)
    if "--verify" in given:
        try:
            text = argument_places.read_regular(argument_places.absolute(given["--verify"]), MANIFEST_BYTES).decode("utf-8")
            known = read_manifest(text)
        except UnicodeDecodeError:
            raise UsageError(f"--verify {given['--verify']!r}: no list that manifest wrote: it is no text") from None
        except UsageError as problem:
            raise UsageError(f"--verify {given['--verify']!r}: {problem}") from None
        except (OSError, ValueError) as problem:
            raise UsageError(f"--verify {given['--verify']!r}: {getattr(problem, 'strerror', None) or problem}") from None
        different = list(manifest_differences(source, manifest_paths(location), known))
        for sentence in different[:MOST]:
            print(printable(sentence))
        if different:
            print(count_text(len(different), "difference"))
            return StoreError.exit_code
        print(f"{count_text(len(known), 'file')} as the manifest says")
        return 0
    paths = manifest_paths(location)
    if "--write" in given:
        target = argument_places.absolute(given["--write"])
        if is_uri(target):
            raise UsageError(f"--write {given['--write']!r}: a file of this machine")
        argument_places.refuse_inside(target, "--write", store.roots)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        lines = [row.line() + "\n" for row in threads.map(lambda path: manifest_row(source, path, interrupts.check), paths)]
    if "--write" in given:
        OutputFolder(os.path.dirname(target)).write(os.path.basename(target), [HEAD + "\n", *lines])
        print(f"{printable(target)}: {count_text(len(lines), 'file')}")
    else:
        sys.stdout.write(HEAD + "\n" + "".join(lines))
    return 0
