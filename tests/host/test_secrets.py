# SPDX-License-Identifier: Apache-2.0
"""Secret values stay in memory and with root."""
import base64
import contextlib
import os

from coracle import as_nobody, check, config_map, container, equal, mount, pod, read, run, secret, shell, Skip, until

VALUES = {"env": "kingfisher-over-the-weir", "file": "otter-beneath-the-bank", "from": "heron-on-the-island"}


def start(t):
    node = t.node()
    node.import_image()
    node.put("secret.yaml", secret("login", **VALUES))
    node.put("pod.yaml", pod("keeper", container(
        env=[{"name": "FROM_KEY", "valueFrom": {"secretKeyRef": {"name": "login", "key": "env"}}}],
        envFrom=[{"secretRef": {"name": "login"}, "prefix": "P_"}],
        volumeMounts=[mount("login", "/login")]),
        volumes=[{"name": "login", "secret": {"secretName": "login"}}]))
    keeper = node.wait_running("keeper")
    # "Started" means that the runtime has released the process; it becomes the program a moment later.
    def has_its_values():
        environment = node.enter(keeper, "cat", "/proc/1/environ").stdout
        return VALUES["env"] in environment and f"P_from={VALUES['from']}" in environment
    until(has_its_values, 5, "the container has its values")
    equal(node.enter(keeper, "cat", "/login/file").stdout, VALUES["file"], "the file in the container")
    return node, keeper


def on_disk(t, folders):
    """Files on a disk (anything but tmpfs) below these folders that hold one of the values."""
    found = []
    needles = [v.encode() for v in VALUES.values()]
    for top in folders:
        for folder, names, files in os.walk(top):
            kind = run("stat", "-f", "-c", "%T", folder).stdout.strip()
            if kind == "tmpfs":
                names[:] = []
                continue
            for file in files:
                path = f"{folder}/{file}"
                if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) < 64 << 20:
                    with open(path, "rb") as f:
                        content = f.read()
                    found += [path for needle in needles if needle in content]
    return found


def test_not_on_disk(t):
    """a secret value from environment and volume is in no file of a disk, through edit, restart, crash and deletion"""
    node, _ = start(t)
    where = [f"{t.scratch}/{d}" for d in ("kubelet", "state", "run", "log", "tmp")] + ["/var/lib/cni", "/var/log/pods", "/run"]
    where = [d for d in where if os.path.isdir(d)]
    log = [node.log_path]

    def nothing(when):
        equal(on_disk(t, where), [], f"files that hold a secret value, {when}")
        for path in log:
            with open(path, "rb") as f:
                content = f.read()
            check(not any(v.encode() in content for v in VALUES.values()), f"the daemon's log holds a secret value, {when}")

    run("sync", "-f", t.scratch)
    nothing("while it runs")
    node.kill()
    node.start()
    node.wait_pod("keeper", lambda p: p.ready)
    nothing("after kill -9 and start")
    node.put("secret.yaml", secret("login", **{**VALUES, "extra": "swallow"}))
    node.wait_running("keeper")
    nothing("after an edit")
    node.put("broken.yaml", "kind: Secret\napiVersion: v1\nmetadata: {name: Broken!}\nstringData:\n  a: " + VALUES["file"] + "\n")
    node.put("worse.yaml", "kind: Secret\napiVersion: v1\nmetadata: {name: worse}\nstringData:\n  a: [" + VALUES["env"] + "\n")
    node.put("worst.yaml", "kind: Secret\napiVersion: v1\nmetadata: {name: worst}\ndata:\n  a: " + VALUES["from"] + "\n")
    from_socket = node.request("GET", "/manifests")[1].decode()
    nothing("after manifests with mistakes")
    check(not any(v in from_socket for v in VALUES.values()), f"problems of the folder hold a value: {from_socket}")
    node.remove("broken.yaml", "worse.yaml", "worst.yaml", "pod.yaml")
    node.wait_gone("keeper")
    nothing("after the deletion")
    node.stop()


def test_not_on_the_socket(t):
    """no answer of the socket and no output of a command holds a secret value"""
    node, _ = start(t)
    answers = {path: node.request("GET", path)[1].decode("utf-8", "replace") for path in (
        "/api/v1/pods", "/api/v1/events", "/explain/default/keeper", "/manifests", "/images", "/metrics", "/debug/operations",
        "/healthz", "/readyz", "/version")}
    for argv in (("get", "pods", "-o", "yaml"), ("get", "pods", "-o", "json"), ("describe", "pod", "keeper"),
                 ("explain", "pod", "keeper"), ("image", "ls")):
        answers[" ".join(argv)] = node.cli(*argv).stdout
    for where, text in answers.items():
        for value in VALUES.values():
            check(value not in text, f"{where} holds a secret value")
    node.stop()


def test_not_for_others(t):
    """another user of the machine can read no secret value, in files, in processes or through the socket"""
    node, keeper = start(t)
    pids = [str(p) for p in node.container_pids(keeper)] + [str(node.process.pid)]
    pids += run("pgrep", "-f", keeper.container_id()).stdout.split()
    script = "\n".join(
        ["set +e"] +
        [f"cat /proc/{p}/environ /proc/{p}/root/login/file 2>/dev/null" for p in pids] +
        [f"find {t.scratch} -type f -readable -exec cat {{}} + 2>/dev/null",
         f"cat {node.run_dir}/*/* {node.run_dir}/*/*/* {node.run_dir}/*/*/*/* {node.root_dir}/pods/*/volumes/*/*/* 2>/dev/null",
         f"ls -R {node.run_dir}/volumes {node.root_dir}/pods 2>/dev/null"])
    os.chmod(node.manifests, 0o700)  # as `make install` and tmpfiles.d make it
    text = as_nobody("sh", "-c", script, ok=False, timeout=60).stdout
    for value in VALUES.values():
        check(value not in text, f"nobody can read {value!r}")
    probe = f"{t.scratch}/tmp/probe"
    with open(probe, "w", encoding="ascii") as f:
        f.write("readable")
    os.chmod(probe, 0o644)
    equal(as_nobody("cat", probe).stdout, "readable", "the search as nobody gets this far at all")
    check(as_nobody(node.coracle, "--socket", node.socket, "get", "pods", ok=False).returncode != 0, "nobody can read the socket")
    node.stop()


@contextlib.contextmanager
def on_an_image(t, *folders):
    """Puts these folders of the scratch world on an ext4 file system in a file; returns the file."""
    image, disk = f"{t.scratch}/disk.img", f"{t.scratch}/disk"
    os.makedirs(disk)
    run("truncate", "-s", "192M", image)
    run("mkfs.ext4", "-q", "-F", image)
    mounted = run("mount", "-o", "loop", image, disk, ok=False)
    if mounted.returncode != 0:
        raise Skip(f"no loop device: {mounted.stderr.strip()}")
    try:
        for folder in folders:
            os.makedirs(f"{disk}/{folder}")
            os.makedirs(f"{t.scratch}/{folder}", exist_ok=True)
            run("mount", "--bind", f"{disk}/{folder}", f"{t.scratch}/{folder}")
        yield image
    finally:
        for folder in folders:
            run("umount", "-l", f"{t.scratch}/{folder}", ok=False)
        run("umount", "-l", disk, ok=False)


def found_in(path, needles):
    """The words that occur anywhere in the bytes of a file, including free blocks and journal."""
    found, tail, longest = set(), b"", max(len(n) for n in needles)
    with open(path, "rb") as f:
        while chunk := f.read(1 << 22):
            found.update(n for n in needles if n in tail + chunk)
            tail = chunk[-longest:]
    return sorted(found)


def test_not_in_the_raw_image(t):
    """the raw bytes of the disk under all state folders never hold a secret value of a volume, subPath, environment or argument"""
    newer = {name: f"newer-{value}" for name, value in VALUES.items()}
    needles = [v.encode() for v in VALUES.values()] + [base64.b64encode(v.encode()) for v in (*VALUES.values(), *newer.values())]
    with on_an_image(t, "kubelet", "state", "log/pods", "log/containers", "run", "tmp") as image:
        node = t.node()
        node.import_image()
        node.put("secret.yaml", secret("login", **VALUES))
        node.put("pod.yaml", pod("keeper", container(
            command=shell("trap 'exit 0' TERM; : $0; while :; do sleep 1000 & wait $!; done") + ["$(FROM_KEY)"],
            env=[{"name": "FROM_KEY", "valueFrom": {"secretKeyRef": {"name": "login", "key": "env"}}}],
            envFrom=[{"secretRef": {"name": "login"}, "prefix": "P_"}],
            volumeMounts=[mount("login", "/login"), mount("login", "/part", subPath="file"),
                          mount("all", "/all")]),
            annotations={"coracle.dev/on-config-change": "restart"},
            volumes=[{"name": "login", "secret": {"secretName": "login"}},
                     {"name": "all", "projected": {"sources": [{"secret": {"name": "login"}}]}}]))
        keeper = node.wait_running("keeper")
        equal(node.enter(keeper, "cat", "/part").stdout, VALUES["file"], "the file in the container")
        node.kill()
        node.start()
        node.put("secret.yaml", secret("login", **newer))
        keeper = node.wait_pod("keeper", lambda p: p.restarts() == 1 and p.ready, what="the restart with new values")
        until(lambda: newer["env"] in node.enter(keeper, "cat", "/proc/1/environ").stdout, 5, "the new values")
        run("sync", "-f", f"{t.scratch}/state")
        equal(found_in(image, needles), [], "secret values in the raw image while it runs")
        node.remove("pod.yaml")
        node.wait_gone("keeper")
        node.stop()
        with open(f"{t.scratch}/state/proof", "w", encoding="ascii") as f:
            f.write("what-the-search-would-find")
        run("sync", "-f", f"{t.scratch}/state")
        equal(found_in(image, needles + [b"what-the-search-would-find"]), [b"what-the-search-would-find"],
              "what the search finds in the raw image at the end")


test_not_in_the_raw_image.seconds = 30


def test_mounts(t):
    """the host's mounts do not grow with the number of ConfigMap and Secret volumes: one tmpfs of the node holds them all"""
    node = t.node()
    node.import_image()
    node.put("objects.yaml", *[config_map(f"c{i}", a=str(i)) for i in range(10)], *[secret(f"s{i}", a=str(i)) for i in range(10)])
    sources = [{"configMap": {"name": f"c{i}"}} for i in range(10)] + [{"secret": {"secretName": f"s{i}"}} for i in range(10)]

    def host_mounts():
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            return sum(t.scratch in line for line in f)

    def start_with(name, wanted):
        before = host_mounts()
        node.put(f"{name}.yaml", pod(name, container(volumeMounts=[{"name": f"v{i}", "mountPath": f"/v{i}"} for i in range(wanted)]),
                                     volumes=[{"name": f"v{i}", **sources[i]} for i in range(wanted)]))
        p = node.wait_running(name)
        until(lambda: node.enter(p, "cat", *[f"/v{i}/a" for i in range(wanted)], ok=False).stdout ==
              "".join(str(i % 10) for i in range(wanted)), 5, "the files in the container")
        return host_mounts() - before

    start_with("first", 1)
    equal(start_with("many", 20), start_with("one", 1), "mounts of a pod with 20 of them, and of one with 1")
    node.stop()


def test_no_core(t):
    """the daemon, whose memory holds Secrets, leaves no core dump, not to a program either; containers keep their limit"""
    node = t.node()
    node.import_image()
    node.put("web.yaml", pod("web"))
    node.wait_running("web")

    def soft(pid):
        line = next(x for x in read(f"/proc/{pid}/limits").splitlines() if x.startswith("Max core file size"))
        return line.split()[4]
    equal(soft(node.process.pid), "1", "the daemon's")
    equal(soft(node.pid(node.pod("web"))), "0", "a container's")
    node.stop()
