"""The machine operations that numba lacks, and the compiler itself. Needs numba.

`native` has the same names for the modules that declare compiled code; this one is loaded where something is compiled.

All take plain addresses. The caller makes sure that every byte there may be read: nothing is checked here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import config, njit, typeof, types
from numba.core import cgutils
from numba.extending import intrinsic

from store_io.base.compiled.code_files import trusted
from store_io.base.compiled.native import CRC_SYMBOL, FREE_SYMBOL, OFFERED, offer
from store_io.base.compiled.object_code import target_machine

offer()

_intrinsic: Callable[..., Any] = intrinsic  # what it makes are functions of compiled code, with types that mypy cannot know
_declare: Callable[..., Any] = cgutils.get_or_insert_function
_memory_copy: Callable[..., Any] = cgutils.raw_memcpy
_type_of: Callable[..., Any] = typeof
_INT8, _INT32, _INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _load(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


def _integer_load(bits: int, order: str = "big", signed: bool = True) -> Any:
    kind = ir.IntType(bits)

    def load(typing_context: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = _load(builder, arguments[0], kind)
            if bits > 8 and order != sys.byteorder:
                value = builder.bswap(value)
            if bits == 64:
                return value
            return builder.sext(value, _INT64) if signed else builder.zext(value, _INT64)

        result = types.uint64 if bits == 64 and not signed else types.int64
        return result(types.int64), code

    return _intrinsic(load)


def _integer_store(bits: int) -> Any:
    kind = ir.IntType(bits)

    def store(typing_context: Any, address: Any, value: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = arguments[1] if bits == 64 else builder.trunc(arguments[1], kind)
            builder.store(value, builder.inttoptr(arguments[0], kind.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), code

    return _intrinsic(store)


# From a store's bytes: big-endian, into an int64.
load_u8 = _integer_load(8, signed=False)
load_i8 = _integer_load(8)
load_i16 = _integer_load(16)
load_i32 = _integer_load(32)
load_i64 = _integer_load(64)
load_word = _integer_load(64, "little", signed=False)  # 8 bytes in the order of their bits -> uint64

# Our own arrays, in the machine's order. Compiled code that holds an array counts references to it at every turn, which
# costs more than the work on a message; an address costs nothing.
peek_i32 = _integer_load(32, sys.byteorder)
peek_i64 = _integer_load(64, sys.byteorder)
peek_word = _integer_load(64, sys.byteorder, signed=False)  # -> uint64
poke_u8 = _integer_store(8)
poke_i32 = _integer_store(32)
poke_i64 = _integer_store(64)


@_intrinsic
def prefetch(typing_context: Any, address: Any) -> Any:
    """Ask for the cache line of any address, readable or not."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _INT8.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, _INT32, _INT32, _INT32])
        function = _declare(builder.module, kind, "llvm.prefetch.p0")
        read, keep, data = (ir.Constant(_INT32, number) for number in (0, 3, 1))
        builder.call(function, [builder.inttoptr(arguments[0], pointer), read, keep, data])
        return context.get_dummy_value()

    return types.void(types.int64), code


@_intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """Return the number of the lowest bit that is set in a uint64; 64 if none is."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), code


@_intrinsic
def block_masks(typing_context: Any, address: Any) -> Any:
    """Return four masks of the 64 bytes at `address`, each with one bit for each byte.

    They mark the bytes that are 1, that are 2, that are 0, that are 128 or more.
    """
    block = ir.VectorType(_INT8, 64)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = _load(builder, arguments[0], block)
        tests = [builder.icmp_unsigned("==", value, ir.Constant(block, [byte] * 64)) for byte in (1, 2, 0)]
        tests.append(builder.icmp_signed("<", value, ir.Constant(block, [0] * 64)))
        return context.make_tuple(builder, signature.return_type, [builder.bitcast(test, _INT64) for test in tests])

    result: Any = types.UniTuple  # numba has not typed it
    return result(types.uint64, 4)(types.int64), code


@_intrinsic
def unequal_mask(typing_context: Any, left: Any, right: Any) -> Any:
    """Return a bit for each of the 64 bytes at `left`: whether it differs from its counterpart at `right`."""
    block = ir.VectorType(_INT8, 64)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one, other = (_load(builder, address, block) for address in arguments)
        return builder.bitcast(builder.icmp_unsigned("!=", one, other), _INT64)

    return types.uint64(types.int64, types.int64), code


@_intrinsic
def odd_mask(typing_context: Any, address: Any) -> Any:
    """Return a bit for each of the 64 bytes at `address`. It is set for a byte that is 0, 1, 2, or 128 and more."""
    block = ir.VectorType(_INT8, 64)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        odd = builder.icmp_signed("<", _load(builder, arguments[0], block), ir.Constant(block, [3] * 64))
        return builder.bitcast(odd, _INT64)

    return types.uint64(types.int64), code


@_intrinsic
def equal_mask(typing_context: Any, address: Any, byte: Any) -> Any:
    """Return a bit for each of the 64 bytes at `address`: whether it is `byte`."""
    block = ir.VectorType(_INT8, 64)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wanted = _splat(builder, builder.trunc(arguments[1], _INT8), 64)
        return builder.bitcast(builder.icmp_unsigned("==", _load(builder, arguments[0], block), wanted), _INT64)

    return types.uint64(types.int64, types.int64), code


@_intrinsic
def count_bits(typing_context: Any, word: Any) -> Any:
    """Return how many bits are set in a uint64."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), code


@_intrinsic
def copy_bytes(typing_context: Any, target: Any, source: Any, count: Any) -> Any:
    """Copy `count` bytes from address `source` to address `target`; they do not overlap."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointers = [builder.inttoptr(address, _INT8.as_pointer()) for address in arguments[:2]]
        _memory_copy(builder, *pointers, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), code


@_intrinsic
def hash_of_last(typing_context: Any, end: Any, count: Any) -> Any:
    """String.hashCode of the `count` (0 to 16) ASCII bytes before address `end`; 32 bits of it count. Reads 16 bytes."""
    narrow, wide = ir.VectorType(_INT8, 16), ir.VectorType(_INT32, 16)
    powers = ir.Constant(wide, [pow(31, 15 - i, 1 << 32) for i in range(16)])
    lanes = ir.Constant(narrow, [16 - i for i in range(16)])

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        text = _load(builder, builder.sub(arguments[0], ir.Constant(_INT64, 16)), narrow)
        inside = builder.icmp_unsigned("<=", lanes, _splat(builder, builder.trunc(arguments[1], _INT8), 16))
        text = builder.select(inside, text, ir.Constant(narrow, [0] * 16))
        products = builder.mul(builder.zext(text, wide), powers)
        add = _declare(builder.module, ir.FunctionType(_INT32, [wide]), "llvm.vector.reduce.add.v16i32")
        return builder.zext(builder.call(add, [products]), _INT64)

    return types.int64(types.int64, types.int64), code


def _splat(builder: Any, value: Any, lanes: int) -> Any:
    vector = ir.VectorType(value.type, lanes)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(
        first, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(_INT32, lanes), [0] * lanes)
    )


def helper_of(function: Callable[..., Any], inline: bool) -> Any:
    """Compile a function that is only called from compiled code.

    It has no ways in from Python, which take a third of the time of a compilation, and no place on disk, because it lives in its
    caller's code. One that is to be inlined makes no arrays, and its caller holds those that it gets: who holds them is not
    counted again for each message.
    """
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": not inline}
    return njit(nogil=True, forceinline=inline, **options)(function)


def dispatcher_of(function: Callable[..., Any], keep: bool = True) -> Any:
    """Return the function for any arguments, compiled at its first call. numba keeps its code on disk, if there is a place for
    it.
    """
    folder = getattr(config, "CACHE_DIR", "")
    keep = keep and (not folder or trusted(folder))
    try:
        return njit(nogil=True, cache=keep)(function)
    except RuntimeError:  # nowhere to write to
        return njit(nogil=True)(function)


@dataclass(frozen=True)
class MachineCode:
    """An object file.

    symbol: the function in it.
    result: "none", "int64", or how many int64 it gives.
    """

    code: bytes
    symbol: str
    result: str


def machine_code(function: Callable[..., Any], arguments: Sequence[Any]) -> MachineCode | None:
    """Return the function for arguments of these types as an object file that needs only `native`'s symbols.

    None if it would need more, or returns a value that `native` cannot take.
    """
    dispatcher: Any = helper_of(function, False)
    types_of = tuple(_type_of(argument) for argument in arguments)
    dispatcher.compile(types_of)
    made = dispatcher.overloads[types_of]
    result = _result(made.signature.return_type)
    # Arrays come without an owner, so what frees one is never called: by a name of our own, as numba's is numba's to give.
    text = made.library.get_llvm_str().replace("@NRT_MemInfo_call_dtor", f"@{FREE_SYMBOL}")
    module = binding.parse_assembly(text)
    wanted = {item.name for item in (*module.functions, *module.global_variables) if item.is_declaration}
    if not result or any(name not in OFFERED and not name.startswith("llvm.") for name in wanted):
        return None
    return MachineCode(target_machine().emit_object(module), made.fndesc.llvm_func_name, result)


def _result(kind: Any) -> str:
    if kind == types.none:
        return "none"
    if kind == types.int64:
        return "int64"
    if isinstance(kind, types.UniTuple) and kind.dtype == types.int64:
        return str(kind.count)
    return ""


# ---- CRC-32 ----------------------------------------------------------------------------------------------------------


_CRC_TYPE = types.uint64(types.uint64, types.int64, types.int64)


call_crc32: Any = types.ExternalFunction(CRC_SYMBOL, _CRC_TYPE)


def _masked_crc32(address: int, length: int) -> Any:
    """Return CRC-32 of `length` bytes with the top bit cleared, as it is stored."""
    return np.int64(call_crc32(np.uint64(0), address, length) & np.uint64(0x7FFFFFFF))


masked_crc32: Any = helper_of(_masked_crc32, True)
