# SPDX-License-Identifier: Apache-2.0
"""subPath mounts of ConfigMaps and Secrets that follow them: coracle.dev/subpath: live."""
import os

from coracle import Skip, check, config_map, container, contains, equal, mount, pod, read, run, secret, shell, until
from test_userns import able

LIVE = {"coracle.dev/subpath": "live"}

# Reads one file in the plain way: it must be whole, exist at any moment, and never be older than before.
READER = """
n=0; bad=0; last=0
trap 'echo TOTAL $n $bad; exit 0' TERM
while :; do
    v=
    read -r v < /etc/app.conf || { bad=$((bad + 1)); echo "MISSING: $v"; continue; }
    case "$v" in *' end') ;; *) bad=$((bad + 1)); echo "HALF: $v"; continue;; esac
    [ ${v%% *} -ge $last ] || { bad=$((bad + 1)); echo "BACK from $last: $v"; }
    last=${v%% *}
    n=$((n + 1))
done
"""

# Exchanges /a, which holds the mount points, and the link /b to /proc, as fast as it can.
EXCHANGER = r"""
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    if (symlink("/proc", "/b") != 0)
        return 1;
    for (;;)
        syscall(SYS_renameat2, -100, "/a", -100, "/b", 2);
}
"""

# A kernel before 6.5, which cannot mount beneath.
NOT_BENEATH = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
int move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
    int (*real)(int, const char *, int, const char *, unsigned) = dlsym(RTLD_NEXT, "move_mount");
    if (flags & 0x200) {
        errno = EINVAL;
        return -1;
    }
    return real(from, from_path, to, to_path, flags);
}
"""

# Whoever has made a mount shared is killed, while the file named by CORACLE_TEST_FAIL has a 1: mapped, as a child in a
# container's namespaces does not find it by name.
KILLED_WHILE_SHARED = NOT_BENEATH + r"""
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>
static volatile char *on;
__attribute__((constructor)) static void map(void)
{
    int fd = open(getenv("CORACLE_TEST_FAIL"), O_RDONLY | O_CLOEXEC);
    on = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
}
int mount_setattr(int fd, const char *path, unsigned flags, struct mount_attr *attr, size_t size)
{
    int (*real)(int, const char *, unsigned, struct mount_attr *, size_t) = dlsym(RTLD_NEXT, "mount_setattr");
    int result = real(fd, path, flags, attr, size);
    if (result == 0 && attr->propagation == MS_SHARED && on != MAP_FAILED && *on == '1')
        raise(SIGKILL);
    return result;
}
"""

# Opening a mount's tree fails while the file named by CORACLE_TEST_FAIL is there.
NO_TREE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int open_tree(int fd, const char *path, unsigned flags)
{
    int (*real)(int, const char *, unsigned) = dlsym(RTLD_NEXT, "open_tree");
    if (access(getenv("CORACLE_TEST_FAIL"), F_OK) == 0) {
        errno = ENOMEM;
        return -1;
    }
    return real(fd, path, flags);
}
"""


def preloaded(t, source, **env):
    if "address" in os.path.basename(t.build):
        raise Skip("AddressSanitizer wants to be the first library")
    with open(f"{t.scratch}/tmp/shim.c", "w", encoding="ascii") as f:
        f.write(source)
    run("cc", "-shared", "-fPIC", "-o", f"{t.scratch}/tmp/shim.so", f"{t.scratch}/tmp/shim.c", "-ldl")
    return t.node(env={"LD_PRELOAD": f"{t.scratch}/tmp/shim.so", **env})


def line(number):
    return f"{number} {'x' * (number * 37 % 3000)} end\n"


def mounts_of(node, p, name=None):
    return read(f"/proc/{node.pid(p, name)}/mountinfo")


def parts(node, users=False, annotations=None):
    """A pod with a file and a folder of one ConfigMap, and a key of a Secret."""
    volumes = [{"name": "config", "configMap": {"name": "config", "items": [
        {"key": "app", "path": "app.conf"}, {"key": "one", "path": "parts/one"}, {"key": "two", "path": "parts/two"}]}},
               {"name": "login", "secret": {"secretName": "login"}}]
    mounts = [mount("config", "/etc/app.conf", subPath="app.conf"),
              mount("config", "/parts", subPath="parts"),
              mount("login", "/run/word", subPathExpr="$(KEY)")]
    more = {"hostUsers": False} if users else {}
    node.put("login.yaml", secret("login", word="swordfish"))
    node.put("pod.yaml", pod("p", container(volumeMounts=mounts, env=[{"name": "KEY", "value": "word"}]), volumes=volumes,
                             annotations=annotations, **more))
    return node.wait_running("p")


def put(node, number):
    node.put("config.yaml", config_map("config", app=line(number), one=f"one {number}", two=f"two {number}"))


def test_follow(t):
    """file, folder and subPathExpr follow their volume, read-only, without a mount more; a removed key and a killed agent change nothing"""
    follow(t.node())


def test_follow_before_beneath(t):
    """the same on a kernel that cannot mount beneath"""
    follow(preloaded(t, NOT_BENEATH))


def follow(node):
    node.import_image()
    put(node, 1)
    p = parts(node, annotations=LIVE)
    before = len(mounts_of(node, p).splitlines())
    propagation = [m.split(" - ")[0].split()[6:] for m in mounts_of(node, p).splitlines()]

    def shows(number, word="swordfish"):
        until(lambda: node.enter(p, "cat", "/etc/app.conf", "/parts/one", "/parts/two", "/run/word", ok=False).stdout ==
              f"{line(number)}one {number}two {number}{word}", 10,
              lambda: f"version {number} in the container; {node.events('p')[-1]['message']}")
    shows(1)
    for number in range(2, 8):
        put(node, number)
        shows(number)
    node.put("login.yaml", secret("login", word="marlin"))
    shows(7, "marlin")
    equal(len(mounts_of(node, p).splitlines()), before, "mounts of the container")
    equal([m.split(" - ")[0].split()[6:] for m in mounts_of(node, p).splitlines()], propagation, "their propagation")
    for path in ("/etc/app.conf", "/parts/one", "/run/word"):
        contains(node.enter(p, "sh", "-c", f"echo x > {path}", ok=False).stderr, "Read-only file system")
    node.kill()
    put(node, 8)
    node.start()
    shows(8, "marlin")
    node.put("login.yaml", secret("login", other="x"))
    put(node, 9)
    shows(9, "marlin")
    equal(node.pod("p").restarts(), 0, "restarts")
    node.remove("pod.yaml")
    node.wait_gone("p")
    node.wait_no_traces(p)
    node.stop()


def test_kubelets_rule(t):
    """without the annotation a subPath mount stays as it was at the start, with it added it catches up; another value is a problem"""
    node = t.node()
    node.import_image()
    put(node, 1)
    p = parts(node)
    put(node, 2)
    node.put("mark.yaml", pod("mark", container(volumeMounts=[mount("config", "/config")]),
                              volumes=[{"name": "config", "configMap": {"name": "config"}}]))
    mark = node.wait_running("mark")
    until(lambda: node.enter(mark, "cat", "/config/app", ok=False).stdout == line(2), 10, "the volume has version 2")
    equal(node.enter(p, "cat", "/etc/app.conf").stdout, line(1), "the subPath mount")
    parts(node, annotations={"coracle.dev/subpath": "alive"})
    until(lambda: any("\"alive\" is not allowed, allowed is live" in x for x in node.problems().get("pod.yaml", [])), 10, "the problem")
    p = parts(node, annotations=LIVE)
    until(lambda: node.enter(p, "cat", "/etc/app.conf").stdout == line(2), 10, "it catches up")
    equal(node.pod("p").restarts(), 0, "restarts")
    node.stop()


def test_atomic(t):
    """a reader of a live subPath mount sees every file whole, none missing and none older than before, under 100 changes and kill -9"""
    node = t.node()
    node.import_image()
    put(node, 1)
    node.put("pod.yaml", pod("reader", container(command=shell(READER), volumeMounts=[
        mount("config", "/etc/app.conf", subPath="app")]), restartPolicy="Never", annotations=LIVE,
                             volumes=[{"name": "config", "configMap": {"name": "config"}}]))
    p = node.wait_running("reader")
    for number in range(2, 102):
        put(node, number)
        if number % 40 == 0:
            node.kill()
            node.start()
        else:
            until(lambda: node.enter(p, "head", "-c", "4", "/etc/app.conf").stdout.split()[0] == str(number), 10,  # pylint: disable=cell-var-from-loop
                  f"version {number}")
    node.remove("pod.yaml")
    text = until(lambda: (x := node.cli("logs", "reader", ok=False).stdout) and "TOTAL" in x and x, 10, "the reader's account")
    read_count, bad = text.split("TOTAL ")[1].split()[:2]
    print(f"MEASURED {read_count} reads of a live subPath mount under 100 changes, {bad} bad")
    equal(bad, "0", f"reads that were not whole: {text[-1000:]}")
    check(int(read_count) > 100, f"{read_count} reads")
    node.wait_gone("reader")
    node.stop()


test_atomic.seconds = 40


def test_users(t):
    """the same in a pod with its own users"""
    node = t.node()
    able(node)
    node.import_image()
    put(node, 1)
    p = parts(node, users=True, annotations=LIVE)
    for number in (2, 3):
        put(node, number)
        until(lambda: node.enter(p, "cat", "/etc/app.conf", ok=False).stdout == line(number), 10,  # pylint: disable=cell-var-from-loop
              lambda: f"version {number}; {[e['message'] for e in node.events('p')]}")
    equal(node.enter(p, "stat", "-c", "%u", "/etc/app.conf").stdout.strip(), "0", "its owner, as the pod sees it")
    node.stop()


def points(node, p):
    """Mount points of the container, as often as there are mounts; whatever name the attacker's folder has."""
    return sorted(m.split()[4].replace("/b/", "/a/") for m in mounts_of(node, p).splitlines())


def exchange(t, node):
    tmp = f"{t.scratch}/tmp"
    with open(f"{tmp}/exchange.c", "w", encoding="ascii") as f:
        f.write(EXCHANGER)
    os.makedirs(f"{tmp}/tool", exist_ok=True)
    run("cc", "-static", "-O1", "-o", f"{tmp}/tool/exchange", f"{tmp}/exchange.c")
    node.import_image()

    def edit(number):
        node.put("config.yaml", config_map("config", app=line(number), one=f"one {number}"))
    edit(1)
    # What hides below the folder has the names of what hides below /proc.
    node.put("pod.yaml", pod("p", container(command=["/tool/exchange"], volumeMounts=[
        mount("config", "/a/sys", subPath="sys"), mount("config", "/a/keys", subPath="app"), mount("tool", "/tool")]),
        annotations=LIVE, volumes=[
            {"name": "config", "configMap": {"name": "config", "items": [{"key": "app", "path": "app"}, {"key": "one", "path": "sys/one"}]}},
            {"name": "tool", "hostPath": {"path": f"{tmp}/tool"}}]))
    p = node.wait_running("p")
    before = points(node, p)
    check("/proc/sys" in before and "/proc/keys" in before, f"/proc/sys and /proc/keys are mounts: {before}")

    def shows(number):
        out = [node.enter(p, "cat", f"/{x}/keys", f"/{x}/sys/one", ok=False).stdout for x in "ab"]
        return f"{line(number)}one {number}" in out

    def safe():
        now = [x for x in points(node, p) if x.startswith("/proc/")]
        equal(now, [x for x in before if x.startswith("/proc/")], "mounts of the container below /proc")
    for number in range(2, 32):
        edit(number)
        until(lambda: safe() or shows(number), 30,  # pylint: disable=cell-var-from-loop
              lambda: f"version {number}; {[e['message'] for e in node.events('p')]}")
    safe()
    until(lambda: points(node, p) == before, 10, lambda: f"mounts {points(node, p)}, not {before}")
    proc_sys = [m.split() for m in mounts_of(node, p).splitlines() if m.split()[4] == "/proc/sys"]
    check(all(m[5].startswith("ro") for m in proc_sys), f"/proc/sys is read-only: {proc_sys}")
    equal(node.pod("p").restarts(), 0, "restarts")
    node.remove("pod.yaml")
    node.wait_gone("p")
    node.wait_no_traces(p)
    node.stop()


def test_exchange(t):
    """a container that keeps exchanging the mounts' folder with a link to /proc keeps all its mounts, and they follow"""
    exchange(t, t.node())


def test_exchange_before_beneath(t):
    """the same on a kernel that cannot mount beneath"""
    exchange(t, preloaded(t, NOT_BENEATH))


test_exchange.seconds = test_exchange_before_beneath.seconds = 40


def test_retry(t):
    """a mount that could not follow is retried with a back-off until it does; explain shows the error until then"""
    switch = f"{t.scratch}/tmp/fail"
    node = preloaded(t, NO_TREE, CORACLE_TEST_FAIL=switch)
    node.import_image()
    put(node, 1)
    p = parts(node, annotations=LIVE)
    equal("subPath of main" in node.cli("explain", "pod", "p").stdout, False, "explain before")
    with open(switch, "w", encoding="ascii"):
        pass
    put(node, 2)
    text = until(lambda: (x := node.cli("explain", "pod", "p").stdout) and "subPath of main" in x and x, 10, "explain shows the step")
    contains(text, "Cannot allocate memory", "explain")
    equal(node.enter(p, "cat", "/etc/app.conf").stdout, line(1), "the subPath mount")
    os.unlink(switch)
    until(lambda: node.enter(p, "cat", "/etc/app.conf").stdout == line(2), 15, "it is tried again")
    until(lambda: "subPath of main" not in node.cli("explain", "pod", "p").stdout, 10, "explain shows it no more")
    equal(len([e for e in node.events("p") if e["reason"] == "SubPathNotFollowed"]), 1, "events")
    equal(node.pod("p").restarts(), 0, "restarts")
    node.stop()


def test_killed_while_shared(t):
    """before mounts could be put beneath: killed while the mount below is shared, the next try gives it back what it was"""
    switch = f"{t.scratch}/tmp/fail"

    def kill(on):
        with open(switch, "r+" if os.path.exists(switch) else "w", encoding="ascii") as f:
            f.write(str(on))
    kill(0)
    node = preloaded(t, KILLED_WHILE_SHARED, CORACLE_TEST_FAIL=switch)
    node.import_image()
    put(node, 1)
    p = parts(node, annotations=LIVE)

    def mounts():
        return sorted((m.split()[4], "nodiratime" in m.split()[5], *m.split(" - ")[0].split()[6:]) for m in mounts_of(node, p).splitlines())
    before = mounts()
    kill(1)
    put(node, 2)
    until(lambda: "subPath of main" in node.cli("explain", "pod", "p").stdout, 10, "a child was killed")
    check(mounts() != before, "it left the mount below shared")
    kill(0)
    until(lambda: node.enter(p, "cat", "/etc/app.conf").stdout == line(2), 15, "it is tried again")
    until(lambda: mounts() == before, 10, lambda: f"mounts {mounts()}, not {before}")
    node.stop()
