"""The benchmark: ratios against reading and summing the same bytes.

* `run_bench`: the command.
* `figures`: the lines of its table, and their limits.
* `measures`: what is measured in this process and its session.  `cold`: whole commands against a plain PySpark session.
* `memory`: the most memory that this process has held.
* `ratios`: the figures that are kept in a file, and how new ones compare.  `processor`: what kind of processor they are of.
* `store`: the store that is measured.
* `questions`: questions about messages as a table, against tasks that read the same bytes.
* `scale`: stores larger than a disk, and what the driver holds of them.
* `peers`: a release's own load() of it.
"""
