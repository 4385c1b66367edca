# SPDX-License-Identifier: Apache-2.0
"""Limits of local storage: a pod that exceeds one is evicted, in kubelet's words; only real usage is counted."""
import subprocess

from coracle import check, container, contains, equal, mount, pod, shell, until

STAY = "trap 'exit 0' TERM; while true; do sleep 3600 & wait $!; done"
FILL = "head -c 3000000 /dev/zero > "
E = [mount("e", "/e")]


def limited(amount):
    return {"limits": {"ephemeral-storage": amount}}


def empty(**more):
    return [{"name": "e", "emptyDir": more}]


def du(path):
    """Bytes of a tree, as another program counts them."""
    return int(subprocess.run(["du", "-sx", "--block-size=1", path], check=True, capture_output=True, text=True).stdout.split()[0])


def test_evictions(t):
    """sizeLimit, a container's limit by its files and by its log, the pod's sum: each ends its pod, which stays ended"""
    node = t.node()
    node.import_image()
    node.put("volume.yaml", pod("volume", container(command=shell(f"{FILL} /e/big; {STAY}"), volumeMounts=E),
                                volumes=empty(sizeLimit="1Mi"), terminationGracePeriodSeconds=30))
    node.put("files.yaml", pod("files", container("a", command=shell(f"{FILL} /big; {STAY}"), resources=limited("1Mi")),
                               container("b", resources=limited("100Mi"))))
    node.put("log.yaml", pod("log", container("a", command=shell("head -c 3000000 /dev/zero | tr '\\0' a | fold -w 1000; " + STAY),
                                              resources=limited("1Mi")), container("b", resources=limited("100Mi"))))
    node.put("sum.yaml", pod("sum", container("a", resources=limited("1Mi")),
                             container("b", command=shell(f"{FILL} /e/big; {STAY}"), volumeMounts=E), volumes=empty()))
    # Nothing of this is more than the limit: a sparse file, one file with many names, a thousand small ones.
    fill = "cd /e; head -c 1000000 /dev/zero > one; for i in $(seq 50); do ln one l$i; done; mkdir d; " \
           "for i in $(seq 1000); do : > d/$i; done; dd if=/dev/zero of=sparse bs=1 count=1 seek=1000000000; echo full; "
    node.put("small.yaml", pod("small", container(command=shell(fill + STAY), volumeMounts=E), volumes=empty(sizeLimit="16Mi"),
                               terminationGracePeriodSeconds=0))
    wanted = {
        "volume": 'Usage of EmptyDir volume "e" exceeds the limit "1Mi". ',
        "files": 'Container a exceeded its local ephemeral storage limit "1Mi". ',
        "log": 'Container a exceeded its local ephemeral storage limit "1Mi". ',
        "sum": "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
    }
    contains(node.cli("explain", "node").stdout, "quota of volumes", "explain")  # there are some, or why not
    for name in wanted:
        node.wait_phase(name, "Failed", deadline=60)

    def evicted():
        for name, text in wanted.items():
            a = node.pod(name)
            equal((a.phase, a.status.get("reason"), a.status.get("message")), ("Failed", "Evicted", text), name)
    evicted()
    for name, text in wanted.items():
        events = [e for e in node.events(name) if e["reason"] == "Evicted"]
        equal([(e["type"], e["message"]) for e in events], [("Warning", text)], f"events of {name}")

    small = node.wait_running("small")
    until(lambda: "full" in node.logs("small"), 60, "its files are written")
    folder = f"{node.root_dir}/pods/{small.uid}/volumes/kubernetes.io~empty-dir/e"
    used = du(folder)
    check(1000000 < used < 8 << 20, f"du: {used}")

    def volume():
        found = [p for p in node.get("/stats/summary")["pods"] if p["podRef"]["name"] == "small"]
        return [v["usedBytes"] for v in found[0].get("volume", []) if v["name"] == "e"]
    until(lambda: volume() == [used], 60, lambda: f"the summary has {used}, not {volume()}")
    contains(node.cli("explain", "pod", "small").stdout, f"emptyDir e: {used // 1024} KiB", "explain")
    equal(node.pod("small").phase, "Running", "the small one")

    node.kill()
    node.start()
    evicted()
    equal(node.pod("small").phase, "Running", "the small one")
    node.finish(*(node.pod(n) for n in (*wanted, "small")))
    node.stop()
