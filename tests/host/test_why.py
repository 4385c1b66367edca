# SPDX-License-Identifier: Apache-2.0
"""`coracle explain pod` says first why a pod does not run, or how it ended: a table of the ways that there are."""
import re

from coracle import IMAGE, Failed, check, container, equal, mount, pod, run, shell, until


def fails(code, **more):
    return container(command=shell(f"exit {code}"), **more)


def probe(text, **more):
    return {"exec": {"command": shell(f"echo {text}; exit 7")}, "periodSeconds": 1, "failureThreshold": 1, **more}


def init(name, command, **more):
    return [{"name": name, "image": IMAGE, "command": shell(command), **more}]


BIG = "dd if=/dev/zero of=/cache/file bs=1024 count=3000 2>/dev/null; sleep 1000"

# name: (manifest, the line that a person needs, as a regular expression).  It has to be the first below "Why:".
TABLE = {
    # -- it runs and ends
    "crash": (pod("crash", fails(3)), r"container main: Error, exit code 3; back-off .* before the next start"),
    "words": (pod("words", container(command=shell("echo no database >/dev/termination-log; exit 4"))),
              r"container main: Error, exit code 4: no database.*; back-off"),
    "log": (pod("log", container(command=shell("echo cannot bind port; exit 5"), terminationMessagePolicy="FallbackToLogsOnError")),
            r"container main: Error, exit code 5: cannot bind port.*; back-off"),
    "signal": (pod("signal", container(command=shell("exit 139"))), r"container main: Error, exit code 139 \(SIGSEGV\); back-off"),
    "oom": (pod("oom", container(command=shell("exec tail /dev/zero"), resources={"limits": {"memory": "16Mi"}})),
            r"container main: OOMKilled, exit code 137 \(SIGKILL\): Memory cgroup out of memory: Killed process \d+ \(tail\), anon-rss:"),
    "completes": (pod("completes", container(command=shell("exit 0"))), r"container main: Completed, exit code 0; back-off"),
    # -- it cannot start
    "binary": (pod("binary", container(command=["/no/such"])), r"container main: StartError, exit code 128: .*/no/such.*; back-off"),
    "cwd": (pod("cwd", container(command=["/out"])), r"container main: StartError, exit code 128: .*executable.*; back-off"),
    "absent": (pod("absent", container(image="localhost/absent:1", imagePullPolicy="Never")), r"container main: ErrImageNeverPull: .*localhost/absent:1"),
    "name": (pod("name", container(image="localhost/UPPER:1")), r"container main: InvalidImageName: .*localhost/UPPER:1"),
    "pull": (pod("pull", container(image="127.0.0.1:9/no:1", imagePullPolicy="Always")),
             r"container main: (ErrImagePull|RegistryUnavailable): .*127\.0\.0\.1:9"),
    "secret": (pod("secret", container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "nowhere", "key": "k"}}}])),
               r'container main: CreateContainerConfigError: secret "nowhere" not found'),
    "root": (pod("root", container(securityContext={"runAsNonRoot": True})),
             r"container main: CreateContainerConfigError: container has runAsNonRoot and image will run as root"),
    "volume": (pod("volume", container(volumeMounts=[mount("v", "/v")]), volumes=[{"name": "v", "configMap": {"name": "nowhere"}}]),
               r'volumes: .*configmap "nowhere" not found'),
    "hostpath": (pod("hostpath", container(volumeMounts=[mount("v", "/v")]),
                     volumes=[{"name": "v", "hostPath": {"path": "/no/such", "type": "Directory"}}]), r"volumes: .*/no/such"),
    "init-fails": (pod("init-fails", initContainers=init("setup", "echo no schema >/dev/termination-log; exit 2")),
                   r"init container setup: Error, exit code 2: no schema.*; back-off"),
    "init-runs": (pod("init-runs", initContainers=init("setup", "sleep 1000")), r"container main: waiting for init container setup"),
    # -- its probes and hooks
    "liveness": (pod("liveness", container(livenessProbe=probe("deadlocked"))),
                 r"container main: .*liveness probe failed: deadlocked"),
    "startup": (pod("startup", container(startupProbe=probe("loading", failureThreshold=1000))),
                r"container main: running, its startup probe has not succeeded.*: loading"),
    "readiness": (pod("readiness", container(readinessProbe=probe("no-upstream"))),
                  r"container main: running, not ready: its readiness probe has not succeeded.*: no-upstream"),
    "poststart": (pod("poststart", container(lifecycle={"postStart": {"exec": {"command": shell("echo no queue; exit 9")}}})),
                  r"container main: .*postStart hook failed: exit code 9: no queue"),
    "prestop": (pod("prestop", container(livenessProbe=probe("stuck"), lifecycle={
        "preStop": {"exec": {"command": shell("echo no drain; exit 6")}}})),
                r"container main: .*liveness probe failed: stuck; preStop hook failed: exit code 6: no drain"),
    # -- it ended
    "succeeded": (pod("succeeded", container(command=shell("exit 0")), restartPolicy="Never"),
                  r"Completed: all its containers ended with exit code 0"),
    "failed": (pod("failed", fails(8), restartPolicy="Never"), r"container main: ended: Error, exit code 8"),
    "deadline": (pod("deadline", activeDeadlineSeconds=2),
                 r"DeadlineExceeded: Pod was active on the node longer than the specified deadline \(activeDeadlineSeconds: 2\)"),
    "evicted": (pod("evicted", container(command=shell(BIG), volumeMounts=[mount("cache", "/cache")]),
                    volumes=[{"name": "cache", "emptyDir": {"sizeLimit": "1Mi"}}]),
                r'Evicted: Usage of EmptyDir volume "cache" exceeds the limit "1Mi"\. \(.*emptyDir cache: \d{4} KiB'),
    "unhealthy": (pod("unhealthy", container(command=shell("exec sleep 1000"), livenessProbe=probe("no answer")), restartPolicy="Never",
                      terminationGracePeriodSeconds=1),
                  r"container main: ended: Error, exit code 137 \(SIGKILL\): liveness probe failed: no answer"),
    # -- it was refused
    "cpu": (pod("cpu", container(resources={"requests": {"cpu": "10k"}})), r"OutOfcpu: Pod was rejected: .*cpu"),
    "selector": (pod("selector", nodeSelector={"disk": "no-such"}), r"NodeAffinity: Pod was rejected: "),
    "sysctl": (pod("sysctl", securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]}),
               r"SysctlForbidden: Pod was rejected: .*kernel\.msgmax"),
    "class": (pod("class", priorityClassName="nowhere"), r".*nowhere"),
}
ENDED = ["succeeded", "failed", "unhealthy", "deadline", "evicted"]


def why(node, name):
    """The lines below "Why:"."""
    shown = node.cli("explain", "pod", name, ok=False).stdout
    return re.findall(r"^  (.*)$", shown.partition("\nWhy:\n")[2].partition("\nSteps:\n")[0] + "\n", re.M) if "\nWhy:\n" in shown else []


def test_why(t):
    """more than thirty ways for a pod not to run or to have ended: the first line below Why: says what a person needs"""
    check(len(TABLE) >= 25, f"{len(TABLE)} ways")
    node = t.node()
    node.import_image()
    seen = {}
    for name, (manifest, _) in TABLE.items():
        node.put(f"{name}.yaml", manifest)

    def first_lines():
        for name, (_, wanted) in TABLE.items():
            if name in seen:
                continue
            lines = why(node, name)
            if lines and re.match(wanted, lines[0]):
                seen[name] = lines
        return len(seen) == len(TABLE)

    try:
        until(first_lines, 70, "all say why", interval=1)
    except Failed:
        raise Failed("\n".join(f"{name}: wanted {TABLE[name][1]}\n  got {why(node, name)}" for name in TABLE if name not in seen)) from None
    node.put("stays.yaml", pod("stays", container(command=shell("trap '' TERM; while :; do sleep 1; done")),
                               terminationGracePeriodSeconds=60))
    node.wait_running("stays")
    node.remove("stays.yaml")
    until(lambda: why(node, "stays"), 10, "the pod ends")
    equal(why(node, "stays")[0], "its manifest was removed", "why a pod ends")
    check(re.match(r"container main: stop signal sent; SIGKILL follows", why(node, "stays")[1]), f"what it waits for: {why(node, 'stays')}")
    for name in ENDED:
        shown = node.cli("explain", "pod", name, ok=False).stdout
        check("not started" not in shown, f"{name} has ended:\n{shown}")
    node.put("well.yaml", pod("well"))
    node.wait_running("well")
    equal(why(node, "well"), [], "why a pod that runs well does not")
    node.stop()


test_why.seconds = 60
