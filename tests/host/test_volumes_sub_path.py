# SPDX-License-Identifier: Apache-2.0
"""subPath and containers that try to leave their volume: by existing symlinks, and by symlinks swapped during the look."""
import os

from coracle import check, container, contains, equal, mount, mounts_below, pod, run, shell, until

EMPTY = "volumes/kubernetes.io~empty-dir"


def outside(t):
    """A folder of the host that no container may see, with a mark of this test."""
    path = f"{t.scratch}/tmp/outside"
    os.makedirs(f"{path}/deep")
    for name in ("mark", "deep/mark"):
        with open(f"{path}/{name}", "w", encoding="ascii") as f:
            f.write("of the host\n")
    return path


def test_planted(t):
    """symlinks that a container planted before: absolute, relative, chained, through /proc; none leads outside, each is named"""
    node = t.node()
    node.import_image()
    path = outside(t)
    up = "/".join([".."] * 30)
    plant = (f"cd /v && ln -s {path} abs && ln -s {up}{path} rel && ln -s abs chain && mkdir d && ln -s ../abs d/nested && ln -s /proc/1/root{path} proc"
             f" && ln -s /proc/self/cwd self && ln -s {path}/mark file && ln -s . here && ln -s d/../d inside && echo mine > d/mine")
    subs = ("abs", "rel", "chain", "d/nested/deep", "proc", "self/etc", "file", "abs/new/folder", "here/abs")
    node.put("a.yaml", pod("a", *[container(f"c{i}", volumeMounts=[{"name": "v", "mountPath": "/s", "subPath": s}]) for i, s in enumerate(subs)],
                           container("good", volumeMounts=[mount("v", "/s", subPath="here/inside")]),
                           initContainers=[container("plant", shell(plant), volumeMounts=[mount("v", "/v")])], volumes=[{"name": "v", "emptyDir": {}}]))

    def settled(p):
        return p.state("good")[0] == "running" and all(p.state(f"c{i}")[1].get("reason") == "CreateContainerConfigError" for i in range(len(subs)))
    a = node.wait_pod("a", settled, 40)
    for i, sub in enumerate(subs):
        contains(a.state(f"c{i}")[1]["message"], f'failed to prepare subPath for volumeMount "v" of container "c{i}"', f"message for {sub}")
    equal(node.enter(a, "cat", "/s/mine", container="good").stdout, "mine\n", "a path of links that stay inside")
    check(not os.path.exists(f"{path}/new"), "a folder was made outside the volume")
    equal(sorted(os.listdir(path)), ["deep", "mark"], "outside")
    node.finish(a)
    equal(sorted(os.listdir(path)), ["deep", "mark"], "outside, after the pod")
    equal(node.stop(), 0, "exit code")


SWAP = """
cd /v; mkdir -p good/deep; echo mine > good/mark; echo mine > good/deep/mark
ln -s {path} evil
mkdir t; cp -r good t/good; ln -s {path} t/evil; cp -r good x
while true; do
  mv -T x y; mv -T evil x; mv -T x evil; mv -T y x
  rm -rf t/x; cp -r good t/x; rm -rf t/x; ln -s {path} t/x; rm -f t/x
done
"""


def test_swapped(t):
    """a folder that is swapped for a link to the host in a loop, while subPaths lead through it: no container sees or makes anything outside"""
    node = t.node()
    node.import_image()
    path = outside(t)
    # The container logs what it sees; a run that sees nothing is as good as one that sees its own files.
    look = shell("cat /s/mark 2>/dev/null || echo none; sleep 0.05; exit 1")
    volume = [{"name": "v", "hostPath": {"path": f"{t.scratch}/tmp/v", "type": "DirectoryOrCreate"}}]
    node.put("swap.yaml", pod("swap", container(command=shell(SWAP.format(path=path)), volumeMounts=[mount("v", "/v")]), volumes=volume,
                              terminationGracePeriodSeconds=0))
    node.wait_running("swap")
    until(lambda: os.path.exists(f"{t.scratch}/tmp/v/t"), 10, "the swapping begins")
    seen = set()
    for n in range(12):
        names = [f"p{n}-{i}" for i, _ in enumerate(("x", "t/x", "t/x/deep", "x/new"))]
        for name, sub in zip(names, ("x", "t/x", "t/x/deep", f"x/new{n}")):
            node.put(f"{name}.yaml", pod(name, container(command=look, volumeMounts=[{"name": "v", "mountPath": "/s", "subPath": sub}]), volumes=volume,
                                         restartPolicy="Never", terminationGracePeriodSeconds=0))

        def over(p):
            return p.phase == "Failed" or p.state()[1].get("reason") == "CreateContainerConfigError"
        for name in names:
            p = node.wait_pod(name, over, 30)
            if p.phase == "Failed":
                seen.update(node.logs(name).split("\n"))
        node.remove(*[f"{name}.yaml" for name in names])
        node.wait_gone(*names)
    print(f"seen: {sorted(seen)}")
    check("of the host" not in seen, f"a container saw the host: {seen}")
    equal((sorted(os.listdir(path)), os.listdir(f"{path}/deep")), (["deep", "mark"], ["mark"]), "outside")
    node.remove("swap.yaml")
    node.wait_gone("swap")
    equal(mounts_below(f"{node.root_dir}/pods"), [], "mounts")
    check(os.path.exists(f"{t.scratch}/tmp/v/good/mark"), "the hostPath's own files are gone")
    equal(node.stop(), 0, "exit code")


def test_modes(t):
    """a missing subPath is created with the mode of the volume, for any user; subPathExpr has values of the environment"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(env=[{"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                                          volumeMounts=[mount("v", "/one", subPath="./x//y/"),
                                                        mount("v", "/two", subPathExpr="of/$(WHO)"),
                                                        mount("v", "/ro", subPath="x", readOnly=True), mount("v", "/all", subPath=".")]),
                           securityContext={"runAsUser": 1000, "fsGroup": 2000}, volumes=[{"name": "v", "emptyDir": {}}]))
    node.put("b.yaml", pod("b", container(volumeMounts=[mount("v", "/v", subPathExpr="of/$(NOBODY)")]), volumes=[{"name": "v", "emptyDir": {}}]))
    a = node.wait_running("a")
    for path in ("/one", "/two", "/ro"):
        equal(node.enter(a, "stat", "-c", "%a", path).stdout, "2777\n", f"mode of {path}")
    node.enter(a, "touch", "/one/new", "/two/new")
    equal(node.enter(a, "ls", "/all").stdout.split(), ["of", "x"], "subPath: . is the volume")
    check(node.enter(a, "touch", "/ro/new", ok=False).returncode != 0, "a read-only subPath can be written to")
    folder = f"{node.root_dir}/pods/{a.uid}/{EMPTY}/v"
    equal((os.path.exists(f"{folder}/x/y/new"), os.path.exists(f"{folder}/of/a/new")), (True, True), "files in the volume")
    b = node.wait_pod("b", lambda p: p.state()[1].get("reason") == "CreateContainerConfigError")
    equal(b.state()[1]["message"], 'failed to expand subPath for volumeMount "v" of container "main": missing value for "NOBODY"', "message")
    equal(run("mountpoint", "-q", f"{node.root_dir}/pods/{a.uid}/volume-subpaths/v/main/0", ok=False).returncode, 0, "kubelet's place of the bind mount")
    node.finish(a, b)
    equal(node.stop(), 0, "exit code")
