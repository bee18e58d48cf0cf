"""Hides or hashes the texts that producers put into messages before they leave the store's own copy.

Topics, queues, offsets, sizes and times stay: they show a store's shape, not what its messages say.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from store_io.base.errors import UsageError

NONE, HIDE, HASH = "none", "hide", "hash"
MODES = (HIDE, HASH)
HIDDEN = "(hidden)"
TOKEN_DIGITS = 16

TEXT_COLUMNS = frozenset({"keys", "key", "unique_key", "msg_id", "tags", "born_host", "body_text"})
"""Columns that hold what a producer or its users chose, or its address. A unique key, and with it the id that clients show,
is made of the producer's address."""
BODY_COLUMNS = frozenset({"body"})
MAP_COLUMNS = frozenset({"properties"})
CHECK_COLUMNS = frozenset({"tags_code", "ext_tags_code", "body_crc"})
"""Unkeyed sums of what is concealed: with a list of words the tag is found at once, and so is a short body."""

OPEN_PROPERTIES = frozenset(
    "DELAY REAL_TOPIC REAL_QID WAIT TRAN_MSG PGROUP MIN_OFFSET MAX_OFFSET RETRY_TOPIC RECONSUME_TIME MAX_RECONSUME_TIMES "
    "CONSUME_START_TIME TRANSACTION_PREPARED_QUEUE_OFFSET TRANSACTION_CHECK_TIMES CHECK_IMMUNITY_TIME_IN_SECONDS CLUSTER "
    "INNER_NUM INNER_BASE INNER_MULTI_DISPATCH INNER_MULTI_QUEUE_OFFSET TIMER_DELIVER_MS TIMER_DELAY_SEC TIMER_DELAY_MS "
    "TIMER_OUT_MS TIMER_ENQUEUE_MS TIMER_DEQUEUE_MS TIMER_ROLL_TIMES TIMER_DEL_FLAG POP_CK DUP_INFO".split()
)
"""Properties that brokers and clients set for one another; their values say nothing of what is in a message."""


@dataclass(frozen=True)
class Redaction:
    """The way in which values of messages are shown.

    mode: NONE; HIDE: a value becomes "(hidden)"; HASH: a token that equal values share, and nothing else does.
    salt: the key of tokens: without it values cannot be tried; None: a new one.

    Tokens of two runs agree only under the same salt. A value that is not there stays null. Picklable.
    """

    mode: str = NONE
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False)

    def text(self, value: str | None) -> str | None:
        """Return a text as it may be shown."""
        if value is None or self.mode == NONE:
            return value
        return HIDDEN if self.mode == HIDE else self._token(value.encode("utf-8", "surrogatepass"))

    def data(self, value: bytes | None) -> bytes | None:
        """Return a body as it may be shown: nothing if it is hidden, its token's letters if hashed."""
        if value is None or self.mode == NONE:
            return value
        return None if self.mode == HIDE else self._token(value).encode("ascii")

    def properties(self, values: dict[str, str]) -> dict[str, str]:
        """Return properties with their names; values as they may be shown."""
        return {name: value if name in OPEN_PROPERTIES else self.text(value) or "" for name, value in values.items()}

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of one message with values as they may be shown."""
        if self.mode == NONE:
            return dict(row)
        return {name: self._value(name, value) for name, value in row.items()}

    def _value(self, name: str, value: Any) -> Any:
        if name in TEXT_COLUMNS:
            return self.text(value)
        if name in CHECK_COLUMNS:
            return None
        if name in BODY_COLUMNS:
            return self.data(value)
        if name in MAP_COLUMNS and value is not None:
            return self.properties(value)
        return value

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the same columns and types, values as they may be shown. Columns are known by their names."""
        if self.mode == NONE:
            return batch
        arrays = [self._column(field, column) for field, column in zip(batch.schema, batch.columns, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    def _column(self, field: pa.Field, column: pa.Array) -> pa.Array:
        if field.name in TEXT_COLUMNS:
            plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            coded = plain.dictionary_encode()
            shown = pa.array([self.text(value) for value in coded.dictionary.to_pylist()], pa.string())
            return pa.DictionaryArray.from_arrays(coded.indices, shown).cast(pa.string()).cast(field.type)
        if field.name in CHECK_COLUMNS:
            return pa.nulls(len(column), field.type)
        if field.name in BODY_COLUMNS:
            return pa.array([self.data(value) for value in column.to_pylist()], field.type)
        if field.name in MAP_COLUMNS:
            maps = [None if value is None else list(self.properties(dict(value)).items()) for value in column.to_pylist()]
            return pa.array(maps, field.type)
        return column

    def _token(self, value: bytes) -> str:
        return "#" + hmac.new(self.salt, value, hashlib.sha256).hexdigest()[:TOKEN_DIGITS]


def read_redaction(mode: str | None, salt: str | None = None) -> Redaction:
    """Return the redaction that an option asks for, None: nothing is hidden. salt: of HASH alone. Raises UsageError."""
    if mode is None:
        if salt is not None:
            raise UsageError("a salt goes with --redact hash")
        return Redaction(NONE, b"")
    if mode not in MODES:
        raise UsageError(f"--redact {mode!r}: {' or '.join(MODES)}")
    if salt is None:
        return Redaction(mode)
    if mode != HASH or not salt:
        raise UsageError("a salt goes with --redact hash, and is not empty")
    return Redaction(mode, hashlib.sha256(salt.encode("utf-8", "surrogateescape")).digest()[:16])
