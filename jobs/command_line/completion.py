"""completion SHELL: a script that completes commands, options, their values and file names. Standard library only.

It is made of the command table: bash's and zsh's ask no program while somebody types, fish's neither.
"""

from __future__ import annotations

import re

from jobs.command_line.command_table import COMMAND_TABLE, SHELLS
from jobs.command_line.options import Command
from jobs.command_line.parser import SPARK_OPTIONS, Option
from store_io.base.errors import UsageError

PROGRAMS = ("rmq-audit", "spark-submit.sh")
_NOT_NAME = re.compile(r"[^A-Za-z]")
_PATHS = ("DIR", "FILE", "PATH", "PLAN", "NEWSTORE", "NEW", "COPY", "STORE")  # begin the names of values that are paths


def run(command: Command) -> int:
    """Print the script. Raises UsageError."""
    if len(command.arguments) != 1 or command.arguments[0] not in SHELLS:
        raise UsageError(f"completion takes one shell: {', '.join(SHELLS)}")
    print({"bash": bash, "zsh": zsh, "fish": fish}[command.arguments[0]](), end="")
    return 0


def choices(option: Option) -> tuple[str, ...]:
    """The words that an option takes, where it takes only these."""
    words = tuple(option.metavar.split("|"))
    return words if len(words) > 1 and all(word == word.lower() for word in words) else ()


def _first_words(name: str) -> tuple[str, ...]:
    """What the first argument of a command may be, where that is no path."""
    return SHELLS if name == "completion" else ()


def _is_path(option: Option) -> bool:
    return option.metavar.startswith(_PATHS)


def _about(text: str) -> str:
    """The first line of a help text, as one word of a shell."""
    return _quoted(text.splitlines()[0].rstrip("."))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# ---- bash ------------------------------------------------------------------------------------------------------------

_BASH = """\
# Completion for {programs}: source <({program} completion bash)
_store_audit() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command='' options='' words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
      {alternatives}) command=${{COMP_WORDS[i]}} && break ;;
    esac
  done
  local spark='{spark}'
  case $command$before in
{values}
  esac
  case $command in
    '') words='{commands} help --help --version' ;;
{options}
  esac
  case $word in
    -*) words=$options ;;
  esac
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -F _store_audit {programs}
"""


def bash() -> str:
    """The script for bash 4 and later."""
    values, options = [], []
    for name, spec in COMMAND_TABLE.items():
        for option in filter(choices, spec.options):
            values.append(f"    {name}{option.name}) words='{' '.join(choices(option))}' ;;")
        if first := _first_words(name):
            values.append(f"    {name}{name}) words='{' '.join(first)}' ;;")
        listed = [*(option.name for option in spec.options), "--help", *(["$spark"] if spec.takes_spark else [])]
        options.append(f'    {name}) options="{" ".join(listed)}" ;;')
    return _BASH.format(
        programs=" ".join(PROGRAMS),
        program=PROGRAMS[0],
        spark=" ".join(sorted(SPARK_OPTIONS)),
        alternatives="|".join(COMMAND_TABLE),
        commands=" ".join(COMMAND_TABLE),
        values="\n".join(values),
        options="\n".join(options),
    )


# ---- zsh -------------------------------------------------------------------------------------------------------------

_ZSH = """\
#compdef {programs}
# Completion for {programs}: source <({program} completion zsh), after compinit
_store_audit() {{
  local -a commands
  commands=(
{commands}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case $words[2] in
{options}
    *) _files ;;
  esac
}}
compdef _store_audit {programs}
"""


def zsh() -> str:
    """The script for zsh."""
    commands = [f"    {name}:{_about(spec.about)}" for name, spec in COMMAND_TABLE.items()]
    options = []
    for name, spec in COMMAND_TABLE.items():
        rows = [_zsh_option(option) for option in spec.options]
        first = _first_words(name)
        rows.append(f"'*:word:({' '.join(first)})'" if first else "'*:file:_files'")
        listed = " \\\n        ".join(["--help", *rows])
        options.append(f"    {name})\n      shift words; (( CURRENT-- ))\n      _arguments \\\n        {listed} ;;")
    return _ZSH.format(programs=" ".join(PROGRAMS), program=PROGRAMS[0], commands="\n".join(commands), options="\n".join(options))


def _zsh_option(option: Option) -> str:
    about = option.help.splitlines()[0]
    for character in "\\[]:":
        about = about.replace(character, f"\\{character}")
    if not option.metavar:
        return _quoted(f"{option.name}[{about}]")
    value = f"({' '.join(choices(option))})" if choices(option) else "_files" if _is_path(option) else " "
    return _quoted(f"{option.name}=[{about}]:{_NOT_NAME.split(option.metavar)[0].lower()}:{value}")


# ---- fish ------------------------------------------------------------------------------------------------------------


def fish() -> str:
    """The script for fish."""
    lines = [f"# Completion for {' '.join(PROGRAMS)}: {PROGRAMS[0]} completion fish | source"]
    none = f"not __fish_seen_subcommand_from {' '.join(COMMAND_TABLE)}"
    for program in PROGRAMS:
        for name, spec in COMMAND_TABLE.items():
            lines.append(f"complete -c {program} -n '{none}' -f -a {name} -d {_about(spec.about)}")
            seen = f"complete -c {program} -n '__fish_seen_subcommand_from {name}'"
            if first := _first_words(name):
                lines.append(f"{seen} -f -a '{' '.join(first)}'")
            for option in spec.options:
                value = f" -x -a '{' '.join(choices(option))}'" if choices(option) else " -r" if option.metavar else ""
                lines.append(f"{seen} -l {option.name[2:]} -d {_about(option.help)}{value}")
            lines.append(f"{seen} -l help -d 'Show its options'")
    return "\n".join(lines) + "\n"
