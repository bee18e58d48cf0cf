"""completion SHELL: a script that completes commands, options, their values and file names. Standard library only.

It is made of the command table: bash's and zsh's ask no program while somebody types, fish's neither. argparse writes no such
script, and a library that asks the program at each press of the key takes 0.17 s for its imports alone.
"""

from __future__ import annotations

import re

from jobs.cli.command_table import COMMAND_TABLE, SHELLS, TABLES_ACTIONS
from jobs.cli.option_values import LAST_RUN
from jobs.cli.options import Command
from jobs.cli.parser import SPARK_OPTIONS, Option
from schemas.finding_codes import CATALOGUE, STOP_REASONS
from store_io.base.errors import UsageError
from store_io.broker.releases import KNOWN_RELEASES

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
    """Return the words that an option takes, if it takes only these; the releases that are known."""
    if option.name == "--release":
        return KNOWN_RELEASES
    return option.choices


_WORDS = {  # command -> what its arguments may be, where these are no paths
    "completion": SHELLS,
    "tables": TABLES_ACTIONS,
    "diff": (LAST_RUN,),
    "explain-code": (*CATALOGUE, *STOP_REASONS),
}


def _with_value() -> list[str]:
    """Return all options, of commands and Spark's, whose next word is their value."""
    own = {option.name for spec in COMMAND_TABLE.values() for option in spec.options if option.metavar}
    return sorted(own | SPARK_OPTIONS)


def _is_path(option: Option) -> bool:
    return option.metavar.startswith(_PATHS)


def _about(text: str) -> str:
    """Return the first line of a help text, as one word of a shell."""
    return _quoted(text.splitlines()[0].rstrip("."))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# ---- bash ------------------------------------------------------------------------------------------------------------

_BASH = """\
# Completion for {programs}: source <({program} completion bash)
_store_audit() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before='' command='' options='' words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do  # the command is the first word that is no option and no value of one
    case ${{COMP_WORDS[i]}} in
      {valued})
        before=${{COMP_WORDS[i]}}
        [ "${{COMP_WORDS[i+1]}}" = = ] && ((i++))  # bash makes three words of --level=quick
        [ $((++i)) -lt "$COMP_CWORD" ] && before='' ;;
      -*) ;;
      *)
        if [ "$command" = run ]; then  # what follows are the script's words
          compopt -o filenames 2>/dev/null
          mapfile -t COMPREPLY < <(compgen -f -- "$word")
          return
        fi
        [ -z "$command" ] && command=${{COMP_WORDS[i]}} ;;
    esac
  done
  [ "$word" = = ] && word=''
  local spark='{spark}'
  case $command in
    '') [ -z "$before" ] && words='{commands} help --help --version' && options="$words $spark" ;;
{options}
  esac
  case $command$before in
{values}
  esac
  case $before$word in
    -*) [ -z "$before" ] && words=$options ;;
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
    """Return the script for bash 4 and later."""
    values, options = [], []
    for name, spec in COMMAND_TABLE.items():
        for option in filter(choices, spec.options):
            values.append(f"    {name}{option.name}) words='{' '.join(choices(option))}' ;;")
        if name in _WORDS:
            values.append(f"    {name}) words='{' '.join(_WORDS[name])}' ;;")
        listed = [*(option.name for option in spec.options), "--help", *(["$spark"] if spec.takes_spark else [])]
        options.append(f'    {name}) options="{" ".join(listed)}" ;;')
    return _BASH.format(
        programs=" ".join(PROGRAMS),
        program=PROGRAMS[0],
        spark=" ".join(sorted(SPARK_OPTIONS)),
        valued="|".join(_with_value()),
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
  local i=2
  while (( i < CURRENT )); do  # the command is the first word that is no option and no value of one
    case $words[i] in
      {valued}) (( i += 2 )) ;;
      -*) (( i++ )) ;;
      *) break ;;
    esac
  done
  if (( i > CURRENT )); then
    _files
    return
  elif (( i == CURRENT )); then
    _describe command commands
    return
  fi
  (( CURRENT -= i - 1 ))
  shift $(( i - 1 )) words
  case $words[1] in
{options}
    *) _files ;;
  esac
}}
if [[ ${{zsh_eval_context[-1]}} == loadautofunc ]]; then  # a file _rmq-audit in a folder of fpath
  _store_audit "$@"
else
  compdef _store_audit {programs}
fi
"""


def zsh() -> str:
    """Return the script for zsh."""
    commands = [f"    {name}:{_about(spec.about)}" for name, spec in COMMAND_TABLE.items()]
    options = []
    for name, spec in COMMAND_TABLE.items():
        rows = [_zsh_option(option) for option in spec.options]
        if spec.rest_passes:
            options.append(f"    {name}) _files ;;")
            continue
        rows.append(f"'*:word:({' '.join(_WORDS[name])})'" if name in _WORDS else "'*:file:_files'")
        listed = " \\\n        ".join(["--help", *rows])
        options.append(f"    {name})\n      _arguments \\\n        {listed} ;;")
    return _ZSH.format(
        programs=" ".join(PROGRAMS),
        program=PROGRAMS[0],
        commands="\n".join(commands),
        valued="|".join(_with_value()),
        options="\n".join(options),
    )


def _zsh_option(option: Option) -> str:
    about = option.help.splitlines()[0]
    for character in "\\[]:":
        about = about.replace(character, f"\\{character}")
    if not option.metavar:
        return _quoted(f"{option.name}[{about}]")
    value = f"({' '.join(choices(option))})" if choices(option) else "_files" if _is_path(option) else " "
    return _quoted(f"{option.name}=[{about}]:{_NOT_NAME.split(option.metavar)[0].lower()}:{value}")


# ---- fish ------------------------------------------------------------------------------------------------------------


_FISH = """\
# Completion for {programs}: {program} completion fish | source
function __store_audit_at -d 'Whether the command is this one; without an argument, whether there is none yet'
  set -l skip 0
  for word in (commandline -opc)[2..-1]
    if test $skip = 1
      set skip 0
    else if contains -- $word {valued}
      set skip 1
    else if not string match -q -- '-*' $word
      test "$word" = "$argv[1]"
      return
    end
  end
  test $skip = 0 -a -z "$argv[1]"
end"""


def fish() -> str:
    """Return the script for fish."""
    lines = [_FISH.format(programs=" ".join(PROGRAMS), program=PROGRAMS[0], valued=" ".join(_with_value()))]
    none = "__store_audit_at"
    for program in PROGRAMS:
        for name, spec in COMMAND_TABLE.items():
            lines.append(f"complete -c {program} -n '{none}' -f -a {name} -d {_about(spec.about)}")
            seen = f"complete -c {program} -n '__store_audit_at {name}'"
            if name in _WORDS:
                lines.append(f"{seen} -f -a '{' '.join(_WORDS[name])}'")
            for option in spec.options:
                value = f" -x -a '{' '.join(choices(option))}'" if choices(option) else " -r" if option.metavar else ""
                lines.append(f"{seen} -l {option.name[2:]} -d {_about(option.help)}{value}")
            lines.append(f"{seen} -l help -d 'Show its options'")
    return "\n".join(lines) + "\n"
