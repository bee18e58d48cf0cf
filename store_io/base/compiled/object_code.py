"""Machine code as object files: made for this machine by LLVM, and loaded into this process. Needs llvmlite, not numba."""

from __future__ import annotations

import platform
import sys
from functools import cache
from typing import Any


def target_machine() -> Any:
    """Return this machine as the target for which object files are made and loaded. An engine owns the target that it gets."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    options = {"cpu": binding.get_host_cpu_name(), "features": binding.get_host_cpu_features().flatten(), "opt": 3, "jit": True}
    return binding.Target.from_default_triple().create_target_machine(**options)


@cache
def this_machine() -> tuple[str, ...]:
    """Return the facts that decide which machine code LLVM makes, besides the code."""
    from llvmlite import __version__, binding

    features = binding.get_host_cpu_features().flatten()
    return platform.machine(), sys.platform, binding.get_host_cpu_name(), features, __version__


def made(text: str) -> bytes:
    """Return the object file of code in LLVM's language. RuntimeError: LLVM does not take it."""
    from llvmlite import binding

    target = target_machine()
    module = binding.parse_assembly(text)
    module.verify()
    found: bytes = target.emit_object(module)
    return found


_engines: list[Any] = []  # they own the code


def address_of(symbol: str, code: bytes) -> int:
    """Return the address of a function in an object file, which stays loaded until the process ends.

    The functions that it calls have been given to `binding.add_symbol`.
    """
    from llvmlite import binding

    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())
    _engines.append(engine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return int(engine.get_function_address(symbol))
