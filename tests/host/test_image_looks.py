# SPDX-License-Identifier: Apache-2.0
"""One failing call of the agent's start over running pods takes no image for absent: pods run on, layers stay."""
import errno
import json
import os
import subprocess

from coracle import SLOW, Skip, check, container, contains, equal, pod, run, until
from test_restart import facts

# The first calls of one kind on the folder or file whose path ends with CORACLE_TEST_PATH fail.
SHIM = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int times = -1;
static int is_due(const char *call, int fd, const char *below)
{
    const char *wanted = getenv("CORACLE_TEST_CALL"), *end = getenv("CORACLE_TEST_PATH");
    char link[40], path[2 * PATH_MAX] = "";
    size_t n;

    if (wanted == NULL || strcmp(wanted, call) != 0)
        return 0;
    if (times < 0)
        times = atoi(getenv("CORACLE_TEST_TIMES"));
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (times == 0 || (fd >= 0 && readlink(link, path, PATH_MAX - 1) < 0))
        return 0;
    if (below != NULL && strcmp(below, ".") != 0) {
        n = strlen(path);
        snprintf(path + n, sizeof(path) - n, "/%s", below);
    }
    if (strlen(path) < strlen(end) || strcmp(path + strlen(path) - strlen(end), end) != 0)
        return 0;
    times--;
    errno = atoi(getenv("CORACLE_TEST_ERRNO"));
    return 1;
}
struct dirent *readdir(DIR *d)
{
    struct dirent *(*real)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    return is_due("readdir", dirfd(d), NULL) ? NULL : real(d);
}
DIR *fdopendir(int fd)
{
    DIR *(*real)(int) = (DIR * (*)(int)) dlsym(RTLD_NEXT, "fdopendir");
    return is_due("fdopendir", fd, NULL) ? NULL : real(fd);
}
int openat(int fd, const char *path, int flags, ...)
{
    int (*real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
    va_list ap;
    int mode;

    va_start(ap, flags);
    mode = va_arg(ap, int);
    va_end(ap);
    return is_due("openat", path[0] == '/' ? -1 : fd, path) ? -1 : real(fd, path, flags, mode);
}
"""


def images(node):
    """Names of everything the store has."""
    found = []
    for part in ("layers", "parts", "images", "refs"):
        found += [f"{part}/{name}" for name in os.listdir(f"{node.state_dir}/images/{part}")]
    return sorted(found)


def running(t):
    """A node with two pods and the shim at hand."""
    if "address" in os.path.basename(t.build):
        raise Skip("AddressSanitizer wants to be the first library")
    with open(f"{t.scratch}/tmp/shim.c", "w", encoding="ascii") as f:
        f.write(SHIM)
    run("cc", "-shared", "-fPIC", "-o", f"{t.scratch}/tmp/shim.so", f"{t.scratch}/tmp/shim.c", "-ldl")
    node = t.node()
    node.import_image()
    node.put("pods.yaml", pod("one"), pod("two"))
    node.wait_running("one", "two")
    return node


def start_failing(t, node, call, path, number, times=1, wait=True):
    node.extra_env = {"LD_PRELOAD": f"{t.scratch}/tmp/shim.so", "CORACLE_TEST_CALL": call, "CORACLE_TEST_PATH": path,
                      "CORACLE_TEST_ERRNO": str(number), "CORACLE_TEST_TIMES": str(times)}
    node.start(wait)


def pods(node):
    node.wait_running("one", "two")
    return {name: facts(node, node.pod(name)) for name in ("one", "two")}


def check_store(node, kept, what):
    until(lambda: not os.listdir(f"{node.state_dir}/images/tmp"), 10, f"the rubbish is gone {what}")
    equal(images(node), kept, f"the store {what}")


def test_a_look_that_fails_once(t):
    """each kind of call on each folder of the store fails once at the start: same containers, all layers, verify is clean"""
    node = running(t)
    before, kept = pods(node), images(node)
    for call, number in (("readdir", errno.EIO), ("fdopendir", errno.ENOMEM), ("openat", errno.EMFILE)):
        for folder in ("images", "refs", "layers", "parts"):
            what = f"after {call} of {folder} failed"
            node.stop()
            start_failing(t, node, call, f"/state/images/{folder}", number)
            equal(pods(node), before, f"containers {what}")
            check_store(node, kept, what)
    node.stop()
    node.extra_env = {}
    node.start()
    contains(node.cli("image", "verify").stdout, "ok\n")
    for name in ("one", "two"):
        node.enter(node.pod(name), "true")


def test_a_folder_that_cannot_be_listed(t):
    """the folder of records cannot be listed at all: the start ends with the reason, pods run on, and nothing was removed"""
    node = running(t)
    before, kept = pods(node), images(node)
    node.stop()
    start_failing(t, node, "readdir", "/state/images/images", errno.EIO, times=1000000, wait=False)
    check(node.process.wait(timeout=10 * SLOW) != 0, "the start failed")
    contains(node.log(), "list folder images")
    node.process = None
    check_store(node, kept, "after a start that failed")
    node.extra_env = {}
    node.start()
    equal(pods(node), before, "containers")
    contains(node.cli("image", "verify").stdout, "ok\n")


def test_a_record_that_cannot_be_read(t):
    """a record gives EIO: it is not set aside, its layers stay under the pods, explain says so; readable again, it is as before"""
    node = running(t)
    before, kept = pods(node), images(node)
    [record] = os.listdir(f"{node.state_dir}/images/images")
    node.stop()
    start_failing(t, node, "openat", f"/state/images/images/{record}", errno.EIO, times=1000000)
    equal(pods(node), before, "containers while the record cannot be read")
    contains(node.cli("explain", "node").stdout, "image store")
    contains(node.cli("explain", "node").stdout, "is not read")
    node.put("three.yaml", pod("three", container(imagePullPolicy="Never")))
    until(lambda: "is not read" in node.cli("explain", "pod", "three", ok=False).stdout, 10, "explain says what the pod waits for")
    node.put("four.yaml", pod("four", container(imagePullPolicy="IfNotPresent")))
    until(lambda: "is not read" in node.cli("explain", "pod", "four", ok=False).stdout, 10, "explain says what this one waits for")
    check("ErrImageNeverPull" not in node.log(), "the image is not said to be absent")
    check("Pulling image" not in node.cli("events").stdout, "nor is it pulled")
    check_store(node, kept, "while the record cannot be read")
    node.stop()
    node.extra_env = {}
    node.start()
    equal(pods(node), before, "containers")
    contains(node.cli("image", "verify").stdout, "ok\n")
    node.wait_running("three", "four")


def test_verify_says_what_it_could_not_look_at(t):
    """coracle-unpack tells a layer that it could not look at from a damaged one, and a listing that was cut off from its end"""
    node = running(t)
    store = f"{node.state_dir}/images"
    [layer] = os.listdir(f"{store}/layers")

    def verify(*failing):
        names = ("LD_PRELOAD", "CORACLE_TEST_CALL", "CORACLE_TEST_PATH", "CORACLE_TEST_ERRNO", "CORACLE_TEST_TIMES")
        env = {**os.environ, **dict(zip(names, (f"{t.scratch}/tmp/shim.so", *failing, "1")))} if failing else None
        argv = [f"{t.build}/coracle-unpack", "--verify", "all", "--layers", f"{store}/layers", "--parts", f"{store}/parts"]
        return json.loads(subprocess.run(argv, input=f"layer {layer}\n".encode(), stdout=subprocess.PIPE, env=env, timeout=20 * SLOW, check=False).stdout)

    equal(verify()["problems"], [], "as it is")
    equal(verify("openat", f"/{layer}", str(errno.EIO))["problems"],
          [{"part": f"layer {layer}", "what": "open: Input/output error", "unknown": True}], "it cannot be opened once")
    contains(verify("readdir", "/layers", str(errno.EIO))["error"], "read the folder of layers: Input/output error")
    os.removexattr(f"{store}/layers/{layer}", "trusted.coracle.sum")
    equal(verify()["problems"], [{"part": f"layer {layer}", "what": "no checksum was recorded when it was unpacked"}], "without its sum")
