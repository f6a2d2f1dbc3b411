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
    ". alias at autossh batch bind builtin busybox bwrap capsh ccache cgexec choom chroot chrt command compgen complete coproc "
    "cpulimit daemonize dbus-launch dbus-run-session distcc doas dumb-init enable entr env envdir eval exec expect faketime fakeroot "
    "fc firejail flock gosu hash hyperfine i386 ionice jobs linux32 linux64 logsave ltrace lxc-attach machinectl mosh nice nohup "
    "nsenter numactl parallel perf pkexec prlimit proot proxychains proxychains4 rlwrap rr rsh run0 runuser screen script sem "
    "setarch setpriv setsid setuidgid sg shopt socat softlimit source ssh ssh-agent sshpass start-stop-daemon stdbuf strace su "
    "su-exec sudo systemd-inhibit systemd-run taskset time timeout tini tmux toybox torify torsocks trap uclampset unalias unbuffer "
    "unshare valgrind watch x86_64 xargs xvfb-run"
)
SHELLS = names("sh bash rbash dash zsh ksh mksh yash fish ash csh tcsh nu xonsh pwsh powershell cmd")

# Builtins that set variables or take names of them: `a[$(rm x)]` is such a name, and the shell runs what stands in it.
VARIABLE_SETTERS = names("declare export getopts let local mapfile read readarray readonly set typeset unset wait")

# Builtins that take such names with these options only.
NAMING_OPTIONS = {"printf": ("-v",), "test": ("-v", "-R"), "[": ("-v", "-R")}

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

RUNNING_WORDS = names("exec run dlx x shell -exec -execdir -ok -okdir")
"""Subcommands and options behind which a command stands."""

# Programs of which an answer may allow "PROGRAM WORD *": none of these words takes an option that names a file to read or write or a
# program to run, changes anything, or runs the hooks of a repository (`git commit`).
SAFE_SUBCOMMANDS = {"git": names("status")}

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
    "BASH_ENV BROWSER CDPATH CLASSPATH CMAKE_TOOLCHAIN_FILE CONTAINER_HOST DENO_DIR DOCKER_HOST EDITOR ENV GH_BROWSER GH_EDITOR "
    "GH_PAGER GH_PATH GOFLAGS IFS JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS LESSCLOSE "
    "LESSOPEN LUA_CPATH LUA_INIT LUA_PATH MAKEFILES MAKEFLAGS MANPAGER NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE "
    "PAGER PATH PERL5DB PERL5LIB PERL5OPT PERLLIB PROMPT_COMMAND PS0 PS1 PS4 PYTHONBREAKPOINT PYTHONHOME PYTHONINSPECT PYTHONPATH "
    "PYTHONSTARTUP PYTHONUSERBASE RUBYLIB RUBYOPT RUSTC RUSTC_WRAPPER SHELL SHELLOPTS BASHOPTS SUDO_ASKPASS SSH_ASKPASS VISUAL "
    "ZDOTDIR HOME XDG_CONFIG_HOME _JAVA_OPTIONS"
)
_PREFIXES = "BASH_FUNC_ CARGO_ DYLD_ GEM_ GIT_ JJ_ LD_ npm_config_ NPM_CONFIG_ PIP_ UV_"
CODE_VARIABLE_PREFIXES = tuple(_PREFIXES.split())
"""Variables whose value is code, or says where programs find some; and how such names may begin."""
