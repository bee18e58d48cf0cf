"""Compiled code, declared here and made when it is first called. To load numba and LLVM's compiler takes longer than a small
question takes to be answered.

A function that is `kept` is compiled by numba, which keeps its code on disk. In a process that is to answer one question
(`start_quickly`) object files do instead: one for each set of argument types, beside numba's own files, and handed to LLVM's
loader without numba. Each call then costs some ten microseconds more, so audits, which call often, do not take them, but where
they came with the packages (`code_files.BROUGHT`): nothing else is compiled there yet. Where an object file cannot be had, numba
does it. What compiled code calls, `Deferred` things, takes its real form when something is compiled.

The operations take plain addresses. The caller makes sure that every byte there may be read: nothing is checked here. A caller
has no addresses: it gives a kept function the array for a parameter that is declared as an `Address`, and the call holds the
array until it has ended. So no other thread can free what compiled code reads.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from functools import cache
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from store_io.base.compiled import object_code
from store_io.base.compiled.code_files import (
    DIGEST_BYTES,
    CodeFile,
    brought_folder,
    code_folder,
    numba_version,
    read_code,
    source_of,
    takes_files,
    write_code,
)
from store_io.base.crc.checksum import crc32, native_engine
from store_io.base.locks import ProcessLock, made_once


def _can_compile() -> bool:
    try:
        return importlib.util.find_spec("numba") is not None and not int(os.environ.get("NUMBA_DISABLE_JIT") or 0)
    except ValueError:  # it is shut out
        return False


if not _can_compile():
    raise ImportError("there is no numba, or it is set not to compile")

FORM = 1  # of an object file's name and head; raised where they change, or how a compiled function is called
CRC_SYMBOL, FREE_SYMBOL = "store_auditor_crc32", "store_auditor_free"
OFFERED = frozenset({CRC_SYMBOL, FREE_SYMBOL, "memcpy", "memmove", "memset"})  # what an object file may ask of the process
_MACHINE = f"{__package__}.machine"  # loads numba
_lock = ProcessLock()


# ---- declarations ----------------------------------------------------------------------------------------------------


class Deferred:
    """Something that compiled code uses, made when code is compiled."""

    def __init__(self, make: Callable[[], Any]):
        self.made = made_once()(make)  # it, as numba knows it


def _machine() -> Any:
    return importlib.import_module(_MACHINE)


def _operation(name: str) -> Any:
    return Deferred(lambda: getattr(_machine(), name))


# From a store's bytes: big-endian, into an int64.
load_u8, load_i8, load_i16 = _operation("load_u8"), _operation("load_i8"), _operation("load_i16")
load_i32, load_i64, load_word = _operation("load_i32"), _operation("load_i64"), _operation("load_word")
# Our own arrays, in the machine's order.
peek_i32, peek_i64, peek_word = _operation("peek_i32"), _operation("peek_i64"), _operation("peek_word")
poke_u8, poke_i32, poke_i64 = _operation("poke_u8"), _operation("poke_i32"), _operation("poke_i64")
# See `machine`.
prefetch, lowest_bit, count_bits = _operation("prefetch"), _operation("lowest_bit"), _operation("count_bits")
block_masks, unequal_mask = _operation("block_masks"), _operation("unequal_mask")
odd_mask, equal_mask, copy_bytes = _operation("odd_mask"), _operation("equal_mask"), _operation("copy_bytes")
hash_of_last = _operation("hash_of_last")
masked_crc32 = _operation("masked_crc32")


def compiled_helper(inline: bool = True) -> Callable[[Callable[..., Any]], Any]:
    """Declare a function that is only called from compiled code."""

    def declared(function: Callable[..., Any]) -> Any:
        return Deferred(lambda: _machine().helper_of(_with_real_names(function), inline))

    return declared


def kept(*modules: ModuleType) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function at its first call and keep its code on disk, if there is a place for it.

    modules: those whose constants and helpers the code holds, besides the function's own module and this one. Their sources
    become part of its name, so that code is forgotten when one of them changes.
    """

    def declared(function: Callable[..., Any]) -> Any:
        return Kept(function, modules)

    return declared


def _with_real_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, after what it calls has taken its real form in its module."""
    names = function.__globals__
    for name in _names(function.__code__):
        if isinstance(names.get(name), Deferred):
            names[name] = names[name].made()
    return function


def _names(code: CodeType) -> set[str]:
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


# ---- functions that are called ---------------------------------------------------------------------------------------


Address = int  # of a parameter of a kept function: it is called with an array, and its code gets where the first byte lies
_at = ctypes.c_char.from_buffer


def _address_of(array: np.ndarray) -> int:
    """Give the address of the array's first byte, which is good as long as something holds the array.

    For an array of plain numbers this takes a third of the time that `array.ctypes.data` takes (1.5 µs; ten addresses are needed
    for each batch of messages). For an empty or structured array it takes longer.
    """
    try:
        return ctypes.addressof(_at(array.data))
    except (TypeError, ValueError):  # it is read-only, empty, or not contiguous
        if not array.flags.c_contiguous:
            raise ValueError("compiled code takes the address of a contiguous array only") from None
        return int(array.ctypes.data)


class _Types(NamedTuple):
    """Arguments' types: equal ones run the same code. None in `of`: one that object files do not take."""

    of: tuple[Any, ...]

    @property
    def text(self) -> str:
        return repr([str(kind) if kind is None or isinstance(kind, str) else (str(kind[0]), *kind[1:]) for kind in self.of])


def _type_of(value: Any) -> Any:
    kind = type(value)
    if kind is int or kind is np.int64:
        return "int64" if int(value).bit_length() < 64 else None
    if kind is bool:
        return "bool"
    if kind is np.ndarray:
        flags = value.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return value.dtype, value.ndim, order, flags.writeable, flags.aligned
    return None


class Kept(Deferred):
    """A compiled function as Python calls it."""

    def __init__(self, function: Callable[..., Any], modules: Sequence[ModuleType]):
        super().__init__(self._by_numba)
        self.function, self.modules = function, modules
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self._code: dict[tuple[Any, ...], Callable[..., Any]] = {}
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        self._addresses = [i for i, name in enumerate(names) if function.__annotations__.get(name) == "Address"]

    def __call__(self, *given: Any) -> Any:
        arguments = list(given)  # `given` holds the arrays until the call has ended
        for place in self._addresses:
            arguments[place] = _address_of(given[place])
        if not takes_files() and not brought_folder():
            return self.by_dispatcher(*arguments)
        of = tuple(map(_type_of, arguments))
        code = self._code.get(of)
        if code is None:
            with _lock.own:
                code = self._code[of] = self._code.get(of) or self._found(_Types(of), arguments)
        return code(*arguments)

    def _found(self, types: _Types, arguments: Sequence[Any]) -> Callable[..., Any]:
        name = "" if None in types.of else self._file_name(types)
        if not name:
            return self.by_dispatcher
        own = code_folder(self.function.__code__.co_filename) if takes_files() else ""
        for folder in filter(None, (brought_folder(), own)):
            if (code := read_code(os.path.join(folder, name))) is not None:
                return _linked(code, types, self)
        made = _machine().machine_code(_with_real_names(self.function), arguments) if own else None
        if made is None:
            return self.by_dispatcher
        code = CodeFile(made.symbol, made.result, made.code)
        write_code(os.path.join(own, name), code)
        return _linked(code, types, self)

    def _file_name(self, types: _Types) -> str:
        """Return the function's name for these types, and a digest of all else that decides its code: sources and machine.

        Empty if a source is not known.
        """
        sources = [source_of(self.function.__module__), *self._other_sources()]
        if not all(sources):
            return ""
        kind = hashlib.blake2b(repr((self.__module__, self.__name__, types.text)).encode(), digest_size=8).hexdigest()
        makers = repr((FORM, numba_version(), object_code.this_machine())).encode()
        digest = hashlib.blake2b(b"\0".join([*sources, makers]), digest_size=DIGEST_BYTES)
        return f"{self.__name__.strip('_')}-{kind}-{digest.hexdigest()}.object"

    def _other_sources(self) -> list[bytes]:
        """Return the sources of which its code is made besides its own module."""
        return [source_of(name) for name in (__name__, _MACHINE, *(module.__name__ for module in self.modules))]

    def by_dispatcher(self, *arguments: Any) -> Any:
        """Call it as numba does."""
        try:
            return self.made()(*arguments)
        except OSError:  # what numba keeps can be neither read nor written
            self._made = _machine().dispatcher_of(self.function, False)
            return self._made(*arguments)

    def _by_numba(self) -> Any:
        """Return the function as numba loads and calls it."""
        function = _with_real_names(self.function)
        own = hashlib.blake2b(b"".join(self._other_sources()), digest_size=8)
        if "_" + own.hexdigest() not in function.__qualname__:
            function.__qualname__ += "_" + own.hexdigest()
        return _machine().dispatcher_of(function)


# ---- object files ----------------------------------------------------------------------------------------------------


@cache
def offer() -> None:
    """Give LLVM's loader the CRC-32 under a fixed name. So code from the disk finds whatever engine there is."""
    from llvmlite import binding

    binding.add_symbol(CRC_SYMBOL, _CRC_ADDRESS)
    binding.add_symbol(FREE_SYMBOL, ctypes.cast(_free, ctypes.c_void_p).value)


def _linked(found: CodeFile, types: _Types, kept: Kept) -> Callable[..., Any]:
    """Return the function of an object file, to be called as numba's compiled code is.

    Its arguments are a place for the result, one for an exception, then each argument, arrays in their parts.
    """
    offer()
    kinds: list[Any] = [ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p]
    for kind in types.of:
        if kind == "int64":
            kinds.append(ctypes.c_int64)
        elif kind == "bool":
            kinds.append(ctypes.c_uint8)
        else:
            numbers = 2 * kind[1]
            kinds += [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
            kinds += [ctypes.c_int64] * numbers
    function = ctypes.CFUNCTYPE(*kinds)(object_code.address_of(found.symbol, found.code))
    count = {"none": 0, "int64": 1}.get(found.result) if not found.result.isdigit() else int(found.result)
    room = ctypes.c_int64 * max(1, count or 0)

    def call(*arguments: Any) -> Any:
        words: list[Any] = []
        for value in arguments:
            if isinstance(value, np.ndarray):
                words += (None, None, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
            else:
                words.append(value)
        result, problem = room(), ctypes.c_void_p()
        if function(ctypes.addressof(result), ctypes.addressof(problem), *words):
            return kept.by_dispatcher(*arguments)  # it raises; numba knows what
        if found.result == "none":
            return None
        return result[0] if found.result == "int64" else tuple(result)

    return call


# ---- CRC-32 ----------------------------------------------------------------------------------------------------------


@ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)
def _python_crc32(value: int, address: int | None, length: int) -> int:
    """Compute a CRC-32 if no library offers a C function. It is right, but each call goes through the interpreter."""
    return crc32((ctypes.c_char * length).from_address(address or 0), value)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _free(_address: int | None) -> None:
    """Never called: compiled code owns no array."""


_engine = native_engine()
_CRC_ADDRESS = _engine.address if _engine else ctypes.cast(_python_crc32, ctypes.c_void_p).value
