"""CRC-32 by `folding_code`, where the processor has VPCLMULQDQ. Needs llvmlite.

The code is made once and kept as an object file, as it takes longer to make than a small question takes to be answered.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Mapping

from llvmlite import binding

from store_io.base.compiled import object_code
from store_io.base.compiled.code_files import DIGEST_BYTES, CodeFile, code_folder, read_code, source_of, write_code

LIBRARY, _CODE = "store_auditor_library_crc32", f"{__package__}.folding_code"
# Bits of the vectors that a processor can multiply, and what it takes; the widest first.
_FEATURES = {
    512: ("avx512f", "avx512bw", "avx512vl", "avx512dq", "vpclmulqdq", "pclmul"),
    256: ("avx2", "vpclmulqdq", "pclmul"),
}


def width_of(features: Mapping[str, bool]) -> int | None:
    """Return bits of the widest vectors that a processor with these features can multiply; None: it has no such instruction."""
    return next((bits for bits, names in _FEATURES.items() if all(features.get(name) for name in names)), None)


def compiled(library: int) -> int | None:
    """Return the address of a function as in `checksum.NativeEngine`; None if this processor lacks the instructions.

    library: the address of another such function, for texts of a few odd lengths and those at the start of a page.
    """
    bits = width_of(binding.get_host_cpu_features())
    if bits is None:
        return None
    folder, name = code_folder(__file__), _file_name(bits)
    path = os.path.join(folder, name) if folder and name else ""
    kept = read_code(path) if path else None
    if kept is None:
        code = importlib.import_module(_CODE)
        kept = CodeFile(code.NAME, "int64", object_code.made(code.code_of(bits)))
        if path:
            write_code(path, kept)
    binding.add_symbol(LIBRARY, library)
    return object_code.address_of(kept.symbol, kept.code)


def _file_name(bits: int) -> str:
    """Return the width, then a digest of all else that decides the code; empty if a source is not known."""
    sources = [source_of(__name__), source_of(_CODE)]
    if not all(sources):
        return ""
    parts = [*sources, *(word.encode() for word in object_code.this_machine())]
    return f"crc32-{bits}-{hashlib.blake2b(repr(parts).encode(), digest_size=DIGEST_BYTES).hexdigest()}.object"
