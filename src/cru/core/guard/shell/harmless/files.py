"""Programs that show, copy and sort files."""

from __future__ import annotations

GROUPS = {
    "help": "--help --version",
    "sums": "-bctzw --binary --check --tag --text --zero --ignore-missing --quiet --status --strict --warn @help",
}

TABLE = {
    "base64": "-diD -w= --decode --ignore-garbage --wrap= @help",
    "basename": "-az -s= --multiple --suffix= --zero @help",
    "cat": "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting @help",
    "chgrp": "-cfvhRHLP --changes --silent --quiet --verbose --dereference --no-dereference --preserve-root --reference= --recursive "
    "@help",
    "chmod": "-cfvRrwxXstugoa --changes --silent --quiet --verbose --preserve-root --reference= --recursive @help",
    "chown": "-cfvhRHLP --changes --silent --quiet --verbose --dereference --no-dereference --from= --preserve-root --reference= "
    "--recursive @help",
    "cmp": "-blsv -i= -n= --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent @help",
    "column": "-tdeLJx -n= -O= -N= -l= -E= -H= -R= -T= -W= -r= -i= -p= -c= -o= -s= --table --table-name= --table-order= "
    "--table-columns= --table-columns-limit= --table-noextreme= --table-noheadings --table-header-repeat --table-hide= --table-right= "
    "--table-truncate= --table-wrap= --keep-empty-lines --json --tree= --tree-id= --tree-parent= --output-width= --output-separator= "
    "--separator= --fillrows @help",
    "comm": "-123z --check-order --nocheck-order --output-delimiter= --total --zero-terminated @help",
    "cp": "-abdfiHlLnPpRrsTuvxZ -S= --archive --attributes-only --backup[=] --force --interactive --link --dereference --no-clobber "
    "--no-dereference --preserve[=] --no-preserve= --parents --recursive --reflink[=] --remove-destination --sparse= "
    "--strip-trailing-slashes --symbolic-link --suffix= --no-target-directory --update[=] --verbose --one-file-system --context[=] "
    "--debug @help",
    "csplit": "-ksz -b= -n= --suffix-format= --keep-files --suppress-matched --digits= --quiet --silent --elide-empty-files @help",
    "cut": "-nsz -b= -c= -d= -f= --bytes= --characters= --delimiter= --fields= --complement --only-delimited --output-delimiter= "
    "--zero-terminated @help",
    "date": "-Ru -d= -I[=] -r= -j -v= --date= --debug --iso-8601[=] --resolution --rfc-email --rfc-3339= --reference= --utc --universal "
    "@help",
    "df": "-ahHiklPTv -B= -t= -x= --all --block-size= --human-readable --si --inodes --local --no-sync --output[=] --portability --sync "
    "--total --type= --print-type --exclude-type= @help",
    "diff": "-# -qsenycuptTrNiEZbwBadv -C= -U= -W= -F= -x= -S= -I= -D= --normal --brief --report-identical-files --context[=] "
    "--unified[=] --ed --rcs --side-by-side --width= --left-column --suppress-common-lines --show-c-function --show-function-line= "
    "--label= -L= --expand-tabs --initial-tab --tabsize= --suppress-blank-empty --recursive --no-dereference --new-file "
    "--unidirectional-new-file --ignore-file-name-case --no-ignore-file-name-case --exclude= --starting-file= --ignore-case "
    "--ignore-tab-expansion --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines "
    "--ignore-matching-lines= --text --strip-trailing-cr --ifdef= --GTYPE-group-format= --line-format= --old-line-format= "
    "--new-line-format= --unchanged-line-format= --old-group-format= --new-group-format= --changed-group-format= "
    "--unchanged-group-format= --minimal --horizon-lines= --speed-large-files --color[=] --palette= @help",
    "diff3": "-AeE3xXimaTv -L= --show-all --ed --show-overlap --easy-only --overlap-only --merge --text --strip-trailing-cr "
    "--initial-tab --label= @help",
    "dirname": "-z --zero @help",
    "du": "-0abcDHhkLlmPSsx -B= -d= -t= --null --all --apparent-size --block-size= --bytes --total --dereference-args --max-depth= "
    "--human-readable --inodes --dereference --count-links --no-dereference --separate-dirs --si --summarize --threshold= --time[=] "
    "--time-style= --exclude= --one-file-system @help",
    "expand": "-i -t= -# --initial --tabs= @help",
    "fd": "-HIusigFalLp01qhV -d= -E= -t= -e= -S= -o= -c= -j= --glob --hidden --no-hidden --no-ignore --no-ignore-vcs --no-ignore-parent "
    "--unrestricted --case-sensitive --ignore-case --regex --fixed-strings --and= --absolute-path --relative-path --follow --full-path "
    "--print0 --max-depth= --min-depth= --exact-depth= --exclude= --prune --type= --extension= --size= --changed-within= "
    "--changed-before= --changed-after= --owner= --color= --threads= --max-results= --quiet --show-errors --base-directory= "
    "--path-separator= --search-path= --strip-cwd-prefix[=] --one-file-system --format= --no-require-git @help",
    "file": "-vzZbciklLhnN0pPrsd -e= -F= -P= --uncompress --uncompress-noreport --brief --checking-printout --exclude= --exclude-quiet= "
    "--separator= --mime --apple --extension --mime-type --mime-encoding --keep-going --list --dereference --no-dereference --no-buffer "
    "--no-pad --print0 --preserve-date --parameter= --raw --special-files --debug @help",
    "find": "-H -L -P -D= -O* -daystart -follow -regextype= -warn -nowarn -d -depth -help -ignore_readdir_race -maxdepth= -mindepth= "
    "-mount -noignore_readdir_race -noleaf -version -xdev -amin= -anewer= -atime= -cmin= -cnewer= -ctime= -empty -executable -false "
    "-fstype= -gid= -group= -ilname= -iname= -inum= -ipath= -iregex= -iwholename= -links= -lname= -mmin= -mtime= -name= -newer*= "
    "-nogroup -nouser -path= -perm= -readable -regex= -samefile= -size= -true -type= -uid= -used= -user= -wholename= -writable -xtype= "
    "-context= -ls -print -print0 -printf= -prune -quit -not -a -o -and -or -E -x -X -s",
    "fmt": "-cstu -# -p= -w= -g= --crown-margin --prefix= --split-only --tagged-paragraph --uniform-spacing --width= --goal= @help",
    "fold": "-bs -# -w= --bytes --spaces --width= @help",
    "head": "-# -qvz -c= -n= --bytes= --lines= --quiet --silent --verbose --zero-terminated @help",
    "hexdump": "-bcCdoxvhV -L[=] -e= -n= -s= --one-byte-octal --one-byte-char --canonical --two-bytes-decimal --two-bytes-octal "
    "--two-bytes-hex --color[=] --format= --length= --skip= --no-squeezing @help",
    "iconv": "-lcs -f= -t= --from-code= --to-code= --list --silent --verbose @help",
    "id": "-aZgGnruz --context --group --groups --name --real --user --zero @help",
    "join": "-iz -a= -e= -j= -o= -t= -v= -1= -2= --ignore-case --check-order --nocheck-order --header --zero-terminated @help",
    "ln": "-bfiLnPrsTv -S= --backup[=] --force --interactive --logical --no-dereference --physical --relative --symbolic --suffix= "
    "--no-target-directory --verbose @help",
    "ls": "-aAbBcCdDfFgGhHiklLmnNoOpqQrRsStuUvxXZ1@e -I= -T= -w= --all --almost-all --author --escape --block-size= --ignore-backups "
    "--color[=] --directory --dired --classify[=] --file-type --format= --full-time --group-directories-first --no-group "
    "--human-readable --si --dereference-command-line --dereference-command-line-symlink-to-dir --hide= --hyperlink[=] "
    "--indicator-style= --inode --ignore= --kibibytes --dereference --numeric-uid-gid --literal --hide-control-chars "
    "--show-control-chars --quote-name --quoting-style= --reverse --recursive --size --sort= --time= --time-style= --tabsize= --width= "
    "--context --zero @help",
    "md5sum": "@sums",
    "mkdir": "-pvZ -m= --mode= --parents --verbose --context[=] @help",
    "mktemp": "-duqt -p= --directory --dry-run --quiet --suffix= --tmpdir[=] @help",
    "mv": "-bfinTuvZ -S= --backup[=] --force --interactive --no-clobber --strip-trailing-slashes --suffix= --no-target-directory "
    "--update[=] --verbose --context --debug --exchange --no-copy @help",
    "nl": "-p -b= -d= -f= -h= -i= -l= -n= -s= -v= -w= --body-numbering= --section-delimiter= --footer-numbering= --header-numbering= "
    "--line-increment= --join-blank-lines= --number-format= --no-renumber --number-separator= --starting-line-number= --number-width= "
    "@help",
    "od": "-vabcdfilosxw[=] -A= -j= -N= -S= -t= --address-radix= --endian= --skip-bytes= --read-bytes= --strings[=] --format= "
    "--output-duplicates --width[=] --traditional @help",
    "paste": "-sz -d= --delimiters= --serial --zero-terminated @help",
    "readlink": "-femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --silent --verbose --zero "
    "@help",
    "realpath": "-emLPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --relative-to= --relative-base= "
    "--strip --no-symlinks --zero @help",
    "rm": "-fiIrRdv --force --interactive[=] --one-file-system --preserve-root[=] --recursive --dir --verbose @help",
    "rmdir": "-pv --ignore-fail-on-non-empty --parents --verbose @help",
    "sdiff": "-iEZbWBalstdHv -w= -I= --ignore-case --ignore-tab-expansion --ignore-trailing-space --ignore-space-change "
    "--ignore-all-space --ignore-blank-lines --ignore-matching-lines= --strip-trailing-cr --text --width= --left-column "
    "--suppress-common-lines --expand-tabs --tabsize= --minimal --speed-large-files @help",
    "seq": "-w -f= -s= -# --format= --separator= --equal-width @help",
    "sha1sum": "@sums",
    "sha256sum": "@sums",
    "sha512sum": "@sums",
    "shuf": "-erz -i= -n= --echo --input-range= --head-count= --repeat --zero-terminated @help",
    "sort": "-# -bdfgiMhnRrVmsuzcC -k= -S= -t= --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort "
    "--ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort --reverse --sort= --version-sort --batch-size= "
    "--check[=] --debug --key= --merge --stable --buffer-size= --field-separator= --parallel= --unique --zero-terminated @help",
    "split": "-# -dxeu -a= -b= -C= -l= -n= -t= --suffix-length= --additional-suffix= --bytes= --line-bytes= --numeric-suffixes[=] "
    "--hex-suffixes[=] --elide-empty-files --lines= --number= --separator= --unbuffered --verbose @help",
    "stat": "-Lfxtqrs -c= --dereference --file-system --cached= --format= --printf= --terse @help",
    "strings": "-# -adfouwhvV -n= -t= -T= -e= -U= -s= --all --data --print-file-name --bytes= --radix= --include-all-whitespace "
    "--target= --encoding= --unicode= --output-separator= @help",
    "tac": "-br -s= --before --regex --separator= @help",
    "tail": "-# -Ffqrvz -c= -n= -s= --bytes= --follow[=] --lines= --max-unchanged-stats= --pid= --quiet --silent --retry "
    "--sleep-interval= --verbose --zero-terminated @help",
    "tee": "-aip --append --ignore-interrupts --output-error[=] @help",
    "touch": "-acfhm -d= -r= -t= --no-create --date= --no-dereference --reference= --time= @help",
    "tr": "-cCdst --complement --delete --squeeze-repeats --truncate-set1 @help",
    "tree": "-adlfxqNQpugshDFvtcUriASnCXJ -L= -P= -I= -T= --gitignore --ignore-case --matchdirs --metafirst --prune --noreport "
    "--charset= --filelimit= --si --du --timefmt= --inodes --device --dirsfirst --filesfirst --sort[=] --nolinks @help",
    "truncate": "-co -r= -s= --no-create --io-blocks --reference= --size= @help",
    "uname": "-asnrvmpio --all --kernel-name --nodename --kernel-release --kernel-version --machine --processor --hardware-platform "
    "--operating-system @help",
    "uniq": "-cdDiuz -f= -s= -w= --count --repeated --all-repeated[=] --skip-fields= --group[=] --ignore-case --skip-chars= --unique "
    "--zero-terminated --check-chars= @help",
    "wc": "-cmlLw --bytes --chars --lines --max-line-length --words --total= @help",
    "which": "-as --all --skip-alias --skip-dot --skip-functions --skip-tilde @help",
    "xxd": "-a* -b* -capitalize* -C* -cols*= -c*= -d -E* -e* -group*= -g*= -h* -i* -len*= -l*= -name*= -n*= -offset*= -o*= "
    "-p -ps -plain -postscript -R*= -r* -seek*= -skip*= -s*= -u* -v*",
}  # fmt: skip
