"""Why an audit is not complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass
class Shortcomings:
    """What kept an audit from all that was asked.

    sentences: what went wrong.  on_purpose: what was left out on request or at the time limit.
    broken: something that a broker would read is unknown, so nothing is predicted.  failed: reads that another try may do, path
    to sentence.
    """

    sentences: list[str] = field(default_factory=list)
    on_purpose: list[str] = field(default_factory=list)
    broken: bool = False
    failed: dict[str, str] = field(default_factory=dict)

    def add_new(self, sentences: Iterable[str]) -> None:
        """Add those that are not there yet."""
        self.sentences += [sentence for sentence in sentences if sentence not in self.sentences]

    def add_failed(self, failed: Mapping[str, str]) -> None:
        """Add the failed reads of files of which nothing is said yet: each sentence about a file begins with its path."""
        told = {sentence.partition(": ")[0] for sentence in self.sentences} if failed else set()
        for path, sentence in failed.items():
            self.failed.setdefault(path, sentence)
            if told.isdisjoint((path, sentence.partition(": ")[0])):
                self.cannot_read(sentence)

    def cannot_read(self, sentence: str) -> None:
        """What a broker would read is unknown here: the rest is audited, and nothing is predicted."""
        self.broken = True
        self.sentences.append(sentence)
