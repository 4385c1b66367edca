# SPDX-License-Identifier: Apache-2.0
"""A look that fails once when the daemon starts over running pods does not change them."""
import glob
import os

from coracle import Skip, alive, check, config_map, container, equal, pod, read, run, until

# One call of the daemon fails once, as described in the file named by CORACLE_TEST_FAIL: its name, a part of
# the path, the errno.  The process that manages to remove the file gets the failure.
SHIM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static int fails(const char *call, const char *path)
{
    char text[600] = "", name[32], part[512];
    const char *file = getenv("CORACLE_TEST_FAIL");
    int fd, code, before = errno;

    if (file == NULL || path == NULL || strcmp(program_invocation_short_name, "coracle") != 0)
        return 0;
    fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n = read(fd, text, sizeof(text) - 1);
        close(fd);
        if (n > 0 && sscanf(text, "%31s %511s %d", name, part, &code) == 3 && strcmp(name, call) == 0 &&
            strstr(path, part) != NULL && unlink(file) == 0) {
            errno = code;
            return 1;
        }
    }
    errno = before;
    return 0;
}

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret)
{
    return fails("statx", path) ? -1 : (int)syscall(SYS_statx, dir, path, flags, mask, ret);
}

int fstatat(int dir, const char *path, struct stat *ret, int flags)
{
    return fails("fstatat", path) ? -1 : (int)syscall(SYS_newfstatat, dir, path, ret, flags);
}

int statfs(const char *path, struct statfs *ret)
{
    return fails("statfs", path) ? -1 : (int)syscall(SYS_statfs, path, ret);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return fails("openat", path) ? -1 : (int)syscall(SYS_openat, dir, path, flags, mode);
}

ssize_t readlink(const char *path, char *ret, size_t n)
{
    return fails("readlink", path) ? -1 : syscall(SYS_readlinkat, AT_FDCWD, path, ret, n);
}

int pidfd_open(pid_t pid, unsigned flags)
{
    char text[32];

    snprintf(text, sizeof(text), "pid-%d.", (int)pid);
    return fails("pidfd_open", text) ? -1 : (int)syscall(SYS_pidfd_open, pid, flags);
}
"""


def node_that_fails(t):
    if "address" in os.path.basename(t.build):
        raise Skip("AddressSanitizer wants to be the first library")
    with open(f"{t.scratch}/tmp/fail.c", "w", encoding="ascii") as f:
        f.write(SHIM)
    run("cc", "-shared", "-fPIC", "-o", f"{t.scratch}/tmp/fail.so", f"{t.scratch}/tmp/fail.c")
    node = t.node(env={"LD_PRELOAD": f"{t.scratch}/tmp/fail.so", "CORACLE_TEST_FAIL": f"{t.scratch}/tmp/fail"})
    node.import_image()
    return node


def fail_once(t, call, part, code):
    with open(f"{t.scratch}/tmp/fail.new", "w", encoding="ascii") as f:
        f.write(f"{call} {part} {code}")
    os.rename(f"{t.scratch}/tmp/fail.new", f"{t.scratch}/tmp/fail")


def failed(t):
    return not os.path.exists(f"{t.scratch}/tmp/fail")


def facts(node):
    p = node.pod("a")
    return p.uid, p.container_id(), node.pid(p), p.ip, p.restarts()


EIO, EMFILE = 5, 24


def over_running_pods(t, *looks):
    """For each look: kills the daemon and starts it with that look failing; finally edits the pod and removes it."""
    node = node_that_fails(t)
    node.put("config.yaml", config_map("config", text="0"))
    node.put("a.yaml", pod("a", container(volumeMounts=[{"name": "config", "mountPath": "/config"},
                                                        {"name": "memory", "mountPath": "/memory"}]),
                           volumes=[{"name": "config", "configMap": {"name": "config"}},
                                    {"name": "memory", "emptyDir": {"medium": "Memory"}}]))
    node.put("done.yaml", pod("done", container(command=["true"]), restartPolicy="Never"))
    node.wait_running("a")
    ended = node.wait_phase("done", "Succeeded")
    done = ended.container_id()
    before = facts(node)
    for turn, (call, part) in enumerate(looks, 1):
        node.kill()
        fail_once(t, call, part.format(uid=before[0], cid=before[1], run=node.run_dir, done=ended.uid), EIO)
        node.start()
        until(lambda: failed(t), 10, f"{call} of {part} fails")  # pylint: disable=cell-var-from-loop
        node.wait_pod("a", lambda p: p.ready)
        node.put("config.yaml", config_map("config", text=str(turn)))
        until(lambda: node.enter(node.pod("a"), "cat", "/config/text").stdout == str(turn), 10,  # pylint: disable=cell-var-from-loop
              f"an edit after {call} of {part} failed")
        equal(facts(node), before, f"the pod after {call} of {part} failed")
        check(alive(before[2]), "its process")
        equal(node.pod("done").container_id(), done, f"the pod that had ended, after {call} of {part} failed")
    node.remove("a.yaml", "done.yaml")
    node.wait_gone("a", "done")
    equal(node.stop(), 0, "exit code")


def test_mounts(t):
    """after a failed lookup of the mounts of the run folder, of the volumes' tmpfs, of a memory volume and of shared memory"""
    over_running_pods(t, ("statfs", "{run}"), ("statx", "{run}"), ("statx", "{run}/volumes"),
                      ("statx", "/kubernetes.io~empty-dir/memory"), ("statx", "/.shm"))


test_mounts.seconds = 20


def test_network(t):
    """after a failed lookup of the pins of the namespaces and of the cached answer of the network plugins"""
    over_running_pods(t, ("statfs", "{uid}/net"), ("statfs", "{uid}/uts"), ("statfs", "{uid}/ipc"), ("openat", "-eth0.json"))


test_network.seconds = 20


def test_records(t):
    """over a record, of a pod that runs and of one that had ended, and a boot id that cannot be read"""
    over_running_pods(t, ("openat", "{uid}.json"), ("fstatat", "{uid}.json"), ("openat", "{done}.json"),
                      ("openat", "/random/boot_id"))


test_records.seconds = 20


def test_shared_pid_namespace(t):
    """after a failed lookup of the pin, the mark, the process and the program of a PID namespace that a pod shares"""
    node = node_that_fails(t)
    node.put("a.yaml", pod("a", container(), shareProcessNamespace=True))
    p = node.wait_running("a")
    marks = glob.glob(f"{node.run_dir}/**/{p.uid}/pause", recursive=True)
    equal(len(marks), 1, "files that name the pause process")
    before, mark = facts(node), read(marks[0])
    pause = int(mark.split()[0])
    for call, part, code in (("statfs", f"{p.uid}/pid", EIO), ("openat", f"{p.uid}/pause", EIO), ("openat", f"{p.uid}/pause", EMFILE),
                             ("pidfd_open", f"pid-{pause}.", EMFILE), ("openat", f"/proc/{pause}/stat", EIO),
                             ("readlink", f"/proc/{pause}/exe", EIO)):
        what = f"after {call} of {part} failed with {code}"
        node.kill()
        seen = len(node.log())
        fail_once(t, call, part, code)
        node.start()
        until(lambda: failed(t), 10, f"{call} of {part} fails")  # pylint: disable=cell-var-from-loop
        node.wait_log("state is known again", since=seen)
        node.wait_pod("a", lambda p: p.ready)
        equal(facts(node), before, f"the pod {what}")
        equal(read(marks[0]), mark, f"its pause process {what}")
        check(alive(before[2]) and alive(pause), f"its processes {what}")
    node.remove("a.yaml")
    node.wait_gone("a")
    until(lambda: not alive(pause), 5, "the pause process ends with its pod")
    equal(node.stop(), 0, "exit code")


test_shared_pid_namespace.seconds = 20
