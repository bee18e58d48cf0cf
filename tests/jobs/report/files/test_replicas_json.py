"""replicas.json: every group once."""

from __future__ import annotations

import json
from dataclasses import replace

from jobs.report.files.replicas_json import groups_of
from tests.support import samples


def test_a_group_is_told_once_however_many_copies_it_has() -> None:
    one = samples.behind(samples.clean())
    groups = groups_of([one, replace(one, name="other"), samples.damaged()])
    assert groups == [one.replicas] and json.loads(json.dumps(groups)) == groups
    assert groups_of([samples.clean()]) == []
