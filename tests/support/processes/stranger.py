"""Another user of this machine, who asks Spark's ports: knows Spark's protocol and no secret. Imports nothing of the project."""

from __future__ import annotations

import socket
import struct

_CHUNK_REQUEST, _CHUNK, _REQUEST, _ANSWER = 0, 1, 3, 4  # types of messages (org.apache.spark.network.protocol.Message.Type)
_OPEN_BLOCKS = 0  # of org.apache.spark.network.shuffle.protocol.BlockTransferMessage.Type


def block_of(port: int, name: str) -> bytes:
    """The bytes of one of Spark's blocks as its block manager sends them; b"" if it does not."""
    with socket.create_connection(("127.0.0.1", port), 10) as line:
        asked = struct.pack(">b", _OPEN_BLOCKS) + _text("app") + _text("driver") + struct.pack(">i", 1) + _text(name)
        _send(line, struct.pack(">bqi", _REQUEST, 1, len(asked)), asked)
        kind, answer = _received(line)
        if kind != _ANSWER:
            return b""
        stream, chunks = struct.unpack_from(">qi", answer, 13)  # after the request's number, a length and a type
        if not chunks:
            return b""
        _send(line, struct.pack(">bqi", _CHUNK_REQUEST, stream, 0), b"")
        kind, answer = _received(line)
        return answer[12:] if kind == _CHUNK else b""


def refusal(port: int) -> str:
    """What an RPC port says to a message of no meaning."""
    with socket.create_connection(("127.0.0.1", port), 10) as line:
        _send(line, struct.pack(">bqi", _REQUEST, 1, 4), b"what")
        return _received(line)[1].decode("latin-1")


def _text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def _send(line: socket.socket, header: bytes, body: bytes) -> None:
    line.sendall(struct.pack(">q", 8 + len(header) + len(body)) + header + body)


def _received(line: socket.socket) -> tuple[int, bytes]:
    """(type, all after it) of one message; -1 where the line ends."""
    try:
        with line.makefile("rb") as file:
            length = file.read(8)
            if len(length) < 8:
                return -1, b""
            message = file.read(struct.unpack(">q", length)[0] - 8)
            return message[0], message[1:]
    except OSError:
        return -1, b""
