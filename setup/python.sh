#!/bin/sh
# Runs a script of the standard library with a Python of at least 3.11: sh setup/python.sh SCRIPT [ARGUMENT ...]
# Every candidate is executed, because a name on the PATH may be a shim that only fails, or a program of another user.
for name in python3 python3.11 python3.12 python3.13; do
  old_ifs=$IFS; IFS=:
  for folder in $PATH; do
    IFS=$old_ifs
    candidate="${folder:-.}/$name"
    if [ -x "$candidate" ] &&
       "$candidate" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' >/dev/null 2>&1 </dev/null; then
      exec "$candidate" "$@"
    fi
  done
  IFS=$old_ifs
done
echo "setup: no Python 3.11 or newer answers on the PATH (tried python3, python3.11, python3.12, python3.13):" \
     "install one (apt install python3 python3-venv) and run make again." >&2
exit 1
