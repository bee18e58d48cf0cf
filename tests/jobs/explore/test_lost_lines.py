"""The lines of a whole store, as a command beside query and export gets them."""

from __future__ import annotations

import json
from pathlib import Path

from jobs.explore.lost_lines import lost_lines
from store_io.explore.redaction import Redaction
from tests.support import product
from tests.support.lost_messages import damaged_store


def test_the_lines_are_the_lost_messages_in_the_order_of_the_log(tmp_path: Path) -> None:
    root, conf, at = damaged_store(tmp_path / "store")
    done = product.audit(root, "5.3.3", conf)
    found = [json.loads(text) for text in lost_lines(done.audit)]
    assert [line["phy_offset"] for line in found] == at[12:] and {line["lost"] for line in found} == {"cut"}
    assert [line["body_text"] for line in found] == [f"body {n}" * 9 for n in range(12, 20)]
    hidden = "".join(lost_lines(done.audit, Redaction("hide")))
    assert "body 12" not in hidden and hidden.count("\n") == 8
