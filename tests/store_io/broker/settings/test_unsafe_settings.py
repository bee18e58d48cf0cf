"""Settings that harm what a broker writes from now on."""

from __future__ import annotations

import pytest

from store_io.broker.releases import Setting, broker_rules
from store_io.broker.settings.unsafe_settings import unsafe_settings

FORCED, DOUBLED = {"forceVerifyPropCRC": True}, {"duplicationEnable": True}


@pytest.mark.parametrize(
    ("release", "settings", "conf", "said"),
    [
        ("5.4.0", {}, {}, []),
        ("5.4.0", FORCED, {}, ["forceVerifyPropCRC=false"]),
        ("5.4.0", FORCED, {"enabledAppendPropCRC": "TRUE"}, []),
        ("5.4.0", FORCED, {"enabledAppendPropCRC": "true "}, ["forceVerifyPropCRC=false"]),
        ("5.4.0", {**FORCED, "checkCRCOnRecover": False}, {}, []),
        ("5.1.4", FORCED, {}, []),  # which does not know it
        ("5.1.4", DOUBLED, {}, ["duplicationEnable=false"]),
        ("5.1.4", {**DOUBLED, "brokerRole": "SLAVE"}, {}, []),
        ("4.9.8", DOUBLED, {}, []),
        ("5.5.0", {**FORCED, **DOUBLED}, {}, ["forceVerifyPropCRC=false", "duplicationEnable=false"]),
    ],
)
def test_what_is_to_be_changed(release: str, settings: dict[str, object], conf: dict[str, str], said: list[str]) -> None:
    rules = broker_rules(release, {key: Setting(value, "broker.conf") for key, value in settings.items()})
    found = unsafe_settings(rules, conf)
    assert len(found) == len(said) and all(part in sentence for part, sentence in zip(said, found, strict=True))


@pytest.mark.parametrize(
    ("origin", "conf", "said"), [("broker.conf", {}, 1), ("broker.conf", {"dLegerGroup": ""}, 0), ("inferred", {}, 0)]
)
def test_a_dledger_broker_without_a_group_refuses_new_messages(origin: str, conf: dict[str, str], said: int) -> None:
    rules = broker_rules("5.3.3", {"enableDLegerCommitLog": Setting(True, origin)})
    assert ["dLegerGroup" in sentence for sentence in unsafe_settings(rules, conf)] == [True] * said
