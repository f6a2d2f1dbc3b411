#!/bin/sh
# Measures this checkout beside the floors and every agent that is installed (install_peers.sh), and writes docs/performance.md.
# usage: BENCH_HOME=... bench/run.sh [options of `bench.performance measure`: --passes 3 --reps 9 --only ROW...]
#        BENCH_PYTHONS="label=/path/of/python ..." measures other interpreters, too; the first of them is what the others are compared with
#        bench/run.sh peers [options of `run_peer.py bench`: --reps 5 --big 3 --huge 1]      the tables of bench/README.md
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
BENCH_HOME=${BENCH_HOME:-$HOME/.cache/cru-bench}
export BENCH_HOME
python=${PYTHON:-python3}
mkdir -p "$BENCH_HOME"

# As a user has it: not editable, compiled, only what it needs. Built from a copy, so that nothing is left in the checkout.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r "$root/pyproject.toml" "$root/README.md" "$root/LICENSE" "$root/src" "$copy"
rm -rf "$copy"/src/*.egg-info
rm -rf "$BENCH_HOME/py/cru"
"$python" -m venv "$BENCH_HOME/py/cru"
"$BENCH_HOME/py/cru/bin/pip" install -q --disable-pip-version-check -c "$root/constraints.txt" "$copy"

[ -x "$BENCH_HOME/py/floors/bin/python" ] || bash "$root/bench/install_peers.sh" floors

cd "$root"
if [ "${1:-}" != peers ]; then
    BENCH_SOURCE="$copy" "$python" -m bench.interpreters
    "$python" -m bench.performance measure "$@"
    "$python" -m bench.performance peers --reps 5
    [ -z "${BENCH_PYTHONS:-}" ] || "$python" -m bench.performance interpreters
    "$python" -m bench.performance write
    exit
fi
shift
peers="cru floor-pyreqwest floor-raw"
[ ! -x "$BENCH_HOME/npm/pi/node_modules/.bin/pi" ] || peers="$peers pi"
[ ! -x "$BENCH_HOME/npm/codex/node_modules/.bin/codex" ] || peers="$peers codex-native"
# shellcheck disable=SC2086
"$python" "$root/bench/run_peer.py" bench $peers "$@"
"$python" "$root/bench/report.py"
