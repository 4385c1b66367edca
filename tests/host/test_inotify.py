# SPDX-License-Identifier: Apache-2.0
"""Without inotify instances, which containers can use up, the daemon starts and works: it polls, and says so."""
import os

from coracle import Skip, container, contains, equal, pod, run, until

# inotify_init1() fails while the file exists.
SHIM = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int inotify_init1(int flags)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "inotify_init1");

    if (access(getenv("CORACLE_TEST_NONE_LEFT"), F_OK) == 0) {
        errno = EMFILE;
        return -1;
    }
    return real(flags);
}
"""


def instances(pid):
    """How many inotify instances the process has."""
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            pass
    return links.count("anon_inode:inotify")


def said(node):
    """The step about file events in `explain node`, None where there is none."""
    return next((s for s in node.get("/explain")["steps"] if s["name"] == "file events"), None)


def test_none_left(t):
    """without any inotify instance pods start, change, end and are restarted; later an instance is found again"""
    if "address" in os.path.basename(t.build):
        raise Skip("AddressSanitizer wants to be the first library")
    with open(f"{t.scratch}/tmp/shim.c", "w", encoding="ascii") as f:
        f.write(SHIM)
    run("cc", "-shared", "-fPIC", "-o", f"{t.scratch}/tmp/shim.so", f"{t.scratch}/tmp/shim.c", "-ldl")
    none_left = f"{t.scratch}/tmp/none_left"
    with open(none_left, "w", encoding="ascii"):
        pass
    node = t.node(env={"LD_PRELOAD": f"{t.scratch}/tmp/shim.so", "CORACLE_TEST_NONE_LEFT": none_left})
    node.import_image()
    equal(instances(node.process.pid), 0, "instances")
    node.wait_log("inotify cannot watch all paths; polling them every second")
    contains(said(node)["detail"], "fs.inotify.max_user_instances", "explain node")

    node.put("web.yaml", pod("web"))
    node.wait_running("web")
    node.put("short.yaml", pod("short", container(command=["/bin/busybox", "sh", "-c", "exit 3"]), restartPolicy="Never"))
    node.wait_phase("short", "Failed")
    node.remove("web.yaml")
    node.wait_gone("web", deadline=50)

    os.unlink(none_left)
    until(lambda: said(node) is None, 20, lambda: f"events again; now {said(node)}")
    equal(instances(node.process.pid), 1, "instances")
    node.put("web.yaml", pod("web"))
    node.wait_running("web")
    node.stop()


def test_one_instance(t):
    """all that the daemon watches, also the logs that another thread keeps, shares one instance"""
    node = t.node()
    node.import_image()
    node.put("web.yaml", pod("web"))
    node.wait_running("web")
    equal(instances(node.process.pid), 1, "instances")
    node.stop()
