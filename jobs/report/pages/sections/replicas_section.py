"""The part of a store's page that compares it with the other copies of its log."""

from __future__ import annotations

from jobs.report.pages.page import View
from jobs.report.texts.words.replicas_words import choice_words, config_words, lack_words, pair_words, rejoin_words
from schemas.rows import AuditOutcome

MAX_ROWS = 100


def replicas_view(outcome: AuditOutcome) -> View:
    """Return the data of replicas.html.

    outcome: one with `replicas`.
    """
    group = outcome.replicas
    choice = choice_words(group)
    pairs = [pair for pair in group["pairs"] if outcome.name in (pair["left"], pair["right"])]
    lacks = [lack for lack in group["lacks"] if lack["store"] == outcome.name]
    return {
        "choice": choice[:1].upper() + choice[1:],
        "stores": group["copies"],
        "pairs": [words for pair in pairs[:MAX_ROWS] for words in (pair_words(pair), *rejoin_words(pair))],
        "of_pairs": len(pairs),
        "lacks": list(lack_words(group, outcome.name))[:MAX_ROWS],
        "config": list(config_words(group, outcome.name))[:MAX_ROWS],
        "problems": group["problems"][:MAX_ROWS],
        "parts": [{"holder": lack["holder"], **part} for lack in lacks for part in lack["ranges"]],
    }
