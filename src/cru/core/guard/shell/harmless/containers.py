"""Containers and clusters. Behind `...` the first word that is no option ends the options."""

from __future__ import annotations

GROUPS = {
    "kubectl": "-Aw -n= --namespace= --all-namespaces[=] -o= --output= --request-timeout= --v= -v= --help -h --warnings-as-errors[=] "
    "-l= --selector= --show-labels[=] --no-headers[=] --sort-by= --field-selector= --show-managed-fields[=] --template= "
    "--allow-missing-template-keys[=] --chunk-size= --ignore-not-found[=] --watch[=] --watch-only[=] --output-watch-events[=] "
    "--subresource= --show-kind[=] -L= --label-columns= --server-print[=] --dry-run[=] --timeout= --wait[=]",
    "kubectl-files": "@kubectl -fR --filename= --recursive[=] --server-side[=] --field-manager= --force-conflicts[=] --validate[=] "
    "--all[=] --grace-period= --cascade[=] --now[=] --overwrite[=] --current-replicas= --replicas= --save-config[=] --for= -f= "
    "--local[=] --type= -p= --patch= --resource-version= --force[=] --ignore-daemonsets[=] --delete-emptydir-data[=] --pod-selector= "
    "--min= --max= --cpu-percent= --port= --target-port= --name= --labels= --protocol= --list[=] --interactive[=] -i --image= "
    "--concurrency= --edit[=]",
    "docker-list": "-aqs -f= -n= --all --digests --filter= --format= --no-trunc --quiet --last= --latest -l --size --tree --help",
    "docker-exec": "-dit -u= -w= --detach --interactive --tty --user= --workdir= --detach-keys= --help ...",
    "docker-run": "-ditqP -p= -w= -u= -h= -l= -m= -c= -a= --attach= --detach --interactive --tty --rm --init --name= --platform= "
    "--pull= --workdir= --publish= --publish-all --expose= --user= --hostname= --label= --memory= --memory-swap= --memory-reservation= "
    "--cpus= --cpu-shares= --cpuset-cpus= --read-only --restart= --stop-signal= --stop-timeout= --shm-size= --tmpfs= --entrypoint= "
    "--cap-drop= --pids-limit= --ulimit= --quiet --detach-keys= --sig-proxy[=] --no-healthcheck --health-interval= --health-retries= "
    "--health-timeout= --health-start-period= --help ...",
    "docker-build": "-qt= -f= --tag= --file= --quiet --no-cache --pull --target= --platform= --build-arg= --label= --progress= --rm "
    "--force-rm --compress --load --no-cache-filter= --shm-size= --memory= -m= --help",
    "docker-compose": "-adqtfv -n= --dry-run --detach --build --no-build --force-recreate --no-recreate --no-deps --remove-orphans "
    "--wait --wait-timeout= --scale= --pull[=] --no-start --timeout= --abort-on-container-exit --abort-on-container-failure "
    "--exit-code-from= --no-color --no-log-prefix --attach= --no-attach= --renew-anon-volumes -V --quiet-pull --always-recreate-deps "
    "--attach-dependencies --timestamps --menu[=] --volumes --rmi= --follow --tail= --since= --until= --all --format= --services "
    "--status= --filter= --orphans[=] --quiet --no-trunc --no-cache --build-arg= --ignore-buildable --ignore-pull-failures "
    "--include-deps --policy= --force --stop -s --no-interpolate --no-normalize --no-consistency --images --networks --hash= --json "
    "--index= --protocol= --short --help --version",
}

TABLE = {
    "docker": "-v --version --help",
    "docker images|ps": "@docker-list",
    "docker build": "@docker-build",
    "docker compose": "-p= --project-name= --profile= --ansi= --progress= --compatibility --dry-run --parallel= -v --version --help",
    "docker compose build|config|create|down|events|images|kill|logs|ls|pause|port|ps|pull|restart|rm|start|stats|"
    "stop|top|unpause|up|version|wait": "@docker-compose",
    "docker compose exec|run": "-dTit -u= -w= --detach --no-TTY --interactive[=] --user= --workdir= --index= --rm --no-deps --name= "
    "--build --remove-orphans --quiet-pull --service-ports -P --help ...",
    "docker container": "--help",
    "docker container inspect|kill|logs|pause|port|prune|rename|restart|rm|start|stats|stop|top|unpause|wait": "@docker-list --force "
    "-v --volumes --since= --until= --tail= --follow -t --timestamps --details --no-stream --type= --time= --timeout= --signal= --link",
    "docker container ls|list|ps": "@docker-list",
    "docker container exec": "@docker-exec",
    "docker container run": "@docker-run",
    "docker diff": "",
    "docker events": "-f= --filter= --format= --since= --until=",
    "docker exec": "@docker-exec",
    "docker history": "-Hq --format= --human --no-trunc --platform= --quiet",
    "docker image": "--help",
    "docker image build": "@docker-build",
    "docker image history|inspect|ls|list|prune|rm": "@docker-list --force --no-prune --platform= --human -H --until=",
    "docker info": "-f= --format=",
    "docker inspect": "-s -f= --format= --size --type=",
    "docker kill": "-s= --signal=",
    "docker logs": "-ftn= --details --follow --since= --tail= --timestamps --until=",
    "docker network": "@docker-list -v --verbose --driver= -d= --force",
    "docker pause": "",
    "docker port": "",
    "docker pull": "-aq --all-tags --platform= --quiet",
    "docker rename": "",
    "docker restart": "-s= -t= --signal= --timeout= --time=",
    "docker rm": "-flv --force --link --volumes",
    "docker rmi": "-f --force --no-prune --platform=",
    "docker run": "@docker-run",
    "docker search": "-f= --filter= --format= --limit= --no-trunc",
    "docker start": "-ai --attach --interactive --detach-keys=",
    "docker stats": "-a --all --format= --no-stream --no-trunc",
    "docker stop": "-s= -t= --signal= --timeout= --time=",
    "docker system": "-avf --all --force --filter= --format= --verbose --volumes --since= --until=",
    "docker tag": "",
    "docker top": "...",
    "docker unpause": "",
    "docker version": "-f= --format=",
    "docker volume": "@docker-list --cluster --force",
    "docker wait": "",
    "helm": "-h --help",
    "helm dependency|env|help|history|lint|list|ls|search|show|status|verify|version": "-aAqh -n= -o= -l= -m= --namespace= --output= "
    "--all-namespaces --all --date --deployed --failed --pending --superseded --uninstalled --uninstalling --filter= --max= --offset= "
    "--reverse --short --selector= --time-format= --no-headers --revision= --show-desc --show-resources --devel --version= --versions "
    "-r --regexp --max-col-width= --template= --strict --quiet --debug --with-subcharts --help -c --client",
    "kubectl": "-h --help",
    "kubectl get|explain|api-resources|api-versions|cluster-info|completion|options|version|auth|events|top": "@kubectl",
    "kubectl annotate|apply|autoscale|cordon|create|delete|diff|drain|edit|expose|label|patch|replace|rollout|scale|"
    "set|taint|uncordon|wait": "@kubectl-files",
    "kubectl auth": "@kubectl --list[=] -q --quiet[=]",
    "kubectl config": "-o= --output= --minify[=] --current[=] --namespace= --no-headers[=] --help -h",
    "kubectl describe": "@kubectl --show-events[=]",
    "kubectl events": "@kubectl --for= --types=",
    "kubectl explain": "@kubectl --api-version= --recursive[=]",
    "kubectl api-resources": "@kubectl --api-group= --cached[=] --categories= --namespaced[=] --verbs=",
    "kubectl logs": "-fpn= -c= -l= -h --namespace= --all-containers[=] --all-pods[=] --container= --follow[=] --ignore-errors[=] "
    "--limit-bytes= --max-log-requests= --pod-running-timeout= --prefix[=] --previous[=] --selector= --since= --since-time= --tail= "
    "--timestamps[=] --help",
    "kubectl top": "@kubectl --containers[=] --sum[=] --use-protocol-buffers[=] --show-capacity[=]",
    "kubectl version": "@kubectl --client[=] --short[=]",
}  # fmt: skip
