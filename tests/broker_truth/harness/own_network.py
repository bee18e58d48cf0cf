"""A function run in a process that has a network of its own: loopback and nothing else.

DLedger and replication listen on all interfaces; in there nobody else can connect to them. Linux alone can do this, and not
every machine allows it: `allowed` says.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import multiprocessing
import os
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import pytest

Result = TypeVar("Result")

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP


def run(function: Callable[..., Result], *arguments: Any) -> Result:
    """What `function` gives, called in there with these arguments; all of them picklable. Raises RuntimeError with its trace."""
    context = multiprocessing.get_context("spawn")  # a fresh process: a namespace cannot be left, nor entered by threads
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_inside, args=(theirs, function, arguments))
    process.start()
    theirs.close()
    try:
        worked, answer = ours.recv()
    except EOFError:
        worked, answer = False, "the process in its own network ended without an answer"
    process.join()
    if not worked:
        raise RuntimeError(answer)
    return answer  # type: ignore[no-any-return]


@functools.cache
def allowed() -> str:
    """Empty where `run` works here, else the reason why not."""
    if sys.platform != "linux":
        return "only Linux has network namespaces"
    try:
        run(os.getpid)
    except RuntimeError as problem:
        return f"no network namespace here: {str(problem).strip().splitlines()[-1]}"
    return ""


def needed() -> None:
    """Skip the test where `run` does not work here."""
    if reason := allowed():
        pytest.skip(reason)


def _inside(answer: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        _enter()
        answer.send((True, function(*arguments)))
    except BaseException:
        answer.send((False, traceback.format_exc()))


def _enter() -> None:
    user, group = os.getuid(), os.getgid()
    flags = _CLONE_NEWNET if user == 0 else _CLONE_NEWNET | _CLONE_NEWUSER
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(flags):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if flags & _CLONE_NEWUSER:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        (now,) = struct.unpack_from("H", fcntl.ioctl(any_socket, _GET_FLAGS, request), 16)
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", now | _UP))
