"""The digest of a file, as plans and the `segments` table have it."""

from __future__ import annotations

import hashlib

import numpy as np

from store_io.base.crc import checksum
from store_io.base.errors import StoreChanged
from store_io.source.byte_file import ByteFile

DIGEST_PIECE_BYTES = 1 << 20
_STEP_BYTES = 4 << 20  # of a file that is read for its digest alone
FOLDED_BYTES = 1 << 44  # 4 bytes of each MiB are hashed, so as many zeros take 0.1 s

_ZEROS = np.zeros(DIGEST_PIECE_BYTES, np.uint8)
_ZERO_CRCS = checksum.crc32(_ZEROS.data).to_bytes(4, "big") * (1 << 16)


class PieceDigest:
    """CRC-32s of 1 MiB pieces folded into one BLAKE2b: as cheap as a CRC, and a changed byte is noticed."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._crc = 0
        self._filled = 0

    def feed(self, data: np.ndarray) -> None:
        """Take the next bytes, in order."""
        at = 0
        while at < len(data):
            take = min(len(data) - at, DIGEST_PIECE_BYTES - self._filled)
            self._crc = checksum.array_crc32(data[at : at + take], self._crc)
            at += take
            self._filled += take
            if self._filled == DIGEST_PIECE_BYTES:
                self._flush()

    def feed_zeros(self, count: int) -> None:
        """Feed the next `count` bytes, all zero, without having them; the same as `feed` of them up to `FOLDED_BYTES`.

        No disk holds a longer stretch as data: only the length of the rest counts.
        """
        if self._filled:
            take = min(count, DIGEST_PIECE_BYTES - self._filled)
            self.feed(_ZEROS[:take])
            count -= take
        pieces, rest = divmod(count, DIGEST_PIECE_BYTES)
        folded = max(0, pieces - FOLDED_BYTES // DIGEST_PIECE_BYTES)
        if folded:
            self._hash.update(b"zeros" + folded.to_bytes(8, "big"))
            pieces -= folded
        while pieces:
            take = min(pieces, len(_ZERO_CRCS) // 4)
            self._hash.update(_ZERO_CRCS[: 4 * take])
            pieces -= take
        self.feed(_ZEROS[:rest])

    def copy(self) -> PieceDigest:
        """Return a digest of the same bytes so far. Bytes that either is fed later are its own."""
        twin = PieceDigest()
        twin._hash, twin._crc, twin._filled = self._hash.copy(), self._crc, self._filled
        return twin

    def _flush(self) -> None:
        self._hash.update(self._crc.to_bytes(4, "big"))
        self._crc = self._filled = 0

    def text(self) -> str:
        """Return the digest of everything fed so far, in hexadecimal."""
        if self._filled:
            self._flush()
        return self._hash.hexdigest()


def file_digest(file: ByteFile, end: int, size: int) -> str:
    """Return the digest of a file of that size with zeros from `end` on. Holes are not read. Raises StoreError."""
    digest, at = PieceDigest(), 0
    while at < end:
        data_at = min(file.next_data(at), end)
        if data_at > at:
            digest.feed_zeros(data_at - at)
            at = data_at
            continue
        data = np.frombuffer(file.read(at, min(_STEP_BYTES, end - at)), np.uint8)
        if not len(data):
            raise StoreChanged.in_size(file.path, file.size, size)
        digest.feed(data)
        at += len(data)
    digest.feed_zeros(size - end)
    return digest.text()
