"""explain-code [CODE ...]: what a finding or a stop reason means, what follows, what to do."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict

from jobs.cli.option_values import near
from jobs.cli.options import Command
from jobs.cli.terminal import fold_width
from jobs.installation import COMMAND
from jobs.report.texts.finding_words import CodeWords, all_codes, page, section
from jobs.report.texts.run_words import exit_meaning
from store_io.base.errors import UsageError
from store_io.base.exit_codes import CONSISTENT, DERIVED, INCOMPLETE, LOST

_EXIT_CODES = {str(code) for code in (CONSISTENT, INCOMPLETE, DERIVED, LOST)}
_WIDTH = 110
_LABEL = 16


def run(command: Command) -> int:
    """Print what each code means, or one line a code if no code is given. Raises UsageError for an unknown code."""
    codes = all_codes()
    for code in command.arguments:
        if code in _EXIT_CODES:
            raise UsageError(f"{code} is an exit code, not a finding: {exit_meaning(int(code))}")
        if code not in codes:
            raise UsageError(
                f"{code!r} is neither a finding nor a stop reason{near(code, codes)}; {COMMAND} explain-code lists all"
            )
    chosen = {code: codes[code] for code in command.arguments or codes}
    form = command.options.get("--format", "text")
    if form == "json":
        for words in chosen.values():
            print(json.dumps(asdict(words), ensure_ascii=False))
    elif form == "markdown":
        print("\n".join(map(section, chosen.values())) if command.arguments else page(chosen), end="")
    elif command.arguments:
        print("\n\n".join(map(text, chosen.values())))
    else:
        print(listing(chosen))
    return 0


def text(words: CodeWords) -> str:
    """Return one code for a terminal."""
    lines = [f"{words.code}: {words.heading()}"]
    for label, sentence in words.facts():
        lines += textwrap.wrap(
            sentence,
            fold_width(_WIDTH),
            initial_indent=f"  {label:{_LABEL}}",
            subsequent_indent=" " * (_LABEL + 2),
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def listing(codes: dict[str, CodeWords]) -> str:
    """Return a line for each code."""
    width = max(map(len, codes))
    lines = [f"{words.code:{width}}  {words.severity or words.kind:11}  {words.meaning}" for words in codes.values()]
    return "\n".join(lines)
