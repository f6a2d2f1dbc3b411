"""What options of programs can do beyond what a program's name says: **the** table, from the programs' documents.

A rule that names a program that is not in it means all that it does: nothing is known of it, or it runs code by nature (`make`)."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from cru.core.guard.shell.programs import names


class OptionEffect(Enum):
    """What an option can do; the value is how a person is told.

    RUNS: start a program that it names, or take further options from a file
    WRITES: write, move or remove a file that it names
    SENDS: hand over what is in a file, or what other programs keep secret
    UNKNOWN: nothing is known of it, or it is known not to be harmless in another way
    """

    RUNS = "may run another program"
    WRITES = "writes to a place of its own"
    SENDS = "gives away what is in a file or another program"
    UNKNOWN = "is not known to be harmless"


class OptionUse(Struct, frozen=True):
    """A word that an allow rule must name before it covers the command.

    word: as the program gets it
    length: of its beginning that the rule must write out; the rest is a value, or other letters
    """

    word: str
    length: int
    effect: OptionEffect

    @property
    def option(self) -> str:
        return self.word[: self.length]


class ProgramOptions(Struct, frozen=True):
    """The options of one program that a rule must name before it covers them.

    Each is written as the program takes it. With a `=` it takes a value: the rest of its word, or the next word. What stands behind the `=`
    must be in the value, behind `=^` at its beginning, behind `=!^` not there, else the option is harmless. With `[=]` it may have a value
    in its own word. A `*` at the end: any word that begins so (`@*`).

    runs, writes, sends: options by what they do
    subcommands: words that do something of their own (RUNS), the first that is no option; `bisect/run`: the second, behind this one
    valued: letters of further short options that take a value: the rest of their word is no option
    is_abbreviated: long options may be shortened
    has_words: options are whole words with one dash or two (`-exec`); otherwise a dash stands before single letters
    has_any_dashes: long options may have any number of dashes (`-script-shell`)
    has_bare_letters: the letters of the first word are options even without a dash (`tar xzf`)
    """

    runs: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    sends: frozenset[str] = frozenset()
    subcommands: frozenset[str] = frozenset()
    valued: str = ""
    is_abbreviated: bool = True
    has_words: bool = False
    has_bare_letters: bool = False
    has_any_dashes: bool = False


def split_option(text: str) -> tuple[str, str, str]:
    """Of an option in a table: its name, how it takes a value ("", "=" or "[=]"), and what must be in that."""
    if text.endswith("[=]"):
        return text.removesuffix("[=]"), "[=]", ""
    return text.partition("=")


def _options(
    runs: str = "", writes: str = "", sends: str = "", *, subcommands: str = "", valued: str = "", style: str = ""
) -> ProgramOptions:
    """style: "words", "letters" (also without a dash), "dashes" (any number of them) or "full" (long options are never shortened)"""
    return ProgramOptions(
        names(runs), names(writes), names(sends), names(subcommands), valued,
        style not in ("words", "full"), style == "words", style == "letters", style == "dashes",
    )  # fmt: skip


OPTION_EFFECTS: dict[str, ProgramOptions] = {
    "ack": _options("--output= --pager=", valued="mgABC"),
    "ag": _options("--pager="),
    "aria2c": _options(
        "--conf-path= --on-bt-download-complete= --on-download-complete= --on-download-error= --on-download-pause= "
        "--on-download-start= --on-download-stop=",
        "-d= --dir= -l= --log= -o= --out= --save-cookies= --save-session= --server-stat-of=",
        "-i= --input-file=",
    ),
    "autopep8": _options("", "-i --in-place", style="full"),
    "awk": _options(
        "-D[=] --debug[=] -E= --exec= -f= --file= -i= --include= -l= --load= -W=",
        "-d[=] --dump-variables[=] -o[=] --pretty-print[=] -p[=] --profile[=]",
        valued="eFv",
    ),
    "base64": _options("", "-o= --output="),
    "bat": _options("--pager= --config-file=", style="full"),
    "cargo": _options(
        "--config= --config-file= --tool-config-file= -Z= --target=.json",
        "--artifact-dir= --out-dir= --root= --target-dir=",
        style="full",
    ),
    "clang-format": _options("@*", "-i", style="words"),
    "cpio": _options("--rsh-command=", "-D= --directory= -F= --file= -O="),
    "csplit": _options("", "-f= --prefix=", valued="bn"),
    "ctags": _options("--options= --optlib-dir= --options-maybe=", "-f= -o= --output="),
    "curl": _options(
        "-K= --config= --engine= --unix-socket= --abstract-unix-socket= --krb=",
        "-o= --output= -O --remote-name --remote-name-all -J --remote-header-name --output-dir= -D= --dump-header= -c= "
        "--cookie-jar= --trace= --trace-ascii= --stderr= --libcurl= --etag-save= --hsts= --alt-svc= -w=%output "
        "--write-out=%output",
        "-T= --upload-file= -d=^@ --data=^@ --data-ascii=^@ --data-binary=^@ --data-urlencode=@ --json=^@ --url-query=@ -F=@ "
        "-F=< --form=@ --form=< -H=^@ --header=^@ --proxy-header=^@ -n --netrc --netrc-optional --netrc-file= -w=^@ "
        "--write-out=^@ --variable=@",
        valued="AbCdeEFhHmPQrtuUwxXyYz",
    ),
    "date": _options("", "-s= --set=", "-f= --file=", valued="drI"),
    "dc": _options("-e=! --expression=!"),
    "delta": _options("--pager=", style="full"),
    "diff3": _options("--diff-program=", valued="L"),
    "dmesg": _options(
        "", "-C -c -D -E --clear --read-clear --console-off --console-on", "-F= --file= -K= --kmsg-file=", valued="flns"
    ),
    "dot": _options("", "-o= -O", valued="TKGNElns"),
    "du": _options("", "", "--files0-from=", valued="BdtX"),
    "eslint": _options(
        "-c= --config= -f= --format= --parser= --plugin= --resolve-plugins-relative-to= --rulesdir=",
        "--cache-file= --cache-location= --fix -o= --output-file=",
        style="full",
    ),
    "fd": _options("-x -X --exec --exec-batch"),
    "file": _options("", "-C --compile", "-f= --files-from= -m= --magic-file=", valued="eFP"),
    "find": _options(
        "-exec -execdir -ok -okdir", "-delete -fls= -fprint= -fprint0= -fprintf=", "-files0-from=", style="words"
    ),
    "fzf": _options("--bind= --preview= --become=", style="full"),
    "gcc": _options(
        "@* -B* -Wa,* -Wl,* -Wp,* -Xassembler* -Xclang* -Xlinker* -Xpreprocessor* -cc1* -config= -fpass-plugin= -fplugin= "
        "-for-assembler= -for-linker= -fuse-ld= -gcc-toolchain= -iplugindir= -ld-path= -load= -prefix= -specs= -sysroot= -wrapper=",
        "-MF* -aux-info=",
        style="words",
    ),
    "gh": _options(
        "--", "", "-F= --body-file= --input= --notes-file=", subcommands="alias auth config ext extension", style="full"
    ),
    "git": _options(
        "--browser= --cc-cmd= --config= --exec= --ext-diff --extcmd= --gui --header-cmd= --open-files-in-pager "
        "--receive-pack= --sendmail-cmd= --smtp-server= --template= --to-cmd= --tool= --upload-pack=",
        "--edit-description --export-marks= --index-output= --output= --output-directory= --separate-git-dir= --unsafe-paths",
        "--pathspec-from-file=",
        subcommands="bisect/run bisect/view bisect/visualize citool config credential daemon difftool filter-branch gui hook instaweb "
        "maintenance mergetool send-email shell submodule/foreach web--browse",
    ),
    "go": _options(
        "-exec= -gccgoflags= -ldflags=extar -ldflags=extld -modfile= -overlay= -toolexec= -vettool=",
        "-blockprofile= -coverprofile= -cpuprofile= -fuzzcachedir= -ldflags=-o -ldflags=capturehost -ldflags=profile "
        "-ldflags=tmpdir -memprofile= -mutexprofile= -o= -outputdir= -pkgdir= -trace= -w",
        subcommands="generate run tool",
        style="words",
    ),
    "gofmt": _options("", "-w -cpuprofile=", style="words"),
    "gpg": _options(
        "--agent-program= --dirmngr-program= --exec-path= --options= --photo-viewer=",
        "--attribute-file= --homedir= --log-file= --logger-file= -o= --output= --status-file=",
        valued="ruNk",
    ),
    "helm": _options("--kubeconfig= --post-renderer=", subcommands="plugin", style="full"),
    "hg": _options("--config= --debugger"),
    "iconv": _options("", "-o= --output=", valued="ft"),
    "ip": _options("-b= -batch=", subcommands="netns", style="words"),
    "jj": _options("--config= --config-file= --config-toml=", subcommands="util config", style="full"),
    "journalctl": _options("", "--cursor-file= --flush --relinquish-var --rotate --vacuum-files= --vacuum-size= --vacuum-time="),
    "kubectl": _options(
        "--kubeconfig=",
        "",
        "-o=^jsonpath-file --output=^jsonpath-file -o=^go-template-file --output=^go-template-file -o=^templatefile "
        "--output=^templatefile -o=^custom-columns-file --output=^custom-columns-file",
        subcommands="config cp exec plugin",
        style="full",
    ),
    "less": _options(
        "+* --cmd= -k= --lesskey-content= --lesskey-file= --lesskey-src=",
        "-o= -O= --log-file= --LOG-FILE=",
        valued="bhjpPtTxyz",
    ),
    "make": _options(
        "-f= --file= --makefile= -C= --directory= -I= --include-dir= --eval= -e --environment-overrides -E=",
    ),
    "man": _options("-C= --config-file= -H --html -P= --pager= -X --gxditview -r= --prompt="),
    "mypy": _options(
        "@* --config-file= --python-executable=",
        "--any-exprs-report= --cache-dir= --cobertura-xml-report= --html-report= --install-types --junit-xml= "
        "--linecount-report= --linecoverage-report= --lineprecision-report= --txt-report= --xml-report= --xslt-html-report= "
        "--xslt-txt-report=",
    ),
    "nc": _options("-c= -e= --exec= --sh-exec= --lua-exec=", "-o= --output= -x= --hex-dump="),
    "nmap": _options("--script= --datadir= --servicedb=", "-o --resume= --append-output", "-iL= --excludefile=", style="full"),
    "npm": _options(
        "-C= --call= --editor= --git= --globalconfig= --init-module= --node-options= --prefix= --script-shell= --shell= --userconfig= "
        "--viewer= --browser=",
        "--cache= --logs-dir= --pack-destination=", style="dashes",
        subcommands="config/del config/delete config/edit config/fix config/rm config/set",
    ),
    "openssl": _options(
        "-config= -engine= -provider= -provider-path=", "-keyout= -out= -outdir= -writerand=", style="words"
    ),
    "pandoc": _options(
        "-F= --filter= -L= --lua-filter= --pdf-engine= -d= --defaults= -f=.lua --from=.lua -t=.lua --to=.lua --data-dir=",
        "-o= --output= --extract-media= --log=",
    ),
    "patch": _options(
        "-g= --get=",
        "-B= --basename-prefix= --prefix= --suffix= -Y= -z= -d= --directory= -o= --output= -r= --reject-file=",
        valued="DFipV",
    ),
    "perltidy": _options("", "-b -o= -pro= -bext=", style="words"),
    "pip": _options(subcommands="config/edit config/set config/unset"),
    "ps": _options(),
    "pylint": _options(
        "--init-hook= --load-plugins= --rcfile= -f=. --output-format=.", "--output= -f=: --output-format=:"
    ),
    "pytest": _options(
        "@* -p=!^no: -W=. --pythonwarnings=. -c= --config-file= --rootdir= --confcutdir= -o= --override-ini=",
        "--basetemp= --cov-report=: --debug --junit-xml= --junitxml= --log-file= --result-log=",
        "--pastebin=", style="full",
    ),
    "rg": _options("--hostname-bin= --pre=", valued="ABCEMTdefgjmrt"),
    "rsync": _options(
        "-e= --config= --daemon --rsh= --rsync-path= -M= --remote-option=",
        "--backup-dir= --log-file= --only-write-batch= --partial-dir= -T= --temp-dir= --write-batch=",
        "--files-from= --password-file= -f=^. -f=^: -f=merge --filter=^. --filter=^: --filter=merge",
        valued="Bf@",
    ),
    "ruff": _options("", "--cache-dir= -o= --output-file=", style="full"),
    "scp": _options("-D= -F= -o= -S=", valued="cilJPX"),
    "sdiff": _options("--diff-program=", "-o= --output=", valued="IwW"),
    "sed": _options("-f= --file=", "-i[=] --in-place[=]", valued="el"),
    "sftp": _options("-b= -D= -F= -o= -S=", valued="BcilJPRsX"),
    "shfmt": _options("", "-w --write", style="words"),
    "shuf": _options("", "-o= --output=", valued="in"),
    "sort": _options("--compress-program=", "-o= --output= -T= --temporary-directory=", "--files0-from=", valued="kSt"),
    "split": _options("--filter=", valued="abClnt"),
    "ssh-add": _options("-s= -S= -e="),
    "ssh-keygen": _options("-D= -w=", "-f="),
    "svn": _options(
        "--config-dir= --config-option= --diff-cmd= --diff3-cmd= --editor-cmd=", "", "-F= --file= --targets=", style="full"
    ),
    "tar": _options(
        "--checkpoint-action= -f=: --file=: -F= --info-script= --new-volume-script= -I= --use-compress-program= --rmt-command= "
        "--rsh-command= -T= --files-from= --to-command=",
        "-C= --directory= -g= --listed-incremental= --index-file= --one-top-level -P --absolute-names --recursive-unlink "
        "--remove-files --volno-file=",
        "--group-map= --owner-map=",
        valued="bHKLNVX",
        style="letters",
    ),
    "tcpdump": _options("-z=", "-w="),
    "tree": _options("", "-o=", "--fromfile --fromtabfile --gitfile= --infofile=", valued="LPIHT"),
    "ugrep": _options("--filter= --pager --view", "--save-config"),
    "uniq": _options(valued="fsw"),
    "unzip": _options("", "-d="),
    "wc": _options("", "", "--files0-from="),
    "wget": _options(
        "--config= -e= --execute= --use-askpass=",
        "-a= --append-output= --hsts-file= -o= --output-file= -O= --output-document= -P= --directory-prefix= "
        "-n=H --no-host-directories -x --force-directories --cut-dirs= --protocol-directories "
        "--rejected-log= --save-cookies= --warc-file= --warc-tempdir=",
        "--body-file= -i= --input-file= --post-file=",
        valued="ABDIlQRtTUwX",
    ),
    "xmllint": _options("--shell -shell", "-o= -output= --output=", style="words"),
    "xsltproc": _options("--load-trace", "-o= -output= --output= -writesubtree=", style="words"),
    "xxd": _options(style="words"),
    "yq": _options("", "-i --inplace -s= --split-exp="),
    "zip": _options("-T --test --unzip-command=", "-b= -lf= -O= --logfile-path= -m --move --out= --output-file="),
    "zstd": _options("", "-o= --output-dir-flat= --output-dir-mirror= --rm --trace=", valued="DM"),
    "7z": _options("", "-o= -w= -sdel", "@*"),
}  # fmt: skip

GIT_OPTIONS: dict[str, ProgramOptions] = {
    "annotate": _options("", "", "--contents= -S="),
    "archive": _options("", "-o=", "--add-file="),
    "blame": _options("", "", "--contents= --ignore-revs-file= -S=", valued="LCM"),
    "bugreport": _options("", "-o="),
    "checkout-index": _options("", "--prefix="),
    "cherry-pick": _options("--strategy=", valued="mX"),
    "clone": _options("-c= -u=", valued="bjo"),
    "commit": _options("", "", "-F= --file= -t=", valued="cCmSu"),
    "commit-tree": _options("", "", "-F=", valued="mpS"),
    "config": _options("", "", "-f= --file="),
    "diagnose": _options("", "-o="),
    "diff": _options("", "", "--no-index"),
    "format-patch": _options("", "-o=", "--signature-file=", valued="lUv"),
    "grep": _options("-O[=]", "", "--no-index", valued="ABCefm"),
    "merge": _options("-s= --strategy=", "", "-F= --file=", valued="mSX"),
    "notes": _options("", "", "-F= --file=", valued="cCm"),
    "pull": _options("-s= --strategy=", valued="SX"),
    "rebase": _options("-s= --strategy= -x=", valued="CSX"),
    "revert": _options("--strategy=", valued="mX"),
    "tag": _options("", "", "-F= --file=", valued="mnu"),
}
"""Options that mean something else behind another word: `git fetch -u` is harmless."""

HARMLESS_WORDS = {
    "-Wl,": names(
        "--as-needed --no-as-needed -Bdynamic -Bstatic -Bsymbolic -Bsymbolic-functions --build-id --copy-dt-needed-entries "
        "--disable-new-dtags --enable-new-dtags --end-group --export-dynamic -E --fatal-warnings --gc-sections --no-gc-sections "
        "--hash-style --no-undefined --no-whole-archive -O1 -O2 -rpath --rpath -rpath-link --rpath-link -s -soname --soname "
        "--sort-common --start-group --strip-all --strip-debug --whole-archive -z"
    )
}
"""Behind these beginnings of words of the table: what only changes the result."""

READING_WORDS = {
    "auth": names("status"),
    "config": names(
        "--get --get-all --get-regexp --get-urlmatch --list -l get list current-context get-clusters get-contexts get-users view"
    ),
}
"""Words that make a subcommand of the table one that only reads, where they are the first behind it."""

READING_OPTIONS = names(
    "--bool --default= --fixed-value --global --includes --int --local --name-only --null --path --show-origin --show-scope --system "
    "--type= --worktree -z"
)
"""Options of `git config` that change nothing, and may stand before those words."""

OTHER_NAMES = {
    "7za": "7z", "7zr": "7z", "7zz": "7z", "batcat": "bat", "bsdtar": "tar", "cc": "gcc", "clang": "gcc", "clang++": "gcc",
    "fdfind": "fd", "g++": "gcc", "gawk": "awk", "gdate": "date", "gfind": "find", "gpg2": "gpg", "gsed": "sed", "gsort": "sort",
    "gsplit": "split", "gtar": "tar", "mandoc": "man", "mawk": "awk", "nawk": "awk", "ncat": "nc", "netcat": "nc",
    "original-awk": "awk", "wget2": "wget", "zless": "less", "guniq": "uniq", "gshuf": "shuf",
    "ggrep": "grep", "gls": "ls", "gmake": "make", "pip3": "pip", "podman": "docker", "py.test": "pytest",
}  # fmt: skip
"""Programs with the options of another one."""
