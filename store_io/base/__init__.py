"""The parts that everything above needs, and that know nothing of stores' files.

* `errors`: what can go wrong, with its exit code; `exit_codes`: all of them, and which counts for more.
* `failed_reads`: notes what of a store could not be read, whoever caught the error.
* `tasks`: what can be done apart from everything else.
* `findings`: a bounded collection of findings, in which none hides a more severe one.
* `packed`: very many small values in little memory; `spill`: their bytes in temporary files without a name.
* `ranges`: half-open ranges of numbers: union, intersection, difference.
* `java`: what Java makes of texts.
* `crc`: CRC-32 of bytes, and what follows from it.
* `fingerprints`: sets of numbers, and sums of hashes by which large sets are compared.
* `compiled`: compiled functions, and their machine code kept on disk.
* `locks`: values that threads make once; files that processes lock; pauses for servers, and how a signal ends them.
* `scratch`: folders for temporary files, which the next run removes where a killed one left them.
* `read_rate`: how fast the tasks of one machine read together.
* `paths`: what a path or an address is, by its text alone.
* `documents`: values as JSON documents have them.
* `wording`, `times`: numbers and lists of names in sentences; times as people read them.
"""
