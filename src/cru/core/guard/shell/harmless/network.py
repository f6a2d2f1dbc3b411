"""Programs that talk to other machines, and those that show what this one does."""

from __future__ import annotations

GROUPS = {
    "systemctl": "-alqr -n= -o= -p= -t= -P= --all --full --lines= --output= --property= --value --type= --state= --failed --no-pager "
    "--no-legend --plain --user --system --reverse --after --before --recursive --show-types --with-dependencies --quiet --legend= "
    "--no-block --now --no-ask-password --runtime --timestamp= --wait --help --version"
}

TABLE = {
    "curl": "-sSfLgGiIvqNalMBRjV#01234h6: -A= -C= -d= -e= -F= -H= -m= -r= -u= -w= -X= -y= -Y= -z= --append --aws-sigv4= --basic "
    "--ca-native --ciphers= --compressed --connect-timeout= --continue-at= --create-dirs --crlf --curves= --data= --data-ascii= "
    "--data-binary= --data-raw= --data-urlencode= --digest --disable --expect100-timeout= --fail --fail-early --fail-with-body --form= "
    "--form-escape --form-string= --get --globoff --happy-eyeballs-timeout-ms= --head --header= --help[=] --http0.9 --http1.0 --http1.1 "
    "--http2 --http2-prior-knowledge --http3 --http3-only --ignore-content-length --include --ipv4 --ipv6 --json= "
    "--junk-session-cookies --keepalive-time= --limit-rate= --list-only --location --manual --max-filesize= --max-redirs= --max-time= "
    "--next --no-alpn --no-buffer --no-clobber --no-keepalive --no-progress-meter --no-sessionid --noproxy= --oauth2-bearer= --parallel "
    "--parallel-immediate --parallel-max= --path-as-is --post301 --post302 --post303 --progress-bar --proto= --proto-default= "
    "--proto-redir= --range= --rate= --raw --referer= --remote-time --remove-on-error --request= --request-target= --retry= "
    "--retry-all-errors --retry-connrefused --retry-delay= --retry-max-time= --show-error --show-headers --silent --speed-limit= "
    "--speed-time= --ssl --ssl-reqd --styled-output --suppress-connect-headers --tcp-fastopen --tcp-nodelay --time-cond= --tls-max= "
    "--tls13-ciphers= --tlsv1 --tlsv1.0 --tlsv1.1 --tlsv1.2 --tlsv1.3 --tr-encoding --trace-time --url-query= --use-ascii --user= "
    "--user-agent= --verbose --version --write-out= --xattr --no-location --no-compressed --no-silent",
    "dmesg": "-dehHkLPpruTtwWxSV -f= -l= -n= -s= --facility= --human --kernel --color[=] --level= --console-level= --nopager --raw "
    "--reltime --syslog --buffer-size= --userspace --ctime --notime --time-format= --follow --follow-new --decode --since= --until= "
    "--show-delta --json --force-prefix --noescape --help --version",
    "free": "-bkmghltvwV -s= -c= --bytes --kilo --mega --giga --tera --kibi --mebi --gibi --tebi --human --si --lohi --total "
    "--committed --seconds= --count= --wide --help --version",
    "journalctl": "-mkrxafqeNh -S= -U= -c= -b[=] -u= -t= -p= -g= -o= -n[=] -F= --system --user --merge --since= --until= --cursor= "
    "--after-cursor= --boot[=] --unit= --user-unit= --identifier= --priority= --facility= --grep= --case-sensitive[=] --dmesg --output= "
    "--output-fields= --lines[=] --reverse --show-cursor --utc --catalog --no-hostname --no-full --all --follow --no-tail --quiet "
    "--no-pager --pager-end --help --version --fields --field= --list-boots --disk-usage --header --list-catalog --verify --sync",
    "pgrep": "-lavwcfinoxLAhV -d= -g= -G= -O= -P= -s= -t= -u= -U= -r= --list-name --list-full --inverse --count --full --pgroup= "
    "--group= --ignore-case --newest --oldest --older= --parent= --session= --terminal= --euid= --uid= --exact --delimiter= "
    "--runstates= --ignore-ancestors --help --version",
    "ps": "-AeadNFfHjlMPyLmTcVwrvxSk= -C= -G= -g= -p= -q= -s= -t= -u= -U= -O= -o= --deselect --Group= --group= --pid= --ppid= "
    "--quick-pid= --sid= --tty= --user= --User= --format= --context --headers --no-headers --no-heading --cols= --columns= --width= "
    "--rows= --lines= --forest --sort= --cumulative --info --version --help[=]",
    "rsync": "-vqcarRbudlLkKHpEAXogDtUNOJSnWxmIyzC0s8hPi46VF -B= -f= -@= --verbose --info= --debug= --quiet --no-motd --checksum "
    "--archive --recursive --relative --no-relative --no-implied-dirs --no-owner --no-group --no-perms --no-times --no-o --no-g --no-p "
    "--no-t --no-recursive --no-links --backup --suffix= --update --inplace --append --append-verify --dirs --mkpath --links "
    "--copy-links --safe-links --munge-links --copy-unsafe-links --copy-dirlinks --keep-dirlinks --hard-links --perms --executability "
    "--chmod= --acls --xattrs --owner --group --devices --specials --times --atimes --crtimes --omit-dir-times --omit-link-times "
    "--sparse --preallocate --dry-run --whole-file --no-whole-file --checksum-choice= --one-file-system --block-size= --existing "
    "--ignore-existing --del --delete --delete-before --delete-during --delete-delay --delete-after --delete-excluded "
    "--ignore-missing-args --delete-missing-args --ignore-errors --force --max-delete= --max-size= --min-size= --max-alloc= --partial "
    "--delay-updates --prune-empty-dirs --numeric-ids --usermap= --groupmap= --chown= --timeout= --contimeout= --ignore-times "
    "--size-only --modify-window= --fuzzy --compress --no-compress --compress-choice= --compress-level= --skip-compress= --cvs-exclude "
    "--filter= --exclude= --include= --from0 --secluded-args --protect-args --port= --blocking-io --outbuf= --stats --8-bit-output "
    "--human-readable --no-human-readable --progress --itemize-changes --out-format= --log-file-format= --list-only --bwlimit= "
    "--stop-after= --stop-at= --fsync --protocol= --iconv= --checksum-seed= --ipv4 --ipv6 --version --help",
    "scp": "-346BCOpqRrTv -c= -i= -l= -P= -X=",
    "sftp": "-46aBCfNpqrv -c= -i= -l= -P= -R= -X=",
    "ssh-add": "-lLvqcdDtxX -t= -E= -T= -h",
    "ssh-keygen": "-lvqBeiy -t= -b= -C= -N= -E= -m= -F= -a=",
    "systemctl": "@systemctl",
    "systemctl "
    "cat|get-default|is-active|is-enabled|is-failed|list-dependencies|list-jobs|list-sockets|list-timers|list-unit-files|list-units|show|status|start|stop|restart|reload|try-restart|reload-or-restart|enable|disable|"
    "daemon-reload|reset-failed|help": "@systemctl",
    "wget": "-dqvFcNSrkmpKEHLh46V -n= -A= -B= -D= -I= -l= -Q= -R= -t= -T= -U= -w= -X= --no-verbose --verbose --quiet --debug --tries= "
    "--retry-connrefused --retry-on-http-error= --no-clobber --continue --start-pos= --progress= --show-progress --timestamping "
    "--no-if-modified-since --no-use-server-timestamps --server-response --spider --timeout= --dns-timeout= --connect-timeout= "
    "--read-timeout= --wait= --waitretry= --random-wait --no-proxy --quota= --limit-rate= --no-dns-cache --restrict-file-names= "
    "--ignore-case --inet4-only --inet6-only --prefer-family= --user= --password= --no-iri --local-encoding= --remote-encoding= "
    "--no-directories --http-user= --http-password= "
    "--no-cache --default-page= --adjust-extension --ignore-length --header= --compression= --max-redirect= --referer= --save-headers "
    "--user-agent= --no-http-keep-alive --no-cookies --keep-session-cookies --post-data= --method= --body-data= --content-on-error "
    "--auth-no-challenge --secure-protocol= --https-only --ciphers= --no-hsts --no-netrc --no-config --no-glob --no-passive-ftp "
    "--recursive --level= --convert-links --backup-converted --mirror --page-requisites --strict-comments --accept= --reject= "
    "--accept-regex= --reject-regex= --regex-type= --domains= --exclude-domains= --follow-ftp --follow-tags= --ignore-tags= "
    "--span-hosts --relative --include-directories= --exclude-directories= --no-parent --help --version --report-speed= --force-html",
}  # fmt: skip
