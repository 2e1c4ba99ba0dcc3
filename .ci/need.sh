# shellcheck shell=bash
# For the other scripts here.

# need COMMAND [PACKAGE]: installs the Debian package of a command that is not there.
need() {
  local command=$1 package=${2:-$1}
  command -v "$command" >/dev/null && return
  local sudo=''
  [ "$(id -u)" -eq 0 ] || sudo=sudo
  $sudo apt-get update -qq && $sudo apt-get install -y -qq --no-install-recommends "$package"
}
