"""Programs that search, edit and format text, and archives."""

from __future__ import annotations

GROUPS = {
    "help": "--help --version",
    "grep": "-# -EFGPiwxzsvVbnHhoqaIrRLlcTZUy -e= -m= -d= -D= -B= -A= -C= --extended-regexp --fixed-strings --basic-regexp "
    "--perl-regexp --regexp= --ignore-case --no-ignore-case --word-regexp --line-regexp --null-data --no-messages --invert-match "
    "--max-count= --byte-offset --line-number --line-buffered --with-filename --no-filename --label= --only-matching --quiet --silent "
    "--binary-files= --text --directories= --devices= --recursive --dereference-recursive --include= --exclude= --exclude-dir= "
    "--files-without-match --files-with-matches --count --initial-tab --null --before-context= --after-context= --context= "
    "--group-separator= --no-group-separator --color[=] --colour[=] --binary @help",
    "gzip": "-# -acdfhklLnNqrtvV -S= --ascii --stdout --to-stdout --decompress --uncompress --force --keep --list --license --no-name "
    "--name --quiet --recursive --rsyncable --suffix= --synchronous --test --verbose --fast --best @help",
    "xz": "-# -zdtlkfceqvhHV -T= -M= --compress --decompress --test --list --keep --force --stdout --to-stdout --extreme --threads= "
    "--quiet --verbose --long-help --memlimit= --no-sparse --check= --block-size= --format= --single-stream --robot @help",
}

TABLE = {
    "7z": "-y -m* -t* -r* -p* -bb* -bd* -bt* -ba* -slt* -ao* -x!* -i!* -v* -ssc* -scs* -spf2* -sni* -snl* -u*",
    "awk": "-cCgGhIkMnNOPrsStVb -F= -v= -e= -L[=] --field-separator= --assign= --source= --characters-as-bytes --traditional "
    "--copyright --gen-pot --trace --csv --bignum --use-lc-numeric --non-decimal-data --optimize --no-optimize --posix --re-interval "
    "--sandbox --lint[=] --lint-old @help",
    "bat": "-ApdnfuhVPS -l= -H= -m= -r= --show-all --plain --paging= --language= --highlight-line= --file-name= --diff --diff-context= "
    "--tabs= --wrap= --chop-long-lines --terminal-width= --number --color= --italic-text= --decorations= --force-colorization "
    "--map-syntax= --ignored-suffix= --theme= --list-themes --style= --line-range= --list-languages --unbuffered --diagnostic -L @help",
    "bzip2": "-# -hdzkftcqvLVs --decompress --compress --keep --force --test --stdout --quiet --verbose --license --small --fast --best "
    "@help",
    "cpio": "-itopdmvu0aLnBclrsS -H= --create --extract --list --pass-through --make-directories --preserve-modification-time --verbose "
    "--unconditional --null --quiet --no-absolute-filenames --format= --dot --nonmatching @help",
    "egrep": "@grep",
    "fgrep": "@grep",
    "grep": "@grep",
    "gunzip": "@gzip",
    "gzip": "@gzip",
    "zcat": "@gzip",
    "zgrep": "@grep",
    "jq": "-cnesrRCMSjahVb --arg= --argjson= --args --jsonargs --tab --indent= --seq --stream --stream-errors --raw-output "
    "--raw-output0 --compact-output --null-input --exit-status --slurp --raw-input --color-output --monochrome-output --sort-keys "
    "--unbuffered --join-output --ascii-output --binary --build-configuration @help",
    "less": "-aABcCdeEfFgGiIJKLmMnNqQrRsSuUVwWX -b= -h= -j= -p= -P= -t= -x= -y= -z= -# --RAW-CONTROL-CHARS --raw-control-chars "
    "--LINE-NUMBERS --line-numbers --chop-long-lines --no-init --quit-if-one-screen --quit-at-eof --QUIT-AT-EOF --ignore-case "
    "--IGNORE-CASE --squeeze-blank-lines --no-lessopen --pattern= --tabs= --window= --status-column --mouse @help",
    "man": "-dfkKwWciIau7tZV -R= -L= -m= -S= -s= -e= -E= --debug --default --warnings[=] --whatis --apropos --global-apropos --where "
    "--path --location --where-cat --location-cat --recode= --locale= --systems= --sections= --extension= --ignore-case --match-case "
    "--regex --wildcard --names-only --all --update --no-subpages --ascii --encoding= --no-hyphenation --nh --no-justification --nj "
    "@help",
    "patch": "-lcnuNREZTbtfsv -p= -F= -i= -D= -V= --strip= --fuzz= --input= --ignore-whitespace --context --normal --unified --forward "
    "--reverse --remove-empty-files --set-utc --set-time --backup --backup-if-mismatch --no-backup-if-mismatch --batch --force --quiet "
    "--silent --verbose --dry-run --posix --ifdef= --merge[=] --version-control= --quoting-style= --reject-format= --binary "
    "--read-only= @help",
    "rg": "-# -bsclFLhivnxUIN0oPpqSauVHw. -A= -B= -C= -E= -d= -e= -g= -j= -M= -m= -r= -t= -T= --after-context= --auto-hybrid-regex "
    "--before-context= --binary --block-buffered --byte-offset --case-sensitive --color= --colors= --column --context= "
    "--context-separator= --no-context-separator --count --count-matches --crlf --debug --dfa-size-limit= --encoding= --engine= "
    "--regexp= --field-context-separator= --field-match-separator= --files --files-with-matches --files-without-match --fixed-strings "
    "--follow --generate= --glob= --glob-case-insensitive --heading --hidden --hyperlink-format= --iglob= --ignore-case "
    "--ignore-file-case-insensitive --include-zero --invert-match --json --line-buffered --line-number --line-regexp --max-columns= "
    "--max-columns-preview --max-count= --max-depth= --maxdepth= --max-filesize= --mmap --multiline --multiline-dotall --no-config "
    "--no-filename --no-heading --no-ignore --no-ignore-dot --no-ignore-exclude --no-ignore-files --no-ignore-global "
    "--no-ignore-messages --no-ignore-parent --no-ignore-vcs --no-line-number --no-messages --no-mmap --no-pcre2-unicode --no-pre "
    "--no-require-git --no-unicode --no-hidden --no-follow --null --null-data --one-file-system --only-matching --passthru "
    "--path-separator= --pcre2 --pcre2-unicode --pcre2-version --pre-glob= --pretty --quiet --regex-size-limit= --replace= --smart-case "
    "--sort= --sortr= --sort-files --stats --stop-on-nonmatch --text --threads= --trace --trim --type= --type-add= --type-clear= "
    "--type-list --type-not= --unicode --unrestricted --vimgrep --with-filename --word-regexp @help",
    "sed": "-nErsuza -e= -l= --quiet --silent --debug --expression= --follow-symlinks --line-length= --posix --regexp-extended "
    "--separate --sandbox --unbuffered --null-data @help",
    "tar": "-AcdrtuxGnSkUWOmpsBiajJzZhlRvwof= -b= -H= -K= -N= -V= --catenate --concatenate --create --delete --diff --compare --append "
    "--list --update --extract --get --file= --sparse --exclude= --exclude-backups --exclude-caches --exclude-vcs --exclude-vcs-ignores "
    "--exclude-caches-all --overwrite-dir --same-order --keep-directory-symlink --no-recursion --recursion --anchored --no-anchored "
    "--ignore-case --no-ignore-case --wildcards --no-wildcards --wildcards-match-slash --no-wildcards-match-slash --keep-newer-files "
    "--keep-old-files --skip-old-files --overwrite --no-overwrite-dir --unlink-first --verify --to-stdout --touch --group= --owner= "
    "--mode= --mtime= --clamp-mtime --no-same-owner --same-owner --no-same-permissions --same-permissions --preserve-permissions "
    "--numeric-owner --sort= --delay-directory-restore --acls --no-acls --selinux --no-selinux --xattrs --no-xattrs --force-local "
    "--blocking-factor= --read-full-records --ignore-zeros --format= --old-archive --portability --posix --label= --auto-compress "
    "--no-auto-compress --bzip2 --xz --lzip --lzma --lzop --zstd --gzip --gunzip --ungzip --compress --uncompress --hard-dereference "
    "--dereference --starting-file= --newer= --newer-mtime= --after-date= --one-file-system --strip-components= --full-time "
    "--check-links --quoting-style= --block-number --show-defaults --show-omitted-dirs --show-stored-names --show-transformed-names "
    "--totals[=] --utc --verbose --warning= --interactive --confirmation --restrict --occurrence[=] --checkpoint[=] --test-label "
    "--ignore-failed-read --seek --atime-preserve[=] @help",
    "unxz": "@xz",
    "unzip": "-# -lqtvnoujaLCpzfUVMX -P= -x -Z",
    "xz": "@xz",
    "xzcat": "@xz",
    "yq": "-PCMNreojnIvpV -e -o= -p= -I= --prettyPrint --colors --no-colors --no-doc --null-input --output-format= --input-format= "
    "--indent= --exit-status --unwrapScalar[=] --expression= --verbose --raw-output --arg= --argjson= -c @help",
    "zip": "-# -rqjuvfdeyXDlgFSAJoczk -x= -i= -n= -P= -t= -s= -Z= --recurse-paths --quiet --junk-paths --update --freshen --delete "
    "--encrypt --symlinks --no-extra --no-dir-entries --exclude= --include= --verbose @help",
    "zstd": "-# -kdfhHVcvqrlt -T= -M= --keep --decompress --uncompress --compress --force --stdout --verbose --quiet --ultra --fast[=] "
    "--adapt[=] --long[=] --single-thread --auto-threads= --rsyncable --exclude-compressed --stream-size= --size-hint= --no-dictID "
    "--format= --test --check --no-check --threads= --list --memory= --progress --no-progress --sparse --no-sparse @help",
}  # fmt: skip
