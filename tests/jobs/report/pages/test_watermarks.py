"""Where each file ends, on a scale that no wild value squeezes."""

from __future__ import annotations

from jobs.report.pages.watermarks import offset_marks
from schemas.rows import Checkpoint
from schemas.start_effect import LedgerState, WrittenFile
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter
from tests.support.texts.pages import page_of


def test_a_wild_value_does_not_squeeze_the_scale() -> None:
    outcome = samples.damaged()
    effect = outcome.effect
    alter(outcome, effect=None)
    alter(outcome, checkpoint=Checkpoint(1 << 60, 0, samples.START_MS, confirm_phy_offset=1 << 60))
    assert [m.last for m in offset_marks(outcome)] == [2048, 1924, 0, 1 << 60]
    alter(outcome, effect=effect)
    page = page_of(outcome)
    assert "1,152,921,504,606,846,976 (beyond the log)" in page.text
    assert "checkpoint: ConsumeQueues flushed up tonot set" in page.text
    places = [float(c["cx"].rstrip("%")) for c in page.all("circle") if "cx" in c and "%" in c["cx"]]
    assert places and all(0 <= place <= 100 for place in places)


def test_a_dledger_log_ends_where_its_entries_end_not_where_they_are_committed() -> None:
    outcome = samples.damaged()
    ledger = LedgerState(0, 9, 1, -1, -1, 0, (WrittenFile(f"{1024:020d}", 900),), ())
    samples.start_changed(outcome, truncate_at=0, ledger=ledger)
    (cut,) = [m for m in offset_marks(outcome) if "the cut" in m.words]
    assert cut.last == 1924
    assert "1,924" in page_of(outcome).text and "beyond the cut" not in page_of(outcome).text
