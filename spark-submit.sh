#!/usr/bin/env bash
# The one entry: finds a Python, makes the environment where it is missing (jobs/runtime/setup.py), runs the command (jobs/entry.py).
set -u

# A relative folder on the PATH, as '.', is another one wherever the command is typed: what lies there is not ours to run.
set -f
IFS=:
absolute='' relative=''
for folder in $PATH; do
  case $folder in /*) absolute=$absolute:$folder ;; *) relative=" (folders of the PATH that are relative are not looked into)" ;; esac
done
unset IFS
set +f
export PATH=${absolute#:}

self=$0
while [ -L "$self" ]; do # called through a link: the project lies where the link leads
  link=$(readlink "$self")
  case $link in
    /*) self=$link ;;
    *) self=$(dirname "$self")/$link ;;
  esac
done
here=$(cd -P "$(dirname "$self")" && pwd) || exit 3

STORE_AUDIT_HOME=${STORE_AUDIT_HOME:-$here/.venv}
case $STORE_AUDIT_HOME in
  /*) ;;
  *) STORE_AUDIT_HOME=$PWD/$STORE_AUDIT_HOME ;;
esac
export STORE_AUDIT_HOME
# A user's own Spark, Python packages or user site would mix other versions into the pinned ones. PYTHONSAFEPATH: a folder
# called jobs/ where the command is typed is not ours.
unset SPARK_HOME PYTHONHOME PYTHONSTARTUP
export PYTHONPATH=$here PYTHONSAFEPATH=1 PYTHONNOUSERSITE=1

python=$STORE_AUDIT_HOME/bin/python
made=$STORE_AUDIT_HOME/store-audit/ready
if [ -x "$python" ] && cmp -s "$here/pyproject.toml" "$made/pyproject.toml" && cmp -s "$here/constraints.txt" "$made/constraints.txt"; then
  exec "$python" -m jobs.entry "$@"
fi

if [ -L "$python" ] && [ ! -x "$python" ] && [ ! -w "$STORE_AUDIT_HOME" ]; then # who may write there has it made anew
  echo "spark-submit.sh: $python leads to $(readlink "$python"), which you may not run: the environment was made with a Python" \
    "that is another user's own. Have it made with one that all users can run, or set STORE_AUDIT_HOME to a folder of your own" >&2
  exit 3
fi

found='' lacking='' other=''
for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
  candidate=$(command -v "$name") || continue
  # -I keeps modules of the current folder out, where a Python of before 3.11 knows no PYTHONSAFEPATH; one of before 3 knows no -I.
  # Asked in the current folder, as a wrapper may choose the release by the folder.
  case $("$candidate" -I -c 'import sys
fits = (3, 11) <= sys.version_info < (3, 15)
try:
    import ensurepip, venv
except ImportError:
    fits = fits and "lacking"
print(fits, sys.version.split()[0])' 2>/dev/null) in
    True*) found=$candidate && break ;;
    lacking*) lacking=${lacking:-$candidate} ;;
    *) other=${other:-$candidate} ;;
  esac
done
if [ -z "$found" ]; then
  if [ -n "$lacking" ]; then
    echo "spark-submit.sh: $lacking has no venv module; install it (Debian, Ubuntu: apt-get install python3-venv)" >&2
  elif [ -n "$other" ]; then
    echo "spark-submit.sh: $other is $("$other" --version 2>&1); Python 3.11 to 3.14 is needed on the PATH$relative" >&2
  else
    echo "spark-submit.sh: no Python on the PATH$relative; Python 3.11 to 3.14 is needed" >&2
  fi
  exit 3
fi
"$found" -m jobs.runtime.setup "$@" || exit
[ -x "$python" ] || python=$found # only help was asked for
exec "$python" -m jobs.entry "$@"
