"""What is known of programs by name: which ones run other commands, and whose second word says what they do."""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def base_name(word: str) -> str:
    """The program's name without its path."""
    return word.rpartition("/")[2]


def is_listed(name: str, programs: frozenset[str]) -> bool:
    """Whether it is one of these programs, with or without a version behind it (`python3.11`)."""
    return name in programs or name.rstrip("0123456789.-") in programs


KEYWORDS = names("if then else elif fi for while until do done case esac in function select time coproc { } ! [[ ]]")

# Commands whose arguments are commands, or that change what later words mean.
WRAPPERS = names(
    ". alias at batch bind builtin busybox bwrap capsh cgexec chroot chrt command compgen complete coproc daemonize "
    "dbus-run-session doas enable entr env eval exec expect faketime fakeroot fc firejail flock hash i386 ionice jobs linux32 "
    "linux64 logsave ltrace machinectl nice nohup nsenter numactl parallel pkexec prlimit proot rlwrap rsh run0 runuser "
    "screen script setarch setpriv setsid sg shopt source ssh start-stop-daemon stdbuf strace su sudo systemd-inhibit "
    "systemd-run taskset time timeout tmux trap unalias unbuffer unshare valgrind watch x86_64 xargs xvfb-run"
)
SHELLS = names("sh bash rbash dash zsh ksh mksh yash fish ash csh tcsh nu xonsh pwsh powershell cmd")

# Builtins that set variables or take names of them: `a[$(rm x)]` is such a name, and the shell runs what stands in it.
VARIABLE_SETTERS = names("declare export getopts let local mapfile read readarray readonly set typeset unset wait")

# Builtins that take such names with these options only.
NAMING_OPTIONS = {"printf": ("-v",), "test": ("-v", "-R"), "[": ("-v", "-R")}

# Options that make a program run other commands. A letter counts inside a group of letters too.
COMMAND_OPTIONS = {
    "find": names("-exec -execdir -ok -okdir"),
    "fd": names("-x -X --exec --exec-batch"),
    "git": names("--exec --extcmd --open-files-in-pager --receive-pack --tool --upload-pack"),
    "go": names("-exec -toolexec -vettool"),
    "man": names("-P -H --pager --html"),
    "rg": names("--pre --hostname-bin"),
    "rsync": names("-e --rsh --rsync-path"),
    "sort": names("--compress-program"),
    "split": names("--filter"),
    "tar": names(
        "-F -I --checkpoint-action --info-script --new-volume-script --rmt-command --rsh-command --to-command "
        "--use-compress-program"
    ),
}

# Programs that run code from their arguments: an allow rule may name them, a deny rule looks into their words. A version
# behind the name changes nothing (`python3.11`).
INTERPRETERS = names(
    "python pypy ipython perl ruby node nodejs php lua luajit awk gawk mawk nawk osascript deno bun make gmake ninja ed vi vim "
    "nvim ex emacs sed gsed tclsh wish m4 gdb sqlite npx bunx uvx pipx poetry conda man tar bsdtar rsync split sort rg zip"
)

# Programs whose own options may stand between their name and the word that says what they do.
SUBCOMMAND_PROGRAMS = names(
    "git docker podman kubectl helm npm pnpm yarn cargo pip uv go gh aws gcloud terraform systemctl"
)

# Programs of which an answer may allow "PROGRAM WORD *": none of these words takes an option that names a file to write or a
# program to run.
SAFE_SUBCOMMANDS = {
    "git": names("add branch commit ls-files status"),
    "go": names("fmt"),
}

PLAIN_PROGRAMS = names(
    "[ : basename break cat cd cmp comm continue cp curl cut date diff dirname echo egrep exit false fgrep grep head hostname id jq "
    "kill ln logger ls md5sum mkdir mktemp mv notify-send popd printf pushd pwd return rm rmdir seq sha256sum shift sleep stat tail tee "
    "test touch tr true uname uniq wc wget whoami"
)
"""Programs that start nothing themselves and run nothing that they read."""

CODE_RUNNERS = SHELLS | names(
    "python pypy ipython perl ruby node nodejs php lua luajit osascript deno bun tclsh wish awk gawk mawk nawk"
)
"""Programs whose first argument is what they run."""

QUIET_PROGRAMS = names("[ ls mkdir rm rmdir stat tee test touch wc")
"""Programs that do not hand on what is in a file."""

CODE_VARIABLES = names(
    "BASH_ENV BROWSER CDPATH CLASSPATH CMAKE_TOOLCHAIN_FILE DENO_DIR EDITOR ENV GOFLAGS IFS JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS "
    "LESSCLOSE LESSOPEN LUA_CPATH LUA_INIT LUA_PATH MAKEFILES MAKEFLAGS MANPAGER NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE "
    "PAGER PATH PERL5DB PERL5LIB PERL5OPT PERLLIB PROMPT_COMMAND PS0 PS1 PS4 PYTHONBREAKPOINT PYTHONHOME PYTHONINSPECT PYTHONPATH "
    "PYTHONSTARTUP PYTHONUSERBASE RUBYLIB RUBYOPT RUSTC RUSTC_WRAPPER SHELL SHELLOPTS BASHOPTS SUDO_ASKPASS SSH_ASKPASS VISUAL "
    "ZDOTDIR HOME XDG_CONFIG_HOME _JAVA_OPTIONS"
)
_PREFIXES = "BASH_FUNC_ CARGO_ DYLD_ GEM_ GIT_ JJ_ LD_ npm_config_ NPM_CONFIG_ PIP_ UV_"
CODE_VARIABLE_PREFIXES = tuple(_PREFIXES.split())
"""Variables whose value is code, or says where programs find some; and how such names may begin."""
