# SPDX-License-Identifier: Apache-2.0
"""Modes and owners in ConfigMap, Secret, downward API, projected and emptyDir volumes, seen from inside."""
from coracle import check, config_map, container, equal, pod, secret, shell

# The rules are those of pkg/volume/volume_linux.go: for a volume that is read-only by nature, fsGroup adds
# 0440 to files and 02550 to folders; for others 0660 and 02770.  No bit is ever removed.  Links get the group
# only.
DEFAULT_MODES = (None, 0o400, 0o440, 0o600, 0o755, 0o000)
ITEM_MODES = (None, 0o400, 0o604, 0o777)
KINDS = ("configMap", "secret", "downwardAPI", "projected")
FS_GROUPS = (None, 2000)
USERS = (None, 1000)
GROUP_OF_USER = 3000
REPORT = r"""
cd /v
for v in *; do stat -c "%n %a %u %g" $v; done
find . -mindepth 2 -path "*/..[0-9]*" -prune -o -mindepth 2 -exec stat -c "%n %a %u %g %F" {} +
find -L . -mindepth 2 -path "*/..*" -prune -o -mindepth 2 -exec stat -L -c "=%n %a %u %g" {} +
for f in *-*/* */d/*; do [ -f $f ] && [ -r "$f" ] && echo "readable $f"; done
for v in *; do (: > $v/new-$NAME) 2>/dev/null && echo "writable $v"; done
(: > sub/new-$NAME) 2>/dev/null && echo "writable sub"
echo end
"""


def items(kind):
    """One file with the default mode, one in a folder, and one for each mode of its own."""
    found = []
    for name, mode in [("plain", None), ("d/nested", None)] + [(f"m{m:04o}", m) for m in ITEM_MODES if m is not None]:
        item = {"path": name}
        item.update({"fieldRef": {"fieldPath": "metadata.name"}} if kind == "downwardAPI" else {"key": "k"})
        if mode is not None:
            item["mode"] = mode
        found.append(item)
    return found


def volume(kind, mode):
    """(name, the volume)"""
    source = {"items": items(kind if kind != "projected" else "secret")}
    if kind == "configMap":
        source["name"] = "map"
    elif kind == "secret":
        source["secretName"] = "secret"
    elif kind == "projected":
        source = {"sources": [{"secret": {"name": "secret", "items": source["items"][:3]}},
                              {"configMap": {"name": "map", "items": source["items"][3:]}}]}
    if mode is not None:
        source["defaultMode"] = mode
    return f"{kind.lower()}-{'none' if mode is None else format(mode, '04o')}", {kind: source}


VOLUMES = [(kind, mode, *volume(kind, mode)) for kind in KINDS for mode in DEFAULT_MODES]
DISKS = [("disk", {"emptyDir": {}}), ("memory", {"emptyDir": {"medium": "Memory"}})]


def expected(fs_group, user, read_only):
    """The report's lines: names, modes and owners."""
    lines, gid = set(), fs_group or 0
    plus_file, plus_dir = (0o440, 0o2550) if fs_group else (0, 0)

    def may_read(mode):
        if user is None:  # root with its capability
            return True
        return bool(mode & (0o040 if fs_group else 0o004))  # never the owner; in the group when there is one

    for kind, default, name, _ in VOLUMES:
        root = 0o777 if kind == "configMap" else 0o1777
        lines.add(f"{name} {root | plus_dir:o} 0 {gid}")
        lines.add(f"./{name}/..data 777 0 {gid} symbolic link")
        lines.add(f"=./{name}/d {0o755 | plus_dir:o} 0 {gid}")
        lines.add(f"./{name}/d 777 0 {gid} symbolic link")
        for item in items("secret"):
            mode = item.get("mode", 0o644 if default is None else default) | plus_file
            lines.add(f"=./{name}/{item['path']} {mode:o} 0 {gid}")
            if may_read(mode):
                lines.add(f"readable {name}/{item['path']}")
            if "/" not in item["path"]:
                lines.add(f"./{name}/{item['path']} 777 0 {gid} symbolic link")
    for name, root in (("disk", 0o777), ("memory", 0o1777)):
        lines.add(f"{name} {root | (0o2770 if fs_group else 0):o} 0 {gid}")
        if not read_only:
            lines.add(f"writable {name}")
    sub = 0o777 | (0o2770 if fs_group else 0)  # made with the mode of the volume's root
    lines.add(f"sub {sub:o} 0 {gid}")
    if not read_only:
        lines |= {"writable sub"}
    return lines


def test_modes_and_owners(t):
    """defaultMode x item mode x fsGroup x runAsUser x readOnly: modes, owners and what can be read and written, from inside"""
    node = t.node()
    node.import_image()
    node.put("objects.yaml", config_map("map", k="value"), secret("secret", k="value"))
    names = [(name, v) for _, _, name, v in VOLUMES] + DISKS
    cases = {}
    for fs_group in FS_GROUPS:
        containers = []
        for user in USERS:
            for read_only in (False, True):
                name = f"{'root' if user is None else 'user'}-{'ro' if read_only else 'rw'}"
                mounts = [{"name": n, "mountPath": f"/v/{n}", "readOnly": read_only} for n, _ in names]
                mounts.append({"name": "disk", "mountPath": "/v/sub", "subPath": "made", "readOnly": read_only})
                more = {"securityContext": {"runAsUser": user, "runAsGroup": GROUP_OF_USER}} if user else {}
                containers.append(container(name, shell(REPORT), env=[{"name": "NAME", "value": name}], volumeMounts=mounts, **more))
                cases[f"g{fs_group or 0}", name] = (fs_group, user, read_only)
        node.put(f"pod-{fs_group}.yaml", pod(
            f"g{fs_group or 0}", *containers, restartPolicy="Never", volumes=[{"name": n, **v} for n, v in names],
            **({"securityContext": {"fsGroup": fs_group}} if fs_group else {})))
    for name in sorted({p for p, _ in cases}):
        node.wait_pod(name, lambda p: p.phase in ("Succeeded", "Failed"), 60)
    for (name, inner), case in cases.items():
        lines = node.logs(name, inner).splitlines()
        check(lines and lines[-1] == "end", lambda: f"{name}/{inner} printed {lines[-3:]}")  # pylint: disable=W0640
        seen, wanted = set(lines[:-1]), expected(*case)
        seen = {line for line in seen if not line.lstrip("=").startswith(("./disk/", "./memory/", "./sub/"))}
        equal(sorted(seen - wanted), [], f"{name}/{inner}: not expected")
        equal(sorted(wanted - seen), [], f"{name}/{inner}: missing")
    node.stop()
