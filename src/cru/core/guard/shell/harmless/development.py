"""Programs that build, check and test. `*`: what runs code of the project or of a package by its nature; all options of it are covered."""

from __future__ import annotations

GROUPS = {
    "cargo": "-vqhr -p= -j= -F= --package= --workspace --all --exclude= --lib --bins --bin[=] --examples --example[=] --tests --test[=] "
    "--benches --bench[=] --all-targets --features= --all-features --no-default-features --release --profile= --jobs= --keep-going "
    "--target= --locked --offline --frozen --ignore-rust-version --message-format= --verbose --quiet --color= --help "
    "--future-incompat-report --timings[=] --no-run --no-fail-fast --doc --no-deps --document-private-items --unit-graph --allow-dirty "
    "--allow-staged --allow-no-vcs --fix",
    "go": "-n -x -v -a -race -msan -asan -cover -covermode= -coverpkg= -work -json -tags= -trimpath -mod= -buildmode= -buildvcs[=] -p= "
    "-ldflags= -compiler= -installsuffix= -linkshared -modcacherw",
    "npm": "-w= -a -l --all --json --long --parseable --depth= --omit= --include= --link --package-lock-only --unicode --workspace= "
    "--workspaces --include-workspace-root --color[=] --silent -s --quiet -q --verbose -d --loglevel= --no-color --help -h",
    "pip": "-hvVq --help --isolated --require-virtualenv --verbose --version --quiet --no-input --retries= --timeout= --no-cache-dir "
    "--disable-pip-version-check --no-color --no-python-version-warning --use-feature= --use-deprecated= --exists-action=",
    "pip-packages": "@pip -U -I -r= -c= -e= --requirement= --constraint= --editable= --upgrade --upgrade-strategy= --force-reinstall "
    "--ignore-installed --no-deps --pre --user --dry-run --only-binary= --prefer-binary --require-hashes --progress-bar= --compile "
    "--no-compile --no-warn-script-location --no-warn-conflicts --no-index --root-user-action= --ignore-requires-python "
    "--check-build-dependencies --platform= --python-version= --implementation= --abi= --no-clean",
    "gh": "-R= --repo= --json= -q= --jq= -L= --limit= --help -s= --state= -l= --label= -a= --assignee= -A= --author= -m= --milestone= "
    "--search= -S=",
}

TABLE = {
    "autopep8": "-drvaj= -h --diff --recursive --verbose --aggressive --max-line-length= --ignore= --select= --exclude= --experimental "
    "--list-fixes --jobs= --exit-code --version --help --line-range=",
    "black": "-qvhSC -l= -t= --check --diff --color --no-color --fast --safe --quiet --verbose --preview --unstable --line-length= "
    "--target-version= --include= --exclude= --extend-exclude= --force-exclude= --skip-string-normalization --skip-magic-trailing-comma "
    "-W= --workers= --pyi --ipynb --required-version= --version --help",
    "cargo": "-Vvhq --version --locked --offline --frozen --color= --list --help --verbose --quiet --explain=",
    "cargo build|b|check|c|test|t|run|r|bench|clippy|doc|d|clean|fetch|fix|locate-project|pkgid|verify-project|"
    "version|help|generate-lockfile": "@cargo",
    "cargo add": "@cargo -n --optional --no-optional --default-features --rename= --dev --build --dry-run --branch= --tag= --rev= "
    "--public --no-public",
    "cargo fmt": "@cargo --check --all",
    "cargo init": "@cargo --vcs= --edition= --name=",
    "cargo metadata": "@cargo --filter-platform= --format-version=",
    "cargo new": "@cargo --vcs= --edition= --name=",
    "cargo nextest": "*",
    "cargo remove": "@cargo -n --dev --build --dry-run",
    "cargo rm": "@cargo -n --dev --build --dry-run",
    "cargo search": "@cargo --limit=",
    "cargo tree": "@cargo -idne= -f= --edges= --invert[=] --prune= --depth= --prefix= --no-dedupe --duplicates --charset= --format=",
    "cargo update": "@cargo -nbw --dry-run --recursive --precise= --breaking --aggressive",
    "clang-format": "-n -h -Werror -Wno-error= -dry-run -help -version -verbose -offset= -length= -lines= -cursor= -sort-includes "
    "-ferror-limit= -output-replacements-xml -assume-filename= -fallback-style= -style= -qualifier-alignment=",
    "eslint": "-hv --ext= --quiet --max-warnings= --no-eslintrc --ignore-pattern= --no-ignore --cache --cache-strategy= --color "
    "--no-color --rule= --env= --global= --no-inline-config --report-unused-disable-directives[=] --debug --version --help "
    "--fix-dry-run --stats --no-error-on-unmatched-pattern --exit-on-fatal-error --no-warn-ignored --pass-on-no-patterns "
    "--print-config=",
    "gcc": "-c -o= -S -E -g* -O* -W* -D* -U* -I* -L* -l* -std* -s -v -M -MM -MD -MMD -MP -MG -MT= -MQ= -x= -pedantic* -ansi -w "
    "-isystem* -iquote* -print-* -dumpversion -dumpmachine -rdynamic -no-pie -pie -static* -shared* -nostdlib* -nodefaultlibs "
    "-nostartfiles -nostdinc* -pthread -pipe -march* -mtune* -mcpu* -m32 -m64 -mavx* -msse* -mfpu* -mfloat-abi* -mthumb -mabi* "
    "-mcmodel* -mno-* -arch= -version -help* -### -H -C -P -fno-* -fPIC -fPIE -fpic -fpie -fsanitize* -fvisibility* -fstack-protector* "
    "-fstack-clash-protection -fcf-protection* -fomit-frame-pointer -funroll-loops -ffast-math -fopenmp* -flto* -fwrapv* -fstrict-* "
    "-fdiagnostics-color* -fdiagnostics-show-* -fcolor-diagnostics -fsyntax-only -fcommon -fexceptions -fpermissive -fdata-sections "
    "-ffunction-sections -fstandalone-debug -fanalyzer -finput-charset* -fmax-errors* -fprofile-arcs -ftest-coverage "
    "-frecord-gcc-switches -ftemplate-depth* -fconcepts* -fcoroutines -fcheck* -fbacktrace -ffree-form -fimplicit-none -fsigned-char "
    "-funsigned-char -ffreestanding -fhosted -fms-extensions -fshort-enums -fverbose-asm -ftrapv -fmacro-prefix-map* -ffile-prefix-map* "
    "-fdebug-prefix-map* -finline* -coverage",
    "gh": "--version --help",
    "gh api": "@gh -X= --method= -f= --raw-field= -H= --header= --paginate --slurp -i --include --silent --cache= -p= --preview= -t= "
    "--verbose",
    "gh auth": "@gh --hostname= -h= --active",
    "gh cache": "@gh -k= --key= -O= --order= --sort= -r= --ref= --all",
    "gh config": "@gh -h= --host=",
    "gh gist": "--help",
    "gh gist list|view": "@gh --public --secret -f= --files -r --raw",
    "gh help": "",
    "gh issue": "@gh -t= --title= -b= --body= -c -p= --project= --comments --reason= -r= --add-label= --remove-label= --add-assignee= "
    "--remove-assignee= --edit-last --app= --mention=",
    "gh label": "@gh -c= --color= -d= --description= -f --force --yes --order= --sort=",
    "gh pr": "@gh -t= --title= -b= --body= -B= --base= -H= --head= -d --draft -f= --fill --fill-first --fill-verbose -r -p --project= "
    "--reviewer= --no-maintainer-edit --dry-run -c --comments --name-only --patch --color= --required --watch --interval= -i= --merge "
    "--rebase --squash --delete-branch --auto --disable-auto --match-head-commit= --subject= --detach --recurse-submodules --force "
    "--approve --comment --request-changes --undo --conflict-status --fail-fast --edit-last --add-label= --remove-label= "
    "--add-reviewer= --remove-reviewer= --add-assignee= --remove-assignee= --app= -e",
    "gh release": "--help",
    "gh release list|view|delete|edit": "@gh -t= --title= -n= --notes= -d --draft -p --prerelease --generate-notes --latest[=] "
    "--target= --verify-tag --exclude-drafts --exclude-pre-releases -y --yes --order=",
    "gh repo": "@gh -b= --branch= --visibility= --source --fork --no-archived --archived --language= --topic=",
    "gh ruleset": "@gh -p --parents -o= --org=",
    "gh run": "@gh -b= --branch= -w= --workflow= -e= --event= -u= --user= -c= --commit= --created= --status= -j= --job= -v --verbose "
    "--log --log-failed --attempt= --exit-status -i= --interval= --compact --failed -d --debug",
    "gh search": "@gh --archived[=] --closed= --commenter= --comments= --created= --include-prs --interactions= --involves= --language= "
    "--locked --match= --mentions= --order= --owner= --reactions= --sort= --team-mentions= --updated= --visibility= --extension= "
    "--filename= --size= --followers= --forks= --stars= --topic= --merged --draft --review= --checks=",
    "gh status": "@gh -o= --org= -e= --exclude=",
    "gh workflow": "@gh -r= --ref= -y --yaml -f= --raw-field= --all",
    "go": "",
    "go build": "@go",
    "go clean": "-i -n -r -x -cache -testcache -modcache -fuzzcache",
    "go doc": "-all -c -cmd -short -src -u",
    "go env": "-json -changed",
    "go fix": "-fix= -diff -n -x",
    "go fmt": "-n -x -mod=",
    "go get": "@go -u[=] -t -d",
    "go help": "",
    "go install": "@go",
    "go list": "@go -m -f= -deps -test -u -versions -find -e -retracted -json[=] -reuse=",
    "go mod": "-v -x -json -m -go= -compat= -e -diff -n -print -require= -droprequire= -exclude= -dropexclude= -versions -toolchain=",
    "go test": "@go -run= -bench= -benchmem -benchtime= -count= -cpu= -failfast -fullpath -fuzz= -fuzztime= -fuzzminimizetime= -list= "
    "-parallel= -short -shuffle= -skip= -timeout= -vet= -c -i",
    "go version": "-m -v",
    "go vet": "@go -c=",
    "go work": "-v -json -go= -use= -dropuse= -print -r",
    "gofmt": "-l -d -s -e -r=",
    "make": "-bmkniwqdrRStvhpBj[=] -l[=] -O[=] -s --jobs[=] --keep-going --silent --quiet --no-silent --dry-run --just-print --recon "
    "--always-make --ignore-errors --print-directory --no-print-directory --question --debug[=] --no-builtin-rules "
    "--no-builtin-variables --touch --output-sync[=] --warn-undefined-variables --trace --load-average[=] --max-load[=] "
    "--print-data-base --no-keep-going --stop --shuffle[=] --help --version",
    "mypy": "-hvVi -m= -p= -O= -n= --help --verbose --version --output= --strict --pretty --warn-unused-configs --no-namespace-packages "
    "--namespace-packages --ignore-missing-imports --follow-untyped-imports --follow-imports= --no-site-packages "
    "--no-silence-site-packages --python-version= --platform= --always-true= --always-false= --disallow-any-expr "
    "--disallow-any-decorated --disallow-any-explicit --disallow-any-generics --disallow-any-unimported --disallow-subclassing-any "
    "--disallow-untyped-calls --untyped-calls-exclude= --disallow-untyped-defs --disallow-incomplete-defs --check-untyped-defs "
    "--disallow-untyped-decorators --implicit-optional --no-implicit-optional --no-strict-optional --warn-redundant-casts "
    "--warn-unused-ignores --no-warn-unused-ignores --no-warn-no-return --warn-return-any --warn-unreachable "
    "--report-deprecated-as-note --deprecated-calls-exclude= --allow-untyped-globals --allow-redefinition --no-implicit-reexport "
    "--strict-equality --no-strict-bytes --extra-checks --disable-error-code= --enable-error-code= --enable-incomplete-feature= "
    "--show-error-context --show-column-numbers --show-error-end --hide-error-codes --show-error-codes --show-error-code-links "
    "--no-color-output --no-error-summary --show-absolute-path --no-incremental --sqlite-cache --cache-fine-grained "
    "--skip-version-check --skip-cache-mtime-checks --pdb --show-traceback --tb --raise-exceptions --warn-incomplete-stub "
    "--find-occurrences= --scripts-are-modules --non-interactive --explicit-package-bases --fast-module-lookup --exclude= "
    "--exclude-gitignore --module= --package= --num-workers=",
    "npm": "-v --version --help -h -l",
    "npm ci|exec|init|create|rebuild|restart|run|run-script|start|stop|t|test|x": "*",
    "npm audit": "@npm --audit-level= --dry-run --production",
    "npm bugs": "@npm",
    "npm config": "@npm -g --global --location=",
    "npm dedupe": "@npm --dry-run --no-audit --no-fund --ignore-scripts",
    "npm docs": "@npm",
    "npm explain": "@npm",
    "npm fund": "@npm",
    "npm help": "@npm",
    "npm add|i|install|prune|remove|rm|un|uninstall|up|update|upgrade": "@npm -DSEOPf --save --no-save --save-dev --save-prod "
    "--save-optional --save-exact --save-peer --no-audit --no-fund --legacy-peer-deps --strict-peer-deps --force --ignore-scripts "
    "--production --prefer-offline --prefer-online --offline --no-package-lock --package-lock --dry-run --no-optional --prefer-dedupe "
    "--no-bin-links --no-progress --progress[=]",
    "npm list": "@npm -g --global",
    "npm ls": "@npm -g --global",
    "npm outdated": "@npm -g --global",
    "npm pack": "@npm --dry-run --ignore-scripts",
    "npm ping": "@npm",
    "npm prefix": "-g --global",
    "npm query": "@npm",
    "npm root": "-g --global",
    "npm search": "@npm --description --searchlimit= --prefer-online --prefer-offline --offline -p",
    "npm version": "@npm --no-git-tag-version --allow-same-version --preid= -m=",
    "npm info": "@npm",
    "npm show": "@npm",
    "npm view": "@npm",
    "npm why": "@npm",
    "npm whoami": "@npm",
    "pip": "-Vhvq --version --help --verbose --quiet --isolated --require-virtualenv --retries= --timeout= --disable-pip-version-check",
    "pip cache": "@pip --format=",
    "pip check": "@pip",
    "pip config": "@pip --global --user --site",
    "pip debug": "@pip",
    "pip download": "@pip-packages",
    "pip freeze": "@pip -l --local --user --all --exclude-editable --exclude=",
    "pip help": "",
    "pip index": "@pip --pre --ignore-requires-python",
    "pip install": "@pip-packages",
    "pip list": "@pip -oule --outdated --uptodate --editable --local --user --pre --format= --not-required --exclude-editable "
    "--include-editable --exclude=",
    "pip show": "@pip -f --files",
    "pip uninstall": "@pip -yr= --yes --requirement= --root-user-action=",
    "pip wheel": "@pip-packages",
    "pylint": "-hEvj= -d= -e= -f= -s= -r= --help --help-msg= --list-msgs --list-msgs-enabled --errors-only --verbose --jobs= --disable= "
    "--enable= --output-format= --score= --reports= --msg-template= --ignore= --ignore-paths= --ignore-patterns= --recursive= --version "
    "--fail-under= --fail-on= --exit-zero --py-version= --max-line-length= --clear-cache-post-run= --persistent=",
    "pytest": "-xsvqlVhdfr= -k= -m= -n= -W= --markers --exitfirst --maxfail= --strict-config --strict-markers --strict --fixtures "
    "--funcargs --fixtures-per-test --pdb --trace --capture= --runxfail --lf --last-failed --ff --failed-first --nf --new-first "
    "--cache-show[=] --cache-clear --lfnf= --last-failed-no-failures= --sw --stepwise --sw-skip --stepwise-skip --durations= "
    "--durations-min= --verbose --no-header --no-summary --quiet --verbosity= --report-chars= --disable-warnings "
    "--disable-pytest-warnings --showlocals --no-showlocals --tb= --show-capture= --full-trace --color= --code-highlight= "
    "--pythonwarnings= --collect-only --co --pyargs --ignore= --ignore-glob= --deselect= --noconftest --keep-duplicates "
    "--collect-in-virtualenv --continue-on-collection-errors --import-mode= --doctest-modules --doctest-report= --doctest-glob= "
    "--doctest-ignore-import-errors --doctest-continue-on-failure --version --help --disable-plugin-autoload --trace-config --assert= "
    "--setup-only --setup-show --setup-plan --log-level= --log-format= --log-date-format= --log-cli-level= --log-disable= "
    "--log-cli-format= --xfail-tb --force-short-summary --no-fold-skipped --hypothesis-seed= --hypothesis-profile= "
    "--hypothesis-verbosity= --hypothesis-show-statistics --numprocesses= --maxprocesses= --dist= --cov[=] --cov-report= --no-cov "
    "--no-cov-on-fail --cov-fail-under= --cov-append --cov-branch --timeout= --timeout-method= --reruns= --reruns-delay= --only-rerun= "
    "--randomly-seed= --random-order --asyncio-mode= --anyio-mode= --snapshot-update --benchmark-only --benchmark-skip "
    "--benchmark-disable --inline-snapshot= --forked --ds= --reuse-db --create-db --count= --flake-finder",
    "ruff": "-hV --version --help",
    "ruff check": "-wenvqsh --fix --no-fix --unsafe-fixes --no-unsafe-fixes --show-fixes --diff --watch --fix-only --ignore-noqa "
    "--output-format= --target-version= --preview --no-preview --extension= --statistics --add-noqa[=] --show-files --show-settings "
    "--select= --ignore= --extend-select= --extend-ignore= --per-file-ignores= --extend-per-file-ignores= --fixable= --unfixable= "
    "--extend-fixable= --exclude= --extend-exclude= --respect-gitignore --force-exclude --no-cache --stdin-filename= --exit-zero "
    "--exit-non-zero-on-fix --verbose --quiet --silent --isolated --color= --help --line-length=",
    "ruff clean": "-vqsh --verbose --quiet --silent",
    "ruff config": "-vqsh --output-format=",
    "ruff format": "-nvqsh --check --diff --extension= --target-version= --preview --no-preview --output-format= --no-cache "
    "--stdin-filename= --exit-non-zero-on-format --respect-gitignore --exclude= --extend-exclude= --force-exclude --line-length= "
    "--range= --verbose --quiet --silent --isolated --color= --help",
    "ruff help": "",
    "ruff linter": "-vqsh --output-format=",
    "ruff rule": "-vqsh --all --output-format=",
    "ruff version": "-vqsh --output-format=",
    "shellcheck": "-axVC[=] -f= -s= -e= -i= -o= -S= -W= --check-sourced --external-sources --color[=] --format= --shell= --exclude= "
    "--include= --enable= --severity= --wiki-link-count= --list-optional --norc --version --help",
    "shfmt": "-d -l -i= -bn -ci -sr -kp -fn -s -mn -p -ln= -f -diff -list -indent= -simplify -minify -version -tojson",
}  # fmt: skip
