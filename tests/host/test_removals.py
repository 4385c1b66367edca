# SPDX-License-Identifier: Apache-2.0
"""A failed removal is repeated later: records and logs of pods that are gone."""
import os

from coracle import Skip, equal, pod, run, until

# Records and logs of pods cannot be removed while the file exists.
SHIM = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int stuck(const char *path)
{
    if (access(getenv("CORACLE_TEST_STUCK"), F_OK) != 0 ||
        ((strstr(path, "/pods/") == NULL || strstr(path, ".json") == NULL) && strstr(path, "default_web_") == NULL))
        return 0;
    errno = EIO;
    return 1;
}

int unlink(const char *path)
{
    int (*real)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");

    return stuck(path) ? -1 : real(path);
}

int unlinkat(int dir, const char *path, int flags)
{
    int (*real)(int, const char *, int) = (int (*)(int, const char *, int))dlsym(RTLD_NEXT, "unlinkat");

    return stuck(path) ? -1 : real(dir, path, flags);
}
"""


def test_stuck_removals(t):
    """the record and the logs of a removed pod cannot be deleted: reported, retried, and deleted in the end"""
    if "address" in os.path.basename(t.build):
        raise Skip("AddressSanitizer wants to be the first library")
    with open(f"{t.scratch}/tmp/shim.c", "w", encoding="ascii") as f:
        f.write(SHIM)
    run("cc", "-shared", "-fPIC", "-o", f"{t.scratch}/tmp/shim.so", f"{t.scratch}/tmp/shim.c", "-ldl")
    stuck = f"{t.scratch}/tmp/stuck"
    node = t.node(env={"LD_PRELOAD": f"{t.scratch}/tmp/shim.so", "CORACLE_TEST_STUCK": stuck})
    node.import_image()
    node.put("web.yaml", pod("web"))
    node.wait_running("web")
    uid = node.pod("web").uid
    with open(stuck, "w", encoding="ascii"):
        pass
    node.remove("web.yaml")
    node.wait_gone("web", deadline=50)
    logs = f"{node.pod_logs}/default_web_{uid}"
    record = f"{node.state_dir}/pods/{uid}.json"
    node.wait_log("cannot remove leftovers of a pod; will retry")

    def left():
        return sorted(s["name"] for s in node.get("/explain")["steps"] if s["name"].startswith("leftover "))
    until(lambda: left() == ["leftover logs of a pod", "leftover pod record"], 10, lambda: f"two leftovers in explain; now {node.get('/explain')['steps']}")
    equal((os.path.exists(logs), os.path.exists(record)), (True, True), "what is left")
    os.unlink(stuck)
    until(lambda: not os.path.exists(logs) and not os.path.exists(record), 70, "the removal")
    until(lambda: not left(), 10, lambda: f"no leftovers; now {left()}")
    node.stop()
