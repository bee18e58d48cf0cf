"""Settings under which a broker harms what it writes itself, whatever store it starts on. A repair keeps a log from them once;
what is written later is as much at risk as before.

Source: MessageDecoder.checkMessageAndReturnSize, CommitLog.asyncPutMessage (5.0.0 to 5.5.0); docs/pitfalls.md C14, C15.
DLedgerServer.handleAppend throws without a group (DLedger 0.2.2 to 0.3.2).
"""

from __future__ import annotations

from collections.abc import Mapping

from store_io.broker.releases import BrokerRules


def unsafe_settings(rules: BrokerRules, conf: Mapping[str, str]) -> list[str]:
    """Return a sentence on each line to change in broker.conf before new messages come, with the reason.

    conf: its keys and values with their spaces: a broker takes "true " for false (MixAll.properties2Object).
    """
    found = []
    writes = rules.value("brokerRole") != "SLAVE"  # a slave's records are its master's, byte for byte
    if writes and rules.verify_property_crc and rules.check_crc and conf.get("enabledAppendPropCRC", "").lower() != "true":
        found.append(
            "Set forceVerifyPropCRC=false, or enabledAppendPropCRC=true: as it is, each start cuts all that the broker has"
            " written since the one before"
        )
    if writes and rules.dup_info:
        found.append(
            "Set duplicationEnable=false, unless something else writes this log: as it is, the broker gives new messages no queue"
            " offset, so that consumers do not get them, and a start cuts those without DUP_INFO"
        )
    if rules.settings["enableDLegerCommitLog"].origin == "broker.conf" and rules.value("enableDLegerCommitLog"):
        if "dLegerGroup" not in conf:
            found.append("Add the line dLegerGroup=...: as it is, the broker refuses each new message")
    return found
