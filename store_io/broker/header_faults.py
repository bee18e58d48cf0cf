"""Values in a message's header that no release writes, and what they change for whoever reads the message.

No checksum covers the header and no recovery looks at these fields. Source: MessageSysFlag, CompressionType, CommitLog
.asyncPutMessage (the CRC of no body is 0); what consumers do with them: MessageDecoder.decode, PullAPIWrapper.processPullResult.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.layouts import commitlog_layout as layout

KNOWN_FLAGS = 0x7FF
BATCH_FLAGS = layout.SYS_NEED_UNWRAP | layout.SYS_INNER_BATCH
MAX_COMPRESSION = 3
LZ4_HEAD, ZSTD_HEAD = b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd"
HEAD_BYTES = 4  # of a body, that show how it is compressed

MAX_PORT = 65535

BODY_CRC, SYS_FLAG, BODY_LENGTH, PROPERTIES_LENGTH = "body CRC", "system flags", "body length", "properties length"
BORN_HOST, STORE_HOST = "born host", "store host"


@dataclass(frozen=True, slots=True)
class HeaderFault:
    """A fault of a message's header.

    field: one of the names above.
    unreadable: consumers do not get the message as it was sent.
    """

    field: str
    text: str
    unreadable: bool = False


def compressed_as(head: bytes, kind: int) -> bool:
    """Say whether a body that begins with `head` can be of that compression type."""
    if kind == 1:
        return head == LZ4_HEAD
    if kind == 2:
        return head == ZSTD_HEAD
    return kind <= MAX_COMPRESSION and len(head) > 1 and head[0] & 15 == 8 and (head[0] << 8 | head[1]) % 31 == 0


def header_faults(
    sys_flag: int, body_length: int, properties_length: int, body_crc: int, head: bytes, inner: bool, ports: tuple[int, int]
) -> list[HeaderFault]:
    """Return the faults in the header of a message that passes every check.

    head: the body's first bytes.
    inner: it has INNER_NUM; queues in RocksDB give a batch no INNER_BASE, and consumers need none.
    ports: of its born host and of its store host.
    """
    found = []
    for name, length in ((BODY_LENGTH, body_length), (PROPERTIES_LENGTH, properties_length)):
        if length < 0:
            found.append(HeaderFault(name, f"a {name} of {length}; every reader takes it for 0, which it must have been"))
    for name, port in zip((BORN_HOST, STORE_HOST), ports, strict=True):
        if not 0 <= port <= MAX_PORT:
            text = f"a {name} with port {port}, which no address has: consumers do not get it, nor what they pull after it"
            found.append(HeaderFault(name, text, unreadable=True))
    if body_length <= 0 and body_crc:
        found.append(HeaderFault(BODY_CRC, "a checksum of a body that is not there; no release looks at it"))
    if sys_flag & ~KNOWN_FLAGS:
        found.append(HeaderFault(SYS_FLAG, "system flags that no release sets; none reads them"))
    kind = (sys_flag & layout.SYS_COMPRESSION_MASK) >> layout.SYS_COMPRESSION_SHIFT
    fits = compressed_as(head, kind)
    if sys_flag & layout.SYS_COMPRESSED:
        if body_length <= 0:
            found.append(HeaderFault(SYS_FLAG, "the flag of a compressed body, and no body"))
        elif not fits:
            text = "the flag of a compressed body, and a body that is not: consumers fail on it, and on what they pull with it"
            found.append(HeaderFault(SYS_FLAG, text, unreadable=True))
    elif kind:
        text = "a compression type without the flag of a compressed body"
        found.append(HeaderFault(SYS_FLAG, f"{text}: consumers take the compressed bytes as they are" if fits else text, fits))
    batch = sys_flag & BATCH_FLAGS
    if batch == layout.SYS_NEED_UNWRAP:
        text = "the flag of a batch to unwrap without that of a batch"
        found.append(HeaderFault(SYS_FLAG, f"{text}: consumers do not unwrap it" if inner else text, inner))
    elif batch and not inner:
        text = "the flag of a batch in one record, and no INNER_NUM"
        whole = batch == BATCH_FLAGS
        found.append(HeaderFault(SYS_FLAG, f"{text}: consumers fail to unwrap it" if whole else text, whole))
    return found
