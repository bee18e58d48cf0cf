"""argparse for the rows of command_table.py: one sentence for a fault, and Spark's options passed on. Standard library only."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jobs.cli.option_values import near, one_of
from jobs.cli.terminal import fold_width
from jobs.installation import COMMAND
from store_io.base.errors import UsageError

# Spark's options that reach spark-submit unchanged. Its others would change what is run, or have no effect here.
SPARK_OPTIONS = frozenset(
    "--master --deploy-mode --conf --properties-file --archives --py-files --files --jars --packages --repositories "
    "--driver-memory --driver-cores --driver-java-options --driver-library-path --driver-class-path --executor-memory "
    "--executor-cores --total-executor-cores --num-executors --queue --principal --keytab --proxy-user".split()
)
SPARK_FLAGS = frozenset({"--verbose", "--supervise"})
HELP = ("-h", "--help")
_GROUPS = ("what to read", "how much, and which", "what to write, and where", "Spark", "seldom needed")  # of options


class Option(NamedTuple):
    """An option of a command.

    metavar: the name of its value in --help; empty for a flag, which takes none. "a|b": the option takes these words alone.
    check: the function from the text to the value.
    pairs: the option may be given often; check then gives a key and a value, and the option's value is a dict of all of them.
    """

    name: str
    metavar: str
    help: str
    check: Callable[[str], Any] = str
    pairs: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the words that the option takes; empty if it takes others, too."""
        words = tuple(self.metavar.split("|"))
        return words if len(words) > 1 and self.metavar.islower() else ()


@dataclass(frozen=True)
class CommandSpec:
    """A command, as the command line reads it and --help shows it.

    module: imported when the command runs.
    usage: the words after its name.
    about: its first line is one sentence, which begins --help; the rest follows the usage.
    arguments: (name, meaning).
    examples: two lines for a shell, after the heading; they can be pasted in the project's folder.
    read, much, write, rare: its options in the groups of --help, in their order.
    spark: the text of the group of Spark's options.
    group: the dependency group that it needs besides the product's own packages.
    bare: it needs nothing but Python, so no environment is made for it.
    rest_passes: all words after its first argument are arguments, whatever they look like.
    others_pass: words that are no options of its own or Spark's are its arguments, also those that begin with "-".
    instead: (an option that people try and it has not, what to do instead)."""

    module: str
    usage: str
    about: str
    examples: tuple[str, ...] = ()
    heading: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    read: tuple[Option, ...] = ()
    much: tuple[Option, ...] = ()
    write: tuple[Option, ...] = ()
    spark: str = ""
    rare: tuple[Option, ...] = ()
    epilog: str = ""
    group: str = ""
    others_pass: bool = False
    bare: bool = False
    rest_passes: bool = False
    instead: tuple[tuple[str, str], ...] = ()
    takes_spark: bool = True

    @property
    def options(self) -> tuple[Option, ...]:
        return (*self.read, *self.much, *self.write, *self.rare)


class Given(NamedTuple):
    """The content of a command line.

    options: checked values by name, True for a flag.
    spark: Spark's own options, in order.
    """

    arguments: list[str]
    options: dict[str, Any]
    spark: tuple[str, ...]


class CommandParser(argparse.ArgumentParser):
    """The parser of one command. Every fault is a UsageError; nothing is printed."""

    def __init__(self, name: str, spec: CommandSpec) -> None:
        sentence, _, more = spec.about.partition("\n")
        self._head = "\n  ".join((f"{sentence}\n{spec.heading}".rstrip(), *spec.examples))
        super().__init__(
            usage=f"{COMMAND} {name} {spec.usage}",
            description=more,
            epilog=spec.epilog,
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=31, width=fold_width(120)),
            add_help=False,
            allow_abbrev=False,
            exit_on_error=False,
            argument_default=argparse.SUPPRESS,
        )
        self.color = False  # Python 3.14 would colour the help
        self._others_pass, self._rest_passes = spec.others_pass, spec.rest_passes
        self._takes_value: dict[str, bool] = {}
        self._instead, self._own = dict(spec.instead), [option.name for option in spec.options]
        read, much, write, spark, rare = map(self.add_argument_group, _GROUPS)
        spark.description = spec.spark or None  # its options have no help of their own
        for what, meaning in spec.arguments:
            read.add_argument(what, nargs="*", help=meaning)
        for group, options in ((read, spec.read), (much, spec.much), (write, spec.write), (rare, spec.rare)):
            for option in options:
                self._takes_value[option.name] = bool(option.metavar)
                if option.metavar:
                    action, what = _Pairs if option.pairs else _Once, option.metavar
                    check = one_of(option.choices) if option.choices else option.check
                    group.add_argument(option.name, dest=option.name, action=action, metavar=what, type=check, help=option.help)
                else:
                    group.add_argument(option.name, dest=option.name, action="store_true", help=option.help)
        if spec.takes_spark:
            for spark_option in (SPARK_OPTIONS | SPARK_FLAGS) - self._takes_value.keys():
                self._takes_value[spark_option] = spark_option in SPARK_OPTIONS
                nargs = None if spark_option in SPARK_OPTIONS else 0
                self.add_argument(spark_option, dest=spark_option, action=_ForSpark, nargs=nargs, help=argparse.SUPPRESS)

    def format_help(self) -> str:
        """Return the text of --help: the sentence, the examples, then usage and options."""
        told = f"{self._head}\n\n{super().format_help()}"
        for title in [title for title in _GROUPS if f"\n{title}:\n" in told][1:]:
            told = told.replace(f"\n\n{title}:\n", f"\n{title}:\n")  # a page without empty lines between groups
        return told

    def _meant(self, name: str) -> str:
        """Suggest what to write instead of an unknown option.

        An option of Spark is suggested only if it is nearly the word itself.
        """
        if name in self._instead:
            return f": {self._instead[name]}"
        return near(name, self._takes_value, 0.8) or near(name, self._own)

    def count_leading(self, words: Sequence[str]) -> int:
        """Return how many words come before the first argument."""
        position = 0
        while position < len(words) and len(words[position]) > 1 and words[position].startswith("-"):
            position += 2 if self._takes_value.get(words[position]) else 1
        return min(position, len(words))

    def read(self, words: Sequence[str]) -> Given | None:
        """Read these words; None if they ask for help. Raises UsageError."""
        options, arguments = self._sorted(words)
        if options and options[-1] in HELP:
            return None
        try:
            found = vars(self.parse_args(options, argparse.Namespace(spark=())))
        except argparse.ArgumentError as fault:
            raise UsageError(f"{fault.argument_name} {fault.message}") from None
        return Given(arguments, found, found.pop("spark"))

    def _sorted(self, words: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return (options, each with its value joined by "="; arguments).

        argparse itself takes a value that begins with "-" only in this form.
        """
        options: list[str] = []
        arguments: list[str] = []
        if self._others_pass and words[:1] in ([HELP[0]], [HELP[1]]):
            return list(words[:1]), arguments
        waiting = iter(words)
        for word in waiting:
            name, equals, value = word.partition("=")
            takes_value = self._takes_value.get(name)
            if word == "--":
                arguments.extend(waiting)
            elif word in HELP and not self._others_pass:
                return [word], arguments
            elif takes_value:
                value = value if equals else next(waiting, "")
                if not value.strip() or not equals and value.startswith("--"):
                    raise UsageError(f"{name} needs a value")
                options.append(f"{name}={value}")
            elif takes_value is False:
                if equals:
                    raise UsageError(f"{name} takes no value")
                options.append(name)
            elif len(word) > 1 and word.startswith("-") and not self._others_pass:
                raise UsageError(f"unknown option {name!r}{self._meant(name)}")
            else:
                arguments.append(word)
                if self._rest_passes:
                    arguments.extend(waiting)
        return options, arguments


class _Once(argparse.Action):
    def __call__(self, parser: object, namespace: argparse.Namespace, values: object, option_string: str | None = None) -> None:
        if hasattr(namespace, self.dest):
            raise UsageError(f"{self.dest} is given twice")
        setattr(namespace, self.dest, values)


class _Pairs(argparse.Action):
    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:
        key, value = values
        found = getattr(namespace, self.dest, {})
        if key in found:
            raise UsageError(f"{self.dest} {key} is given twice")
        setattr(namespace, self.dest, {**found, key: value})


class _ForSpark(argparse.Action):
    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:
        if self.dest == "--conf" and "=" not in values:
            raise UsageError(f"--conf {values!r}: Spark wants key=value")
        namespace.spark += (self.dest,) if self.dest in SPARK_FLAGS else (self.dest, values)


def spark_setting(spark: Sequence[str], key: str, option: str | None = None) -> str | None:
    """Return the value that these words give a Spark setting: by its own option, else by the last --conf.

    Spark does the same.
    """
    words = [word for word in spark if word not in SPARK_FLAGS]
    by_name: dict[str, str] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        if name == "--conf":
            name, _, value = value.partition("=")
        by_name[name] = value
    return by_name.get(option or "", by_name.get(key))


def is_cluster_mode(spark: Sequence[str]) -> bool:
    """Say whether these words ask for cluster deploy mode: the driver runs somewhere in the cluster."""
    return spark_setting(spark, "spark.submit.deployMode", "--deploy-mode") == "cluster"


def master_of(spark: Sequence[str]) -> str:
    """Return the master that these words name; this machine's own without one."""
    return spark_setting(spark, "spark.master", "--master") or "local"


def uses_other_machines(spark: Sequence[str]) -> bool:
    """Say whether these words name a master whose tasks may run on other machines."""
    return not master_of(spark).startswith("local")
