"""The code of `crc_folding`: CRC-32 by carry-less multiplication of whole vectors. Needs llvmlite.

Libraries end a computation with a loop or a jump over what does not fill a block. Message bodies are all of other lengths, so the
processor mispredicts that jump for most of them. Here zeros fill the first block: they do not change a remainder, and the loop
over blocks is all there is. Libraries also keep to vectors of 128 bits where there is no AVX-512; here 256 are used then.

What it buys over isal alone, as processor time of an audit's scan, segments in the page cache: with 256 bits (AMD Zen 3), the
file's digest included, about 15 % with bodies of 200 bytes, 20 % with 1 KiB and 16 KiB, as long texts are summed at 20 GB/s
instead of 10. With 512 bits (AMD Zen 5) and a masked load in place of the tables, for bodies alone, it was 8 to 9 % with 100
bytes, 11 % with 300, 7 % with 1 KiB, 2 % with 4 KiB; the code as it is now was not measured there.

How folding works: a text is a polynomial over GF(2), its CRC the remainder by the CRC's polynomial P. What is `d` bits before
another part may be replaced by its product with x^d mod P, added to that part. So blocks fold onto the next blocks, the last
lanes onto one of 128 bits, and a Barrett reduction gives the remainder. Bits are reflected, which shifts products by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from store_io.base.crc.crc_folding import LIBRARY

NAME = "store_auditor_folded_crc32"
_POLYNOMIAL = 0x104C11DB7
_VECTORS = 4  # folded side by side
_PAGE_BYTES = 4096  # at least that many bytes are readable together
_INT8, _INT32, _INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_PAIR = ir.VectorType(_INT64, 2)


class _Width(NamedTuple):
    """Vectors of `lanes` 64 bits. product: LLVM's name for what multiplies them."""

    lanes: int
    product: str

    @property
    def vector_bytes(self) -> int:
        return 8 * self.lanes

    @property
    def block_bytes(self) -> int:
        return _VECTORS * self.vector_bytes


_NARROW = "llvm.x86.pclmulqdq"
_WIDTHS = {512: _Width(8, f"{_NARROW}.512"), 256: _Width(4, f"{_NARROW}.256")}  # by bits


def _reflected(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def _power(bits: int) -> int:
    """Return x^bits mod P, reflected and shifted as a factor has to be."""
    value = 1
    for _ in range(bits):
        value <<= 1
        if value >> 32:
            value ^= _POLYNOMIAL
    return _reflected(value, 32) << 1


def _quotient() -> int:
    """Return x^64 div P, reflected."""
    rest, found = 1 << 64, 0
    for shift in range(32, -1, -1):
        if rest >> (32 + shift) & 1:
            rest ^= _POLYNOMIAL << shift
            found |= 1 << shift
    return _reflected(found, 33)


class _Code:
    """The function's code while it is built."""

    def __init__(self, width: _Width):
        self.module = ir.Module("crc_folding")
        self._width, self._lanes = width, ir.VectorType(_INT64, width.lanes)
        kind = ir.FunctionType(_INT64, [_INT64, _INT64, _INT64])
        function = ir.Function(self.module, kind, NAME)
        function.attributes.add("nounwind")
        self._wide = self._product(width.product, self._lanes)
        self._narrow = self._product(_NARROW, _PAIR)
        value, address, length = function.args
        start, folding, other = (function.append_basic_block(name) for name in ("start", "folding", "other"))
        b = self.b = ir.IRBuilder(start)
        begun = b.and_(b.sub(length, _number(1)), _number(width.block_bytes - 1))  # one less than the bytes in the first block
        filling = b.sub(_number(width.block_bytes - 1), begun)
        fits = b.and_(b.icmp_signed(">", length, _number(0)), b.icmp_unsigned(">=", begun, _number(3)))
        # Bytes before the text are loaded and not used: those of its own page can be.
        readable = b.icmp_unsigned(">=", b.and_(address, _number(_PAGE_BYTES - 1)), filling)
        b.cbranch(b.and_(fits, readable), folding, other)
        b.position_at_end(other)
        b.ret(b.call(ir.Function(self.module, kind, LIBRARY), [value, address, length], tail=True))
        b.position_at_end(folding)
        # Loaded so that their middle meets the text's start in its block: which bytes are the text's, and which are those four
        # that the value to continue from is added to. Texts that begin less than four bytes before the end of their first block
        # are left to the library.
        block = width.block_bytes
        self._tables = [
            b.add(b.ptrtoint(self._constant(name, bytes(block) + data), _INT64), _number(block))
            for name, data in (("own", b"\xff" * block), ("first_four", b"\xff" * 4 + bytes(block - 4)))
        ]
        self._fold_all(function, filling)

    def _constant(self, name: str, data: bytes) -> Any:
        kind = ir.ArrayType(_INT8, len(data))
        constant = ir.GlobalVariable(self.module, kind, name)
        constant.linkage, constant.global_constant = "internal", True
        constant.initializer = ir.Constant(kind, bytearray(data))
        return constant

    def _product(self, name: str, lanes: Any) -> ir.Function:
        return ir.Function(self.module, ir.FunctionType(lanes, [lanes, lanes, _INT8]), name)

    def _load(self, address: Any) -> Any:
        return self.b.load(self.b.inttoptr(address, self._lanes.as_pointer()), align=1)

    def _factors(self, *distances: int) -> Any:
        """Return for each pair of lanes the two factors that fold it over its distance in bits."""
        pairs = [(_power(d + 32), _power(d - 32)) if d else (0, 0) for d in distances]
        return ir.Constant(self._lanes, [number for pair in pairs for number in pair])

    def _fold(self, lanes: Any, factors: Any, *others: Any) -> Any:
        """Return the lanes times their factors, plus other lanes."""
        products = [self.b.call(self._wide, [lanes, factors, ir.Constant(_INT8, which)]) for which in (0x00, 0x11)]
        return self._sum(*products, *others)

    def _sum(self, first: Any, *others: Any) -> Any:
        for other in others:
            first = self.b.xor(first, other)
        return first

    def _fold_all(self, function: ir.Function, filling: Any) -> None:
        b, (value, address, length) = self.b, function.args
        step, block, pairs = self._width.vector_bytes, self._width.block_bytes, self._width.lanes // 2
        end, begin, size = b.add(address, length), b.sub(address, filling), b.add(length, filling)
        before_text = self._spread(value, filling)
        first = [self._first(begin, filling, before_text, step * i) for i in range(_VECTORS)]
        entered, loop, done = b.block, function.append_basic_block("loop"), function.append_basic_block("done")
        b.cbranch(b.icmp_unsigned(">", size, _number(block)), loop, done)
        b.position_at_end(loop)
        at = b.phi(_INT64)
        before = [b.phi(self._lanes) for _ in range(_VECTORS)]
        here = b.add(at, _number(block))
        factors = self._factors(*[8 * block] * pairs)
        folded = [self._fold(lanes, factors, self._load(b.add(here, _number(step * i)))) for i, lanes in enumerate(before)]
        b.cbranch(b.icmp_unsigned("<", b.add(here, _number(block)), end), loop, done)
        for phi, old, new in zip([at, *before], [begin, *first], [here, *folded], strict=True):
            phi.add_incoming(old, entered)
            phi.add_incoming(new, loop)
        b.position_at_end(done)
        last = [b.phi(self._lanes) for _ in range(_VECTORS)]
        for phi, old, new in zip(last, first, folded, strict=True):
            phi.add_incoming(old, entered)
            phi.add_incoming(new, loop)
        parts = [self._fold(lanes, self._factors(*[8 * step * (_VECTORS - 1 - i)] * pairs)) for i, lanes in enumerate(last[:-1])]
        vector = self._sum(last[-1], *parts)
        moved = self._fold(vector, self._factors(*(128 * i for i in reversed(range(pairs)))))
        ends = [self._pair(moved, i) for i in range(pairs - 1)]
        b.ret(b.zext(self._reduced(self._sum(*ends, self._pair(vector, pairs - 1))), _INT64))

    def _spread(self, value: Any, filling: Any) -> Any:
        """Return for each four bytes of a vector the share that the value adds to a text's first four.

        The share is turned, as the text begins anywhere.
        """
        b = self.b
        four = b.xor(b.and_(value, _number(0xFFFFFFFF)), _number(0xFFFFFFFF))
        twice = b.or_(four, b.shl(four, _number(32)))
        turned = b.lshr(twice, b.and_(b.sub(_number(32), b.shl(b.and_(filling, _number(3)), _number(3))), _number(31)))
        word = b.trunc(turned, _INT32)
        words = ir.VectorType(_INT32, 2 * self._width.lanes)
        one = b.insert_element(ir.Constant(words, ir.Undefined), word, ir.Constant(_INT32, 0))
        same = ir.Constant(ir.VectorType(_INT32, words.count), [0] * words.count)
        return b.bitcast(b.shuffle_vector(one, ir.Constant(words, ir.Undefined), same), self._lanes)

    def _first(self, begin: Any, filling: Any, before_text: Any, offset: int) -> Any:
        """Return a vector of the first block, zeros before the text, with the value to continue from added."""
        b = self.b
        own, first_four = (self._load(b.add(table, b.sub(_number(offset), filling))) for table in self._tables)
        text = self._load(b.add(begin, _number(offset)))
        return b.xor(b.and_(text, own), b.and_(before_text, first_four))

    def _pair(self, lanes: Any, number: int) -> Any:
        mask = ir.Constant(ir.VectorType(_INT32, 2), [2 * number, 2 * number + 1])
        return self.b.shuffle_vector(lanes, ir.Constant(self._lanes, ir.Undefined), mask)

    def _reduced(self, pair: Any) -> Any:
        """Return the CRC of 128 bits: folded to 96, to 64, then Barrett's reduction."""
        b = self.b

        def product(value: Any, factor: int) -> Any:
            return b.call(self._narrow, [value, ir.Constant(_PAIR, [factor, 0]), ir.Constant(_INT8, 0)])

        def moved_down(value: Any, words: int) -> Any:  # by 32 bits each
            words_of = b.bitcast(value, ir.VectorType(_INT32, 4))
            mask = ir.Constant(ir.VectorType(_INT32, 4), [words + i for i in range(4)])
            zeros = ir.Constant(ir.VectorType(_INT32, 4), [0] * 4)
            return b.bitcast(b.shuffle_vector(words_of, zeros, mask), _PAIR)

        low = ir.Constant(_PAIR, [0xFFFFFFFF, 0xFFFFFFFF])
        ninety_six = b.xor(moved_down(pair, 2), product(pair, _power(96)))
        sixty_four = b.xor(moved_down(ninety_six, 1), product(b.and_(ninety_six, low), _power(64)))
        times = b.and_(product(b.and_(sixty_four, low), _quotient()), low)
        rest = b.xor(sixty_four, product(times, _reflected(_POLYNOMIAL, 33)))
        word = b.extract_element(b.bitcast(rest, ir.VectorType(_INT32, 4)), ir.Constant(_INT32, 1))
        return b.xor(word, ir.Constant(_INT32, 0xFFFFFFFF))


def _number(value: int) -> Any:
    return ir.Constant(_INT64, value)


def code_of(bits: int) -> str:
    """In LLVM's language, with vectors of that many bits: `NAME`, a function as in `checksum.NativeEngine`. `LIBRARY` is
    another one, for texts of a few odd lengths and those at the start of a page."""
    return str(_Code(_WIDTHS[bits]).module)
