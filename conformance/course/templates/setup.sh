#!/usr/bin/env bash
# Gradescope runs this once, when the autograder is built.
#
# The zip that is uploaded holds, at its top: setup.sh, run_autograder, course.toml, and a checkout
# of the suite in the folder transformer-conformance.
set -euo pipefail

SUITE=/autograder/source/transformer-conformance
VENV=/autograder/venv

apt-get update -qq
apt-get install -y -qq python3 python3-venv bubblewrap
python3 -m venv "$VENV"
"$VENV/bin/pip" install --quiet torch --index-url https://download.pytorch.org/whl/cpu
"$VENV/bin/pip" install --quiet "${SUITE}[course]"
"$VENV/bin/conformance" --version
