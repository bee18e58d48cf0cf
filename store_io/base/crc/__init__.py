"""CRC-32 of bytes, and what follows from it.

* `checksum`: at the speed of reading them, by the fastest engine of this machine; `crc_folding`: one that is compiled here, from
  `folding_code`.
* `range_crc`: of any part of a file; `combined_sums`: of much, from those of its parts (`known_sums`).
* `crc_errors`: the single wrong byte that a checksum leads to.
"""
