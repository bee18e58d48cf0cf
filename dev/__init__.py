"""What only the project's own folder has: the benchmark, sample stores, lint and tests. No part of the wheel.

* `run_tests`: lint, types and tests.
* `sample_store`, `sample_kinds`: a sound store of any size, plain or of another kind; `sample_repeats`: one larger than a disk.
* `run_bench`: the benchmark's command.
* `figures`: the lines of its table, and their limits.
* `measures`: what is measured in this process and its session.  `cold`: whole commands against a plain PySpark session.
* `ratios`: the figures that are kept in a file, and how new ones compare.  `this_machine`: its processor, this process's memory.
* `bench_stores`: the store that is measured.
* `questions`: questions about messages as a table, against tasks that read the same bytes.
* `scale`: stores larger than a disk, and what the driver holds of them.
* `peers`: a release's own load() of it.
"""
