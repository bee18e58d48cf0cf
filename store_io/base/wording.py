"""Numbers and names in sentences. Standard library only: sentences are also made where there is no environment yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sentence:
    """Rendered words. Nothing can be read out of them again: only what shows or writes a sentence makes a text of it."""

    _words: str

    def __str__(self) -> str:
        return self._words


def count_text(number: int, noun: str = "", plural: str = "") -> str:
    """Return 12,345 or, with a noun, "1 message" and "12,345 messages"."""
    if not noun:
        return f"{number:,}"
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def bytes_text(size: int) -> str:
    """Return a size in the unit that suits it, decimal: 812 B, 1.61 GB."""
    value = float(size)
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if abs(value) < 999.5 or unit == "TB":
            break
        value /= 1000
    return f"{size:,} B" if unit == "B" else f"{value:.3g} {unit}" if abs(value) < 999.5 else f"{value:,.0f} {unit}"


def clause(sentence: str) -> str:
    """Return a catalogue sentence as a part of a longer one, without its full stop and first capital.

    The capital of a name, as CommitLog or RocksDB, stays.
    """
    text = sentence.rstrip(".")
    first, _, _ = text.partition(" ")
    return text if first == "Ext" or first[1:] != first[1:].lower() else text[:1].lower() + text[1:]


def as_sentence(clause: str) -> str:
    """Return a clause as a sentence: with a full stop, and a capital unless it begins with a name, as of a file or a setting."""
    first, _, _ = clause.partition(" ")
    text = clause.rstrip(".")
    return f"{text[:1].upper()}{text[1:]}." if first.isalpha() and first == first.lower() else f"{text}."


def seen(name: str) -> str:
    """Return the name; in quotes if it is empty, or begins or ends with a space, which nobody would see."""
    return name if name and name == name.strip(" ") else f'"{name}"'


def names_text(names: Sequence[str], most: int = 3) -> str:
    """Return some of the names and how many others."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")
