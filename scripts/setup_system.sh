#!/bin/sh
# Installs what pip cannot: bubblewrap (the sandbox) and a C++ compiler. With apt and root it installs what is missing; elsewhere it
# says which command to run. It never fails: Kernelwright itself says what it can't do without them.
missing=""
command -v bwrap >/dev/null 2>&1 || missing="$missing bubblewrap"
command -v g++ >/dev/null 2>&1 || command -v clang++ >/dev/null 2>&1 || missing="$missing g++"
[ -z "$missing" ] && exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "installing$missing"
    # shellcheck disable=SC2086
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing; } >/dev/null 2>&1 && exit 0
    echo "apt-get could not install$missing"
fi
echo "please install$missing, for instance: sudo apt-get install$missing"
exit 0
