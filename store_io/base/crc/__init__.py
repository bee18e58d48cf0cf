"""CRC-32 of bytes, and what follows from it.

* `checksum`: at the speed of reading them, by the fastest library of this machine.
* `range_crc`: of any part of a file.
* `crc_errors`: the single wrong byte that a checksum leads to.
"""
