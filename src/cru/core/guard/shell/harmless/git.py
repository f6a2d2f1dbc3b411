"""git. Of each option without a value `--no-…` is known, too."""

from __future__ import annotations

GROUPS = {
    "diff": "-auzpsRWbwDBMC -U[=] -l= -S= -G= -I= -M[=] -C[=] -B[=] -X[=] --abbrev[=] --anchored= --binary --break-rewrites[=] --check "
    "--color[=] --color-moved[=] --color-moved-ws= --color-words[=] --compact-summary --cumulative --default-prefix --diff-algorithm= "
    "--diff-filter= --dirstat[=] --dirstat-by-file[=] --dst-prefix= --exit-code --no-ext-diff --find-copies[=] --find-copies-harder "
    "--find-object= --find-renames[=] --follow --full-index --function-context --histogram --ignore-all-space --ignore-blank-lines "
    "--ignore-cr-at-eol --ignore-matching-lines= --ignore-space-at-eol --ignore-space-change --ignore-submodules[=] --indent-heuristic "
    "--inter-hunk-context= --irreversible-delete --ita-invisible-in-index --ita-visible-in-index --line-prefix= --minimal --name-only "
    "--name-status --no-patch --no-prefix --no-renames --numstat --output-indicator-context= --output-indicator-new= "
    "--output-indicator-old= --patch --patch-with-raw --patch-with-stat --patience --pickaxe-all --pickaxe-regex --quiet --raw "
    "--relative[=] --rename-empty --rotate-to= --shortstat --skip-to= --src-prefix= --stat[=] --stat-count= --stat-graph-width= "
    "--stat-name-width= --stat-width= --submodule[=] --summary --text --textconv --unified[=] --word-diff[=] --word-diff-regex= "
    "--ws-error-highlight= -c --cc --combined-all-paths --diff-merges= --dd --remerge-diff -m -t",
    "revisions": "-n= -# -i -E -F -P -g --max-count= --skip= --since= --after= --since-as-filter= --until= --before= --author= "
    "--committer= --grep-reflog= --grep= --all-match --invert-grep --regexp-ignore-case --basic-regexp --extended-regexp "
    "--fixed-strings --perl-regexp --remove-empty --merges --min-parents= --max-parents= --no-min-parents --no-max-parents "
    "--first-parent --exclude-first-parent-only --not --all --branches[=] --tags[=] --remotes[=] --glob= --exclude= --exclude-hidden= "
    "--reflog --alternate-refs --single-worktree --ignore-missing --bisect --stdin --cherry-mark --cherry-pick --left-only --right-only "
    "--cherry --walk-reflogs --merge --boundary --simplify-by-decoration --show-pulls --full-history --dense --sparse --simplify-merges "
    "--ancestry-path[=] --date-order --author-date-order --topo-order --reverse --no-walk[=] --do-walk --parents --children "
    "--left-right --full-diff --in-commit-order --maximal-only",
    "pretty": "--pretty[=] --format= --abbrev-commit --oneline --encoding= --expand-tabs[=] --notes[=] --show-notes[=] --standard-notes "
    "--show-signature --relative-date --date= --graph --show-linear-break[=] --decorate[=] --decorate-refs= --decorate-refs-exclude= "
    "--clear-decorations --source --mailmap --use-mailmap --log-size -L= -q -r --root",
    "log": "@diff @revisions @pretty",
    "paths": "--pathspec-file-nul",
    "merging": "-eq --edit --cleanup= --signoff --stat --summary --squash --commit --ff --ff-only --log[=] --progress --autostash "
    "--allow-unrelated-histories --strategy-option= -X= --verify-signatures --quiet --verbose -v --compact-summary -n",
    "fetching": "--all --append --atomic --auto-gc --auto-maintenance --depth= --deepen= --dry-run --force --ipv4 --ipv6 --jobs= --keep "
    "--multiple --negotiate-only --negotiation-tip= --prefetch --progress --prune --prune-tags --quiet --recurse-submodules[=] "
    "--refetch --refmap= --set-upstream --shallow-exclude= --shallow-since= --show-forced-updates --stdin --tags --unshallow "
    "--update-head-ok --update-shallow --filter= --verbose --write-commit-graph --write-fetch-head --porcelain -afkmnpqtuv46 -P -j= "
    "--server-option= -o=",
    "listing": "--column[=] --color[=] --contains[=] --format= --ignore-case --merged[=] --points-at= --sort= -i --omit-empty "
    "--no-contains[=] --no-merged[=]",
}

TABLE = {
    "git": "--version --help --exec-path --html-path --man-path --info-path -v -h",
    "git add": "-nvipefuNA --all --chmod= --dry-run --edit --force --ignore-errors --ignore-missing --ignore-removal --intent-to-add "
    "--interactive --patch --refresh --renormalize --sparse --update --verbose --warn-embedded-repo @paths",
    "git am": "-i3qsukmcr --3way --abort --allow-empty --committer-date-is-author-date --continue --empty= --exclude= --ignore-date "
    "--ignore-space-change --ignore-whitespace --include= --interactive --keep --keep-cr --keep-non-patch --message-id --patch-format= "
    "--quiet --quit --quoted-cr= --reject --rerere-autoupdate --resolved --retry --scissors --show-current-patch[=] --signoff --skip "
    "--utf8 --whitespace= -C= -p=",
    "git annotate": "@blame",
    "git apply": "-N3zRvq -p= -C= --3way --add --allow-empty --allow-overlap --apply --cached --check --directory= --exclude= "
    "--ignore-space-change --ignore-whitespace --inaccurate-eof --include= --index --intent-to-add --numstat --ours --quiet --recount "
    "--reject --reverse --stat --summary --theirs --union --unidiff-zero --verbose --whitespace=",
    "git archive": "-vl -# --list --format= --prefix= --verbose --worktree-attributes --mtime=",
    "git bisect": "--term-new= --term-old= --term-good= --term-bad= --no-checkout --first-parent",
    "git blame": "@blame",
    "git branch": "@listing -avqtrdDmMcClfi -u= --abbrev[=] --all --copy --create-reflog --delete --force --list --move --quiet "
    "--recurse-submodules --remotes --set-upstream-to= --show-current --track[=] --unset-upstream --verbose",
    "git cat-file": "-eptsz --allow-unknown-type --batch[=] --batch-all-objects --batch-check[=] --batch-command[=] --buffer --filter= "
    "--follow-symlinks --mailmap --unordered --use-mailmap",
    "git check-attr": "-az --all --cached --source= --stdin",
    "git check-ignore": "-qvzn --no-index --index --non-matching --quiet --stdin --verbose",
    "git check-mailmap": "--stdin",
    "git check-ref-format": "--allow-onelevel --branch --normalize --print --refspec-pattern",
    "git checkout": "-b= -B= -lqmdtf23pU= --conflict= --detach --force --guess --ignore-other-worktrees --ignore-skip-worktree-bits "
    "--merge --orphan= --ours --overlay --overwrite-ignore --patch --progress --quiet --recurse-submodules[=] --theirs --track[=] "
    "@paths",
    "git checkout-index": "-afqnuz --all --force --ignore-skip-worktree-bits --index --create --quiet --stage= --stdin --temp",
    "git cherry": "-v --abbrev[=] --verbose",
    "git cherry-pick": "-nesx -m= -X= --abort --allow-empty --allow-empty-message --cleanup= --commit --continue --edit --empty= --ff "
    "--keep-redundant-commits --mainline= --quit --rerere-autoupdate --signoff --skip --strategy-option=",
    "git clean": "-qnfidxX -e= --dry-run --exclude= --force --interactive --quiet",
    "git clone": "-vqnls46 -j= -o= -b= --also-filter-submodules --bare --branch= --checkout --depth= --dissociate --filter= --hardlinks "
    "--ipv4 --ipv6 --jobs= --local --mirror --origin= --progress --quiet --recurse-submodules[=] --recursive[=] --reject-shallow "
    "--remote-submodules --revision= --server-option= --shallow-exclude= --shallow-since= --shallow-submodules --shared --single-branch "
    "--sparse --tags --verbose",
    "git commit": "-qvseaipozm= -c= -C= -u[=] -m= --ahead-behind --all --allow-empty --allow-empty-message --amend --author= --branch "
    "--cleanup= --date= --dry-run --edit --fixup= --include --interactive --long --message= --null --only --patch --porcelain "
    "--post-rewrite --quiet --reedit-message= --reset-author --reuse-message= --short --signoff --squash= --status --trailer= "
    "--untracked-files[=] --verbose @paths",
    "git commit-graph": "--append --changed-paths --expire-time= --max-commits= --progress --reachable --shallow --size-multiple= "
    "--split[=] --stdin-commits --stdin-packs --max-new-filters=",
    "git config": "-lz --add --all --append --bool --bool-or-int --comment= --default= --expiry-date --fixed-value --get --get-all "
    "--get-color --get-colorbool --get-regexp --get-urlmatch --global --includes --int --list --local --name-only --null --path "
    "--regexp --remove-section --rename-section --replace-all --show-names --show-origin --show-scope --system --type= --unset "
    "--unset-all --url= --value= --worktree",
    "git count-objects": "-vH --human-readable --verbose",
    "git describe": "--abbrev[=] --all --always --broken[=] --candidates= --contains --debug --dirty[=] --exact-match --exclude= "
    "--first-parent --long --match= --tags",
    "git diff": "@diff -123 -0 -q --base --ours --theirs --cached --staged --merge-base",
    "git diff-files": "@diff -0123q --base --ours --theirs",
    "git diff-index": "@diff --cached --merge-base",
    "git diff-tree": "@diff @pretty -r -v --always --merge-base --no-commit-id --root --stdin",
    "git fast-export": "@revisions --anonymize --fake-missing-tagger --full-tree --mark-tags --data --progress= --reencode= "
    "--reference-excluded-parents --refspec= --show-original-ids --signed-tags= --tag-of-filtered-object= --use-done-feature",
    "git fetch": "@fetching",
    "git fmt-merge-msg": "-m= --into-name= --log[=] --message=",
    "git for-each-ref": "@listing --count= --shell --perl --python --tcl --stdin --start-after= --include-root-refs",
    "git format-patch": "@diff -# -nNskpq -v= --add-header= --attach[=] --base= --cc= --cover-from-description= --cover-letter "
    "--creation-factor= --encode-email-headers --filename-max-length= --force-in-body-from --from[=] --ignore-if-in-upstream "
    "--in-reply-to= --inline[=] --interdiff= --keep-subject --notes[=] --numbered --numbered-files --progress --quiet --range-diff= "
    "--reroll-count= --rfc[=] --root --signature= --signoff --start-number= --stdout --subject-prefix= --suffix= --thread[=] --to= "
    "--zero-commit",
    "git fsck": "-v --cache --connectivity-only --dangling --full --name-objects --progress --reflogs --root --strict --tags "
    "--unreachable --verbose --references",
    "git gc": "-q --aggressive --auto --cruft --detach --force --keep-largest-pack --max-cruft-size= --prune[=] --quiet",
    "git get-tar-commit-id": "",
    "git grep": "-viwaIrEGFPnhHlLzocpWq -# -C= -B= -A= -e= -m= --after-context= --all-match --and --basic-regexp --before-context= "
    "--break --cached --color[=] --column --context= --count --exclude-standard --ext-grep --extended-regexp --files-with-matches "
    "--files-without-match --fixed-strings --full-name --function-context --heading --ignore-case --index --invert-match --line-number "
    "--max-count= --max-depth= --name-only --not --null --only-matching --or --perl-regexp --quiet --recurse-submodules --recursive "
    "--show-function --text --threads= --untracked --word-regexp --no-textconv --no-open-files-in-pager",
    "git hash-object": "-w -t= --literally --no-filters --path= --stdin",
    "git help": "-agcv --all --aliases --developer-interfaces --external-commands --guides --user-interfaces --verbose",
    "git init": "-q -b= --bare --initial-branch= --object-format= --quiet --ref-format= --shared[=]",
    "git interpret-trailers": "--divider --if-exists= --if-missing= --only-input --only-trailers --parse --trailer= --trim-empty "
    "--unfold --where=",
    "git log": "@log",
    "git ls-files": "-ztvfcdmoiskuC -x= --abbrev[=] --cached --debug --deduplicate --deleted --directory --empty-directory --eol "
    "--error-unmatch --exclude-standard --exclude= --format= --full-name --ignored --killed --modified --others --recurse-submodules "
    "--resolve-undo --sparse --stage --unmerged --with-tree=",
    "git ls-remote": "-qthb -o= --branches --exit-code --get-url --heads --quiet --refs --server-option= --sort= --symref --tags",
    "git ls-tree": "-drtzl --abbrev[=] --format= --full-name --full-tree --long --name-only --name-status --object-only",
    "git merge": "@merging -m= --abort --continue --into-name= --message= --overwrite-ignore --quit --rerere-autoupdate",
    "git merge-base": "-a --all --fork-point --independent --is-ancestor --octopus",
    "git merge-file": "-pq -L= --diff3 --diff-algorithm= --marker-size= --object-id --ours --quiet --stdout --theirs --union --zdiff3",
    "git merge-tree": "-z -X= --allow-unrelated-histories --merge-base= --messages --name-only --quiet --stdin --strategy-option= "
    "--trivial-merge --write-tree",
    "git mktree": "-z --batch --missing",
    "git mv": "-vnfk --dry-run --force --sparse --verbose",
    "git name-rev": "--all --always --annotate-stdin --exclude= --name-only --peel-tag --refs= --stdin --tags --undefined",
    "git notes": "-vnqsf -m= -c= -C= --abort --allow-empty --commit --dry-run --force --ignore-missing --message= --quiet --ref= "
    "--reedit-message= --reuse-message= --separator= --stdin --stripspace --verbose",
    "git pack-refs": "--all --auto --exclude= --include= --prune",
    "git patch-id": "--stable --unstable --verbatim",
    "git prune": "-nv --dry-run --exclude-promisor-objects --expire= --progress --verbose",
    "git pull": "@merging @fetching -r[=] --rebase[=]",
    "git push": "-vqdnfu46 -o= --all --atomic --branches --delete --dry-run --follow-tags --force --force-if-includes "
    "--force-with-lease[=] --ipv4 --ipv6 --mirror --porcelain --progress --prune --push-option= --quiet --recurse-submodules= --repo= "
    "--set-upstream --tags --thin --verbose",
    "git range-diff": "@diff --creation-factor= --dual-color --left-only --notes[=] --right-only",
    "git read-tree": "-vmuinq --aggressive --debug-unpack --dry-run --empty --prefix= --quiet --recurse-submodules --reset --trivial "
    "--sparse-checkout --verbose",
    "git rebase": "-qvnfmir[=] -C= -X= --abort --allow-empty-message --apply --autosquash --autostash --committer-date-is-author-date "
    "--continue --edit-todo --empty= --ff --force-rebase --fork-point --ignore-date --ignore-whitespace --interactive --keep-base "
    "--keep-empty --merge --onto= --quiet --quit --reapply-cherry-picks --rebase-merges[=] --rerere-autoupdate --reset-author-date "
    "--root --show-current-patch --signoff --skip --stat --strategy-option= --update-refs --verbose --whitespace=",
    "git reflog": "@log --all --dry-run --expire= --expire-unreachable= --rewrite --single-worktree --stale-fix --updateref --verbose",
    "git remote": "-vfdap -t= -m= --add --all --auto --cached --delete --dry-run --fetch --master= --mirror[=] --progress --prune "
    "--push --tags --track= --verbose -n",
    "git repack": "-aAdfFnqlbikm --cruft --cruft-expiration= --delta-islands --depth= --filter= --geometric= --keep-pack= "
    "--keep-unreachable --local --max-pack-size= --pack-kept-objects --quiet --threads= --unpack-unreachable= --window-memory= "
    "--window= --write-bitmap-index --write-midx -g=",
    "git replace": "-ldegf --convert-graft-file --delete --edit --force --format= --graft --list --raw",
    "git rerere": "--rerere-autoupdate",
    "git reset": "-qpN --hard --intent-to-add --keep --merge --mixed --patch --quiet --recurse-submodules --refresh --soft @paths",
    "git restore": "-SWqm23p -s= --conflict= --ignore-skip-worktree-bits --ignore-unmerged --merge --ours --overlay --patch --progress "
    "--quiet --recurse-submodules --source= --staged --theirs --worktree @paths",
    "git rev-list": "@log --bisect-all --bisect-vars --count --disk-usage[=] --filter= --header --missing= --objects --objects-edge "
    "--object-names --quiet --timestamp --unpacked --use-bitmap-index --commit-header --exclude-promisor-objects --filter-print-omitted "
    "--indexed-objects --verify-objects --test-bitmap --progress=",
    "git rev-parse": "-q --abbrev-ref[=] --absolute-git-dir --all --branches[=] --default= --disambiguate= --exclude= --flags "
    "--git-common-dir --git-dir --git-path= --glob= --is-bare-repository --is-inside-git-dir --is-inside-work-tree "
    "--is-shallow-repository --local-env-vars --no-flags --no-revs --not --path-format= --prefix= --quiet --remotes[=] --revs-only "
    "--shared-index-path --short[=] --show-cdup --show-object-format[=] --show-prefix --show-ref-format "
    "--show-superproject-working-tree --show-toplevel --since= --after= --until= --before= --sq --symbolic --symbolic-full-name "
    "--tags[=] --verify",
    "git revert": "-nes -m= -X= --abort --cleanup= --commit --continue --edit --mainline= --quit --reference --rerere-autoupdate "
    "--signoff --skip --strategy-option=",
    "git rm": "-nqfr --cached --dry-run --force --ignore-unmatch --quiet --sparse @paths",
    "git shortlog": "@log -cnsew[=] --committer --email --group= --numbered --summary",
    "git show": "@log",
    "git show-branch": "-arg[=] --all --color[=] --current --date-order --independent --list --merge-base --more= --name --reflog[=] "
    "--remotes --sha1-name --sparse --topics --topo-order",
    "git show-ref": "-dqs[=] --abbrev[=] --branches --dereference --exclude-existing[=] --exists --hash[=] --head --heads --quiet "
    "--tags --verify",
    "git sparse-checkout": "--cone --sparse-index --skip-checks --stdin",
    "git stage": "-nvipefuNA --all --dry-run --force --intent-to-add --patch --update --verbose",
    "git stash": "@diff -pSkuaqm= --all --include-untracked --index --keep-index --label-ours= --label-theirs= --label-base= --message= "
    "--only-untracked --patch --quiet --staged @revisions @pretty @paths",
    "git status": "-vsbzu[=] -M[=] --ahead-behind --branch --column[=] --find-renames[=] --ignore-submodules[=] --ignored[=] --long "
    "--null --porcelain[=] --renames --short --show-stash --untracked-files[=] --verbose",
    "git stripspace": "-sc --comment-lines --strip-comments",
    "git submodule": "-qfbN --all --branch= --cached --checkout --default --depth= --files --filter= --force --init --merge --name= "
    "--no-fetch --progress --quiet --rebase --recommend-shallow --recursive --reference= --remote --single-branch --summary-limit= -n= "
    "-b= --jobs= -j=",
    "git switch": "-c= -C= -qmdtf --conflict= --create= --detach --discard-changes --force --force-create= --guess "
    "--ignore-other-worktrees --merge --orphan= --overwrite-ignore --progress --quiet --recurse-submodules[=] --track[=]",
    "git symbolic-ref": "-qd -m= --delete --quiet --recurse --short",
    "git tag": "@listing -ldaefi -n[=] -m= --annotate --cleanup= --create-reflog --delete --edit --force --list --message= --trailer=",
    "git update-index": "-qzg --add --again --assume-unchanged --cacheinfo= --chmod= --clear-resolve-undo --force-remove "
    "--force-write-index --ignore-missing --ignore-skip-worktree-entries --ignore-submodules --index-info --index-version= --info-only "
    "--really-refresh --refresh --remove --replace --skip-worktree --split-index --stdin --unmerged --unresolve --untracked-cache "
    "--verbose",
    "git update-ref": "-dz -m= --batch-updates --create-reflog --deref --stdin",
    "git var": "-l",
    "git verify-pack": "-vs --stat-only --verbose",
    "git version": "--build-options",
    "git whatchanged": "@log",
    "git worktree": "-fdvnqz -b= -B= --checkout --detach --dry-run --expire= --force --guess-remote --lock --orphan --porcelain --quiet "
    "--reason= --relative-paths --track --verbose",
    "git write-tree": "--missing-ok --prefix=",
}  # fmt: skip

GROUPS["blame"] = (
    "-bfnpctlsew -C[=] -M[=] -L= --abbrev[=] --color-by-age --color-lines --date= --encoding= --first-parent --ignore-rev= "
    "--incremental --line-porcelain --minimal --porcelain --progress --reverse --root --score-debug --show-email --show-name "
    "--show-number --show-stats --since= --diff-algorithm= --ignore-all-space --color[=] --textconv"
)
