"""Compiled functions, and their machine code kept on disk.

* `native`: a function that is compiled when it is first called, by numba or out of a file.
* `machine`: what the functions are compiled with.
* `object_code`: machine code made and loaded by LLVM alone; `code_files`: its files.
"""
