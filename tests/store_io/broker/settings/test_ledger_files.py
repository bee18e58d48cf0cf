"""Lines of broker.conf over which a broker with a DLedger log ends before it loads its store."""

from __future__ import annotations

import pytest

from schemas.advice import RefusalKind, Step
from store_io.broker.releases import Setting, broker_rules
from store_io.broker.settings.ledger_files import settings_refusal

WHOLE = {"enableDLegerCommitLog": True, "dLegerSelfId": "n0", "dLegerPeers": "n0-127.0.0.1:20911"}


def refused(release: str = "5.3.3", origin: str = "broker.conf", **settings: object) -> RefusalKind | None:
    rules = broker_rules(release, {key: Setting(value, origin) for key, value in {**WHOLE, **settings}.items()})
    found = settings_refusal(rules)
    return found.kind if found is not None else None


@pytest.mark.parametrize("self_id", ["n0", "a12", "n-1"])
def test_a_letter_and_a_number_name_a_node(self_id: str) -> None:
    peers = f"{self_id}-127.0.0.1:1"
    expected = RefusalKind.LEDGER_PEERS if "-" in self_id else None  # its own peers are split at the first "-"
    assert refused(dLegerSelfId=self_id, dLegerPeers=peers) == expected


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, None),
        ({"enableDLegerCommitLog": False, "dLegerSelfId": ""}, None),
        ({"dLegerSelfId": ""}, RefusalKind.LEDGER_LINE_MISSING),
        ({"dLegerPeers": ""}, RefusalKind.LEDGER_LINE_MISSING),
        ({"dLegerSelfId": "n"}, RefusalKind.LEDGER_SELF_ID),
        ({"dLegerSelfId": "broker0"}, RefusalKind.LEDGER_SELF_ID),
        ({"dLegerPeers": "n1-127.0.0.1:1"}, RefusalKind.LEDGER_PEERS),
        ({"dLegerPeers": "n1-127.0.0.1:1;n0-127.0.0.1:2;"}, None),
        ({"dLegerPeers": "n0-127.0.0.1"}, RefusalKind.LEDGER_PEERS),
        ({"dLegerPeers": "n0-127.0.0.1:port"}, RefusalKind.LEDGER_PEERS),
        ({"dLegerPeers": "n0"}, RefusalKind.LEDGER_PEERS),
    ],
)
def test_lines_that_end_the_process(settings: dict[str, object], kind: RefusalKind | None) -> None:
    assert refused(**settings) == kind  # type: ignore[arg-type]
    assert refused("4.8.0", **settings) == kind  # type: ignore[arg-type]
    assert refused(origin="inferred", **settings) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("release", "kind"),
    [("4.9.8", None), ("5.0.0", None), ("5.1.0", None), ("5.1.1", RefusalKind.LEDGER_AND_CONTROLLER),
     ("5.5.1", RefusalKind.LEDGER_AND_CONTROLLER)],
)  # fmt: skip
def test_both_modes_together(release: str, kind: RefusalKind | None) -> None:
    assert refused(release, enableControllerMode=True) == kind


def test_a_missing_line_is_to_be_added_and_a_wrong_one_corrected() -> None:
    for settings, step in (({"dLegerPeers": ""}, Step.ADD_LINE), ({"dLegerSelfId": "n"}, Step.CORRECT_LINE)):
        found = settings_refusal(broker_rules("5.3.3", {k: Setting(v, "broker.conf") for k, v in {**WHOLE, **settings}.items()}))
        assert found is not None and found.correct_line is not None and found.correct_line.step == step
