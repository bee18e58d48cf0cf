"""Values that are pickled by their fields come back whole, whatever fields they get."""

from __future__ import annotations

import pickle
from dataclasses import fields
from typing import Any

import pytest

from schemas.rows import Finding, MappedFile, PlanStep, QueueEdges
from schemas.start_effect import BrokerState, IndexEnds, Setting, WrittenFile


@pytest.mark.parametrize("kind", [MappedFile, Finding, PlanStep, QueueEdges, Setting, WrittenFile, IndexEnds, BrokerState])
def test_every_field_comes_back(kind: Any) -> None:
    value = kind(*(f"value of {field.name}" for field in fields(kind)))
    back = pickle.loads(pickle.dumps(value))
    assert type(back) is kind and back == value and len(value.__reduce__()[1]) == len(fields(kind))
