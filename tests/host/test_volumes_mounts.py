# SPDX-License-Identifier: Apache-2.0
"""How volumes are mounted: nested ones, propagation, recursive read-only; and the types of hostPath."""
import os
import socket
import stat

from coracle import check, config_map, container, contains, equal, mount, pod, run, until


def test_nested(t):
    """a volume at /a and others at /a/b and below, in any order of the manifest, also below a ConfigMap"""
    node = t.node()
    node.import_image()
    volumes = [{"name": n, "emptyDir": {}} for n in ("outer", "inner", "deep")] + [{"name": "c", "configMap": {"name": "c"}}]
    mounts = [mount("deep", "/a/b/c"), mount("outer", "/a"), mount("inner", "/a/b/"),
              mount("inner", "/cfg/in/side"), mount("c", "/cfg"), mount("outer", "/a/b/c/d")]
    node.put("a.yaml", config_map("c", key="one"), pod("a", container(volumeMounts=mounts), container("back", volumeMounts=mounts[::-1]), volumes=volumes))
    a = node.wait_running("a")
    for name, path in (("deep", "/a/b/c"), ("outer", "/a"), ("inner", "/a/b")):
        node.enter(a, "touch", f"{path}/of-{name}")
    for c in ("main", "back"):
        for path in ("/a/of-outer", "/a/b/of-inner", "/a/b/c/of-deep", "/a/b/c/d/of-outer", "/cfg/in/side/of-inner"):
            equal(node.enter(a, "test", "-e", path, container=c, ok=False).returncode, 0, f"{path} in {c}")
        equal(node.enter(a, "cat", "/cfg/key", container=c).stdout, "one", f"the ConfigMap in {c}")
    node.put("a.yaml", config_map("c", key="two"), pod("a", container(volumeMounts=mounts), container("back", volumeMounts=mounts[::-1]), volumes=volumes))
    until(lambda: node.enter(a, "cat", "/cfg/key").stdout == "two", 10, "the ConfigMap's new content")
    contains(node.enter(a, "ls", "/cfg/in/side").stdout, "of-inner\n", "the volume inside, after an update")
    node.finish(a)
    equal(node.stop(), 0, "exit code")


def test_recursive_read_only(t):
    """readOnly leaves a mount below the volume writable, recursiveReadOnly Enabled and IfPossible do not; the status has the result"""
    node = t.node()
    node.import_image()
    path = f"{t.scratch}/tmp/top"
    os.makedirs(f"{path}/sub")
    run("mount", "-t", "tmpfs", "sub", f"{path}/sub")
    mounts = [{"name": "v", "mountPath": f"/{n}", "readOnly": True, **more} for n, more in (
        ("plain", {}), ("disabled", {"recursiveReadOnly": "Disabled"}), ("enabled", {"recursiveReadOnly": "Enabled"}), ("possible", {"recursiveReadOnly": "IfPossible"}))]
    node.put("a.yaml", pod("a", container(volumeMounts=mounts + [mount("v", "/rw")]), volumes=[{"name": "v", "hostPath": {"path": path}}]))
    node.put("b.yaml", pod("b", container(volumeMounts=[mount("v", "/v", recursiveReadOnly="Enabled")]), volumes=[{"name": "v", "emptyDir": {}}]))
    a = node.wait_running("a")
    shown = {m["mountPath"]: m.get("recursiveReadOnly") for m in a.container()["volumeMounts"]}
    equal(shown, {"/plain": "Disabled", "/disabled": "Disabled", "/enabled": "Enabled", "/possible": "Enabled", "/rw": None}, "volumeMounts of the status")
    for name, top, sub in (("plain", 1, 0), ("disabled", 1, 0), ("enabled", 1, 1), ("possible", 1, 1), ("rw", 0, 0)):
        equal(tuple(int(node.enter(a, "touch", f"/{name}{p}/x", ok=False).returncode != 0) for p in ("", "/sub")), (top, sub), f"refused at the top and below, {name}")
    until(lambda: node.problems().get("b.yaml"), 10, "the manifest without readOnly is refused")
    contains(str(node.problems()["b.yaml"]), "recursiveReadOnly: Enabled needs readOnly to be true")
    node.remove("a.yaml", "b.yaml")
    node.wait_gone("a")
    check(os.path.ismount(f"{path}/sub"), "the host's mount is gone")
    run("umount", f"{path}/sub")
    equal(node.stop(), 0, "exit code")


def test_propagation(t):
    """None, HostToContainer and Bidirectional: mounts made on the host and in a container afterwards"""
    node = t.node()
    node.import_image()
    path = f"{t.scratch}/tmp/shared"
    os.makedirs(f"{path}/host")
    os.makedirs(f"{path}/pod")

    def of(mode, **more):
        return container(mode.lower() or "none", volumeMounts=[{"name": "v", "mountPath": "/v", **({"mountPropagation": mode} if mode else {})},
                                                               {"name": "v", "mountPath": "/s", "subPath": "host", **({"mountPropagation": mode} if mode else {})}],
                         securityContext={"privileged": True}, **more)
    node.put("a.yaml", pod("a", of(""), of("None") | {"name": "explicit"}, of("HostToContainer"), of("Bidirectional"), volumes=[{"name": "v", "hostPath": {"path": path}}]))
    a = node.wait_running("a")
    os.makedirs(f"{path}/host/below")
    run("mount", "-t", "tmpfs", "late", f"{path}/host/below")
    open(f"{path}/host/below/file", "w", encoding="ascii").close()
    node.enter(a, "mount", "-t", "tmpfs", "inner", "/v/pod", container="bidirectional")
    node.enter(a, "touch", "/v/pod/file", container="bidirectional")
    check(os.path.exists(f"{path}/pod/file"), "a mount of the Bidirectional container does not show on the host")
    for name, sees in (("none", False), ("explicit", False), ("hosttocontainer", True), ("bidirectional", True)):
        for file in ("/v/host/below/file", "/v/pod/file", "/s/below/file"):
            equal(node.enter(a, "test", "-e", file, container=name, ok=False).returncode == 0, sees, f"{name} sees {file}")
    node.finish(a)
    check(os.path.exists(f"{path}/pod/file") and os.path.exists(f"{path}/host/below/file"), "mounts of the host went with the pod")
    run("umount", f"{path}/pod", f"{path}/host/below")
    equal(node.stop(), 0, "exit code")


def test_host_path_types(t):
    """every type of hostPath on every kind of file: some are mounted, some created with a mode, the rest rejected with kubelet's text"""
    node = t.node()
    node.import_image()
    base = f"{t.scratch}/tmp/h"
    os.makedirs(f"{base}/folder")
    open(f"{base}/file", "w", encoding="ascii").close()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{base}/socket")
    os.mknod(f"{base}/char", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.mknod(f"{base}/block", stat.S_IFBLK | 0o600, os.makedev(7, 250))
    os.symlink("folder", f"{base}/link")
    words = {"Directory": "a directory", "DirectoryOrCreate": "a directory", "File": "a file", "FileOrCreate": "a file", "Socket": "a socket file",
             "CharDevice": "a character device", "BlockDevice": "a block device"}
    fits = {"folder": ("", "Directory", "DirectoryOrCreate"), "link": ("", "Directory", "DirectoryOrCreate"), "file": ("", "File", "FileOrCreate"),
            "socket": ("", "Socket"), "char": ("", "CharDevice"), "block": ("", "BlockDevice")}
    good, bad = [], {}
    for thing, types in fits.items():
        for kind in ["", *words]:
            name = f"{thing}-{kind.lower()}" if kind else thing
            if kind in types:
                good.append((name, f"{base}/{thing}", kind))
            elif thing == ("file" if "Dir" in kind else "folder"):
                bad[name] = (f"{base}/{thing}", kind, f"hostPath type check failed: {base}/{thing} is not {words[kind]}")
    for kind in ("Directory", "File", "Socket", "CharDevice", "BlockDevice"):
        bad[f"none-{kind.lower()}"] = (f"{base}/none", kind, f"hostPath type check failed: {base}/none is not {words[kind]}")
    bad["no-parent"] = (f"{base}/none/file", "FileOrCreate", f"open {base}/none/file: no such file or directory")
    good += [("made-folder", f"{base}/new/folder", "DirectoryOrCreate"), ("made-file", f"{base}/new-file", "FileOrCreate"), ("made", f"{base}/any/thing", "")]
    volumes = [{"name": n, "hostPath": {"path": p, **({"type": k} if k else {})}} for n, p, k in good]
    before = os.umask(0o077)
    try:
        node.put("a.yaml", pod("a", container(volumeMounts=[mount(n, f"/m/{n}") for n, _, _ in good]), volumes=volumes))
        a = node.wait_running("a")
    finally:
        os.umask(before)
    for name, mode in (("new", 0o40755), ("new/folder", 0o40755), ("new-file", 0o100644), ("any/thing", 0o40755)):
        equal(oct(os.stat(f"{base}/{name}").st_mode), oct(mode), f"mode of {name}")
    equal(node.enter(a, "stat", "-c", "%F", "/m/link", "/m/socket", "/m/char", "/m/block", "/m/made-file").stdout.splitlines(),
          ["directory", "socket", "character special file", "block special file", "regular empty file"], "what the container sees")
    for name, (path, kind, text) in bad.items():
        node.put("b.yaml", pod("b", container(volumeMounts=[mount("v", "/v")]), volumes=[{"name": "v", "hostPath": {"path": path, "type": kind}}]))
        wanted = f'MountVolume.SetUp failed for volume "v" : {text}'
        until(lambda w=wanted: any(e["reason"] == "FailedMount" and e["message"] == w for e in node.events("b")), 20,
              lambda n=name, w=wanted: f"{n}: {w!r} among {[e['message'] for e in node.events('b')]}")
    check(not os.path.exists(f"{base}/none"), "a check made what it checked")
    node.remove("a.yaml", "b.yaml")
    node.wait_gone("a", "b")
    node.wait_no_traces(a)
    listener.close()
    equal(sorted(os.listdir(base)), ["any", "block", "char", "file", "folder", "link", "new", "new-file", "socket"], "what is on the host afterwards")
    equal(node.stop(), 0, "exit code")
