"""What is right to say of a store, written down by hand before anything was run on it.

Each NAME.toml is a store, or a group of copies, with one answer and the steps that lose least, in their order.  `recipes` makes
the store of the same name, `truth` reads the file.  The numbers were counted from the files of that store, by the forms in
docs/formats.md, and the answers follow from the files and from what brokers of that release did; none is the product's.

Keys of a file:

* `about`: the kind of store, in a few words.  `why`: two sentences, why this answer loses least.
* `release`; `asked`: "audit"; "donor" (the copy is asked about beside a second one); "group" (copies of one broker, all asked).
* `start_at`: the moment of the start that is asked about, where the answer hangs on it.
* `copies`: one table each, with `name` (its folder) and `broker_conf`. A copy with an `answer` is asked about:
  * `answer`: one of `ANSWERS`.  `code`: the exit codes that agree with it; several where the contract leaves a choice.
  * `headline`: `fact`; its `number` (messages, unless `of` says of what), `file` below the copy's folder, or `setting`.
  * `steps`: in the order of `STEPS`; `step`, and what it has to name: `path`, `file`, `setting`, `value`, `option`, `number`,
    `gives_up` (messages), `if` (what a person has to know for it). A `path` is a folder of this copy ("." is all of it), another
    copy, or, as broker.conf has it, a folder elsewhere.
"""
