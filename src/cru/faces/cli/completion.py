"""`cru completion bash|zsh|fish`: what the shell's Tab key completes. Made of the tables of flags and commands."""

from __future__ import annotations

from collections.abc import Iterable

from cru.core.command_table import COMMANDS
from cru.faces.cli.console import write
from cru.faces.cli.flags import FLAGS, PATHS, Flag, Parsed, UsageProblem

OF_CONTEXTS = frozenset({
    "transient-context", "switch-context", "archive-context", "compact-context", "rename-context", "set-system-prompt",
    "set-model-for-context",
    "clear-cache-for", "delete-context", "show-log", "inspect", "check-inbox",
})  # fmt: skip
ROWS = {name: row for name, row in COMMANDS.items() if row.only != "chat" or row.option}
VALUES = {"mode": "ask auto plan trust", "hooks": "trusted none all", "debug": "request-log response-meta all"}
CONTEXTS = "cru -L 2>/dev/null | sed 's/^[* ]*//; s/[ \\t].*//'"

BASH = """\
# cru: completion for bash. In ~/.bashrc: eval "$(cru completion bash)"
_cru() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=
  local i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in {commands_or}) command=${{COMP_WORDS[i]}}; break ;; esac
  done
  COMPREPLY=()
  case $before in
{values}
    {contexts_or}) COMPREPLY=($(compgen -W "$({contexts})" -- "$word")); return ;;
    {paths_or}) COMPREPLY=($(compgen -f -- "$word")); return ;;
  esac
  case $command in
{verbs}
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "{flags}" -- "$word"))
  elif [[ -n $command ]]; then
    COMPREPLY=(${{COMPREPLY[@]}} $(compgen -f -- "$word"))
  else
    COMPREPLY=($(compgen -W "{commands}" -- "$word"))
  fi
}}
complete -o filenames -o bashdefault -F _cru cru
"""
ZSH = """\
#compdef cru
# cru: completion for zsh. In ~/.zshrc, behind compinit: eval "$(cru completion zsh)"
_cru() {{
  local -a commands=(
{commands}
  )
  local -a flags=(
{flags}
  )
  local command=${{words[(r)({commands_or})]}}
  case $command in
{verbs}
  esac
  case ${{words[CURRENT-1]}} in
{values}
    {contexts_or}) compadd -- $({contexts}); return ;;
  esac
  if [[ ${{words[CURRENT]}} == -* ]]; then _describe flag flags; return; fi
  [[ -z $command ]] && _describe command commands
  _files
}}
compdef _cru cru
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem."""
    if len(words) != 1 or words[0] not in SHELLS:
        raise UsageProblem("cru completion needs the name of a shell", f"one of {', '.join(SHELLS)}")
    write(SHELLS[words[0]]())
    return 0


def _bash() -> str:
    return BASH.format(
        commands=" ".join(ROWS), commands_or="|".join(ROWS), contexts=CONTEXTS,
        flags=" ".join(name for flag in FLAGS for name in _names(flag)),
        contexts_or=_either(_with_context()), paths_or=_either(flag for flag in FLAGS if set(flag.args) & set(PATHS)),
        values="\n".join(
            f'    {_either([flag])}) COMPREPLY=($(compgen -W "{VALUES[flag.name]}" -- "$word")); return ;;'
            for flag in FLAGS if flag.name in VALUES
        ),
        verbs="\n".join(
            f'    {name}) [[ $before == {name} ]] && COMPREPLY=($(compgen -W "{" ".join(entry.verbs)}" -- "$word")) ;;'
            for name, entry in ROWS.items() if entry.verbs
        ),
    )  # fmt: skip


def _zsh() -> str:
    return ZSH.format(
        commands="\n".join(f"    {_quoted(f'{name}:{entry.about}')}" for name, entry in ROWS.items()),
        commands_or="|".join(ROWS), contexts=CONTEXTS, contexts_or=_either(_with_context()),
        flags="\n".join(f"    {_quoted(f'{name}:{flag.help}')}" for flag in FLAGS for name in _names(flag)),
        values="\n".join(
            f"    {_either([flag])}) compadd -- {VALUES[flag.name]}; return ;;" for flag in FLAGS if flag.name in VALUES
        ),
        verbs="\n".join(
            f"    {name}) if [[ ${{words[CURRENT-1]}} == {name} ]]; then compadd -- {' '.join(entry.verbs)}; return; fi ;;"
            for name, entry in ROWS.items() if entry.verbs
        ),
    )  # fmt: skip


def _fish() -> str:
    lines = ["# cru: completion for fish. cru completion fish > ~/.config/fish/completions/cru.fish"]
    for name, entry in ROWS.items():
        lines.append(f"complete -c cru -n __fish_use_subcommand -a {name} -d {_quoted(entry.about)}")
        if entry.verbs:
            seen = f"'__fish_seen_subcommand_from {name}'"
            lines.append(f"complete -c cru -n {seen} -a {_quoted(' '.join(entry.verbs))}")
    for flag in FLAGS:
        short = f" -s {flag.short[1:]}" if flag.short else ""
        lines.append(f"complete -c cru{short} -l {flag.name}{_fish_values(flag)} -d {_quoted(flag.help)}")
    return "\n".join([*lines, ""])


def _fish_values(flag: Flag) -> str:
    if flag.name in VALUES:
        return f" -x -a {_quoted(VALUES[flag.name])}"
    if flag.name in OF_CONTEXTS:
        return f' -x -a "({CONTEXTS.replace(chr(92), chr(92) * 2)})"'
    if set(flag.args) & set(PATHS):
        return " -r"
    return " -x" if flag.args else ""


def _with_context() -> list[Flag]:
    return [flag for flag in FLAGS if flag.name in OF_CONTEXTS]


def _names(flag: Flag) -> tuple[str, ...]:
    return tuple(filter(None, (flag.short, flag.long)))


def _either(flags: Iterable[Flag]) -> str:
    return "|".join(name for flag in flags for name in _names(flag))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
