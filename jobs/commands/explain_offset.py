"""explain STORE --phy-offset N: what lies at a physical offset, as annotated bytes. Needs no Spark, so it answers at once."""

from __future__ import annotations

from jobs.cli.message_filters import read_number
from jobs.cli.options import Command, single_store
from jobs.cli.terminal import colour_wanted, output_width
from jobs.messages.message_arguments import redaction_of, request_of
from jobs.report.texts.explain_text import explain_json, explain_text
from jobs.runtime.faults import say
from schemas.rows import NAMED
from store_io.base.compiled.code_files import start_quickly
from store_io.base.crc import checksum
from store_io.base.errors import UsageError
from store_io.messages.explain.explain_place import explain
from store_io.model.premises import assumed_sentence

PIPE_WIDTH = 130


def run(command: Command) -> int:
    """Explain one physical offset on standard output; 0 whatever lies there."""
    store = single_store(command)
    options = command.options
    if "--phy-offset" not in options:
        raise UsageError("--phy-offset N is missing: which physical offset is to be explained?")
    phy_offset = read_number(options["--phy-offset"], "--phy-offset")
    redaction = redaction_of(command)
    checksum.trust()
    start_quickly()
    said = explain(request_of(store), phy_offset, redaction)
    if store.release_from != NAMED:
        say(assumed_sentence(store.release, store.release_from), "explain")
    text = (
        explain_json(said) if options.get("--format") == "json" else explain_text(said, output_width(PIPE_WIDTH), colour_wanted())
    )
    print(text, end="", flush=True)
    return 0
