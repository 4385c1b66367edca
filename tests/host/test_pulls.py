# SPDX-License-Identifier: Apache-2.0
"""Images from registries: tags and digests, credentials, and the status of a pod without its image."""
import base64
import json
import os
import pty
import pwd
import re
import select
import shutil
import subprocess
import threading

from coracle import SLOW, Failed, check, contains, container, equal, pod, read, until
from registry import BAD, GOOD, Registry, Scripted, auths, busybox, digest_of, file_layer, pull_secret, registries_conf

PULLED = re.compile(r'^Successfully pulled image "([^"]+)" in \d[\d.hms]*s \(\d[\d.hms]*s including waiting\)\. Image size: \d+ bytes\.$')


def messages(node, name, reason):
    return [e["message"] for e in node.events(name) if e["reason"] == reason]


def of(image, policy="Always"):
    return container(image=image, imagePullPolicy=policy)


NO_LANDLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

long syscall(long number, ...)
{
    long a[6];
    va_list ap;

    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_landlock_create_ruleset) {
        errno = ENOSYS;
        return -1;
    }
    return ((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"""
WARNING = "kernel has no usable Landlock"


def test_without_landlock(t):
    """without Landlock the agent warns once and explain node reports it; pulls work"""
    registry = Registry(t)
    tag, _ = registry.push(busybox(), "team/box:1")
    node = t.node(registries_conf(t, registry))
    check(WARNING not in node.log() + node.cli("explain", "node").stdout, "a warning although there is Landlock")
    equal(node.stop(), 0, "exit code")
    source, library = f"{t.scratch}/tmp/no_landlock.c", f"{t.scratch}/tmp/no_landlock.so"
    with open(source, "w", encoding="ascii") as f:
        f.write(NO_LANDLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, timeout=60)
    node.extra_env = {**node.extra_env, "LD_PRELOAD": library, "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
    node.start()
    node.put("a.yaml", pod("a", of(tag)))
    node.wait_running("a")
    equal(node.log().count(WARNING), 1, "warnings")
    contains(node.cli("explain", "node").stdout, WARNING)
    equal(node.stop(), 0, "exit code")


def test_by_tag_and_digest(t):
    """an image is pulled by tag and by digest, into the status and the events; a present image is not fetched again"""
    registry = Registry(t)
    tag, digest = registry.push(busybox(), "team/box:1")
    node = t.node(registries_conf(t, registry))
    node.put("a.yaml", pod("a", of(tag)))
    a = node.wait_running("a")
    equal(a.container()["image"], tag, "image")
    pulled = messages(node, "a", "Pulled")
    check(len(pulled) == 1 and PULLED.match(pulled[0]), f"Pulled: {pulled}")
    equal(PULLED.match(pulled[0]).group(1), tag, "the image of the event")
    equal(messages(node, "a", "Pulling"), [f'Pulling image "{tag}"'], "Pulling")
    equal(a.container()["imageID"], digest, "imageID")

    registry.stop()
    node.put("b.yaml", pod("b", of(digest, "IfNotPresent")), pod("c", of(tag, "IfNotPresent")))
    node.wait_running("b", "c")
    contains(messages(node, "b", "Pulled")[0], "already present on machine", "b's event")
    node.kill()
    node.start()
    node.wait_running("a", "b", "c")
    equal([node.pod(n).container()["imageID"] for n in "abc"], [digest] * 3, "imageIDs after a restart")
    contains(node.cli("describe", "pod", "a").stdout, f" {digest}\n", "describe")
    registry.start()
    out = node.cli("image", "pull", digest).stdout
    contains(out, digest, "coracle image pull")
    equal(node.stop(), 0, "exit code")


def test_credentials(t):
    """a private image is pulled with the right secret of either kind; with a wrong one and without one the pod reports unauthorized"""
    registry = Registry(t, closed=True)
    tag, _ = registry.push(busybox(), "team/box:1")
    node = t.node(env={"SSL_CERT_FILE": registry.certificate})
    node.put("secrets.yaml", pull_secret("good", registry.address, GOOD), pull_secret("older", registry.address, GOOD, older=True),
             pull_secret("bad", registry.address, BAD))

    def refs(*names):
        return [{"name": n} for n in names]
    node.put("a.yaml", pod("good", of(tag), imagePullSecrets=refs("good")), pod("older", of(tag), imagePullSecrets=refs("older")),
             pod("second", of(tag), imagePullSecrets=refs("bad", "good")), pod("bad", of(tag), imagePullSecrets=refs("bad")),
             pod("none", of(tag)), pod("late", of(tag), imagePullSecrets=refs("late")))
    node.wait_running("good", "older", "second")
    for name in ("bad", "none", "late"):
        p = node.wait_pod(name, lambda p: p.state()[1].get("reason") in ("ErrImagePull", "ImagePullBackOff"), 30, "a failed pull")
        equal(p.phase, "Pending", "phase")
        contains(p.state()[1]["message"], f'"{tag}"', "message")
        until(lambda n=name: "Error: ErrImagePull" in messages(node, n, "Failed"), 20, "the event")
        text = messages(node, name, "Failed")[0]
        contains(text, f'Failed to pull image "{tag}": ', "Failed")
        contains(text, "unauthorized", "Failed")
        contains(text, " (refused with the credentials of Secret default/bad)" if name == "bad" else
                 f" (no credentials for {registry.address} are given)", "Failed")
        p = node.wait_pod(name, lambda p: p.state()[1].get("reason") == "ImagePullBackOff", 30, "back-off")
        contains(p.state()[1]["message"], f'Back-off pulling image "{tag}": ErrImagePull: ', "message of the back-off")
        equal(messages(node, name, "BackOff")[0], f'Back-off pulling image "{tag}"', "BackOff")
    equal(messages(node, "late", "FailedToRetrieveImagePullSecret")[0],
          "Unable to retrieve some image pull secrets (late); attempting to pull the image may not succeed.", "the missing Secret")
    node.put("late.yaml", pull_secret("late", registry.address, GOOD))
    node.wait_running("late")
    equal(node.stop(), 0, "exit code")
    check("geheim" not in node.log(), "the password stands in the log")


def test_right_to_what_is_here(t):
    """an image pulled with a pod's secret is used only by pods with that secret or its credentials, even while the registry is away; any other pod has to pull it"""
    registry = Registry(t, closed=True)
    tag, _ = registry.push(busybox(), "team/box:1")
    node = t.node(env={"SSL_CERT_FILE": registry.certificate})
    node.import_image()
    node.put("secrets.yaml", pull_secret("good", registry.address, GOOD), pull_secret("same", registry.address, GOOD),
             pull_secret("bad", registry.address, BAD))

    def using(name, *secrets, policy="IfNotPresent"):
        return pod(name, of(tag, policy), imagePullSecrets=[{"name": s} for s in secrets])
    node.put("a.yaml", using("a", "good"))
    node.wait_running("a")
    node.kill()
    registry.stop()
    node.start()
    node.put("b.yaml", using("good", "good"), using("same", "bad", "same", policy="Never"), using("bad", "bad"), using("none"),
             using("never", policy="Never"), pod("import", container()))
    node.wait_running("a", "good", "same", "import")
    contains(messages(node, "good", "Pulled")[0], "already present on machine and can be accessed by the pod", "Pulled")
    equal(messages(node, "good", "Pulling") + messages(node, "same", "Pulling"), [], "what is known is not pulled")
    for name in ("bad", "none"):
        node.wait_pod(name, lambda p: p.state()[1].get("reason") in ("RegistryUnavailable", "ImagePullBackOff"), 30, "a failed pull")
        equal(messages(node, name, "Pulling")[0], f'Pulling image "{tag}"', "Pulling")
    never = node.wait_pod("never", lambda p: p.state()[1].get("reason") == "ErrImageNeverPull", 30, "ErrImageNeverPull")
    equal(never.state()[1]["message"], f'Container image "{tag}" is not present with pull policy of Never', "message")
    until(lambda: "it is present, but none of this pod's imagePullSecrets is known to have pulled it" in node.cli("explain", "pod", "never").stdout, 20, "explain")
    registry.start()
    node.put("secrets.yaml", pull_secret("good", registry.address, GOOD), pull_secret("same", registry.address, GOOD),
             pull_secret("bad", registry.address, GOOD))
    node.wait_running("bad")
    node.put("late.yaml", using("late"))  # asks the registry that is back, where "none" still waits for its next try
    until(lambda: any("unauthorized" in text for text in messages(node, "late", "Failed")), 20, "a refusal without a secret")
    for name in ("none", "never", "late"):
        equal((node.pod(name).phase, messages(node, name, "Pulled")), ("Pending", []), f"{name}: no secret, no image")
    equal(node.pod("never").state()[1].get("reason"), "ErrImageNeverPull", "what became known when \"bad\" had pulled it is nothing to it")
    for name in os.listdir(f"{node.state_dir}/images/images"):
        with open(f"{node.state_dir}/images/images/{name}", encoding="utf-8") as f:
            check(base64.b64encode(GOOD.encode()).decode() not in f.read(), "credentials stand in a record")

    node.stop()
    with open(f"{t.scratch}/kubelet.yaml", "w", encoding="utf-8") as f:
        f.write("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
                "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
                f"preloadedImagesVerificationAllowlist: [{registry.address}/team/*]\n")
    node.flags.append(f"--config={t.scratch}/kubelet.yaml")
    node.start()
    node.wait_running("none", "never", "late")


def test_node_credentials(t):
    """without a pull secret the node's own auth file applies, with its credential helpers, which see nothing else of the node"""
    registry = Registry(t, closed=True)
    tag, _ = registry.push(busybox(), "team/box:1")
    file = f"{t.scratch}/auth.json"
    node = t.node(f"--registry-auth-file={file}", path=f"{t.scratch}/helpers:/usr/sbin:/usr/bin:/sbin:/bin", env={"SSL_CERT_FILE": registry.certificate})
    contains(node.cli("image", "pull", tag, ok=False).stderr, f"(no credentials for {registry.address} are given)", "without the file")
    with open(file, "w", encoding="utf-8") as f:
        json.dump({"auths": auths(registry.address, BAD)}, f)
    contains(node.cli("image", "pull", tag, ok=False).stderr, "(refused with the credentials of the node)", "with a wrong password")
    with open(file, "w", encoding="utf-8") as f:
        json.dump({"auths": auths(registry.address, GOOD)}, f)
    node.cli("image", "pull", tag)
    node.cli("image", "rm", tag)
    os.mkdir(f"{t.scratch}/helpers")
    helper = f"{t.scratch}/helpers/docker-credential-own"
    with open(helper, "w", encoding="utf-8") as f:  # without an answer where it can read or write what is not for it
        f.write(f'#!/bin/sh\ncat {file} {node.state_dir}/lock > /dev/null 2>&1 && exit 1\nls {node.state_dir} > /dev/null 2>&1 && exit 1\n'
                f'touch {t.scratch}/helpers/x /etc/coracle-test 2> /dev/null && exit 1\ntouch "$HOME/x" "$TMPDIR/x" || exit 1\n')
        f.write('read -r host\n[ "$1" = get ] && printf \'{"ServerURL":"%s","Username":"user","Secret":"geheim"}\' "$host"\n')
    os.chmod(helper, 0o755)
    with open(file, "w", encoding="utf-8") as f:
        json.dump({"credHelpers": {registry.address: "own"}}, f)
    node.put("a.yaml", pod("a", of(tag)))
    node.wait_running("a")
    with open(file, "w", encoding="utf-8") as f:
        f.write("{")
    contains(node.cli("image", "pull", tag, ok=False).stderr, "unauthorized", "with a broken file")
    contains(node.log(), "cannot read the node's registry credentials", "log")
    equal(node.stop(), 0, "exit code")


def test_short_names(t):
    """a name without a registry is searched in the registries of registries.conf, in order; mirrors are skopeo's"""
    one, two = Registry(t, "one", 5000), Registry(t, "two", 5001)
    two.push(busybox(), "team/box:1")
    aliases = f'[aliases]\n"known" = "{two.address}/team/box"\n'
    search = f'unqualified-search-registries = ["{one.address}", "{two.address}"]\n'
    mirror = f'[[registry]]\nlocation = "gone.example"\n[[registry.mirror]]\nlocation = "{two.address}"\ninsecure = true\n'
    node = t.node(registries_conf(t, one, two, more=search + mirror + aliases))
    node.put("a.yaml", pod("a", of("team/box:1")), pod("b", of("gone.example/team/box:1")))
    node.wait_running("a", "b")
    equal(node.pod("a").container()["image"], "team/box:1", "image of a")
    contains(node.cli("image", "pull", "known:1").stdout, f"{two.address}/team/box:1", "an alias")
    names = {name for item in node.get("/images")["items"] for name in item["names"]}
    equal(names, {f"{two.address}/team/box:1", "gone.example/team/box:1"}, "names")
    contains(node.cli("image", "pull", "team/other:1", ok=False).stderr, f"{two.address}/team/other:1", "the last one's refusal")
    node.remove("a.yaml")
    node.wait_gone("a", "b")
    two.stop()
    node.put("c.yaml", pod("c", of("team/box:1", "IfNotPresent")))
    node.wait_running("c")
    equal(node.stop(), 0, "exit code")


class OnTerminal:
    """`coracle image pull` with a terminal as standard error: what it has shown so far."""

    def __init__(self, node, reference):
        self.master, slave = pty.openpty()
        self.shown = b""
        self.process = subprocess.Popen([node.coracle, "--socket", node.socket, "image", "pull", reference], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=slave, env={**os.environ, "TERM": "xterm"})
        os.close(slave)

    def until(self, pattern):
        while not re.search(pattern, self.shown):
            if not select.select([self.master], [], [], 30 * SLOW)[0]:
                raise Failed(f"{pattern} is not shown: {self.shown}")
            self.shown += os.read(self.master, 4096)

    def end(self):
        out, _ = self.process.communicate(timeout=30 * SLOW)
        os.close(self.master)
        return self.process.returncode, out.decode()


def skopeos():
    """/proc/<pid>/status of those that run, by pid."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        text = read(f"/proc/{pid}/status", "")
        if text.startswith("Name:\tskopeo\n"):
            found[int(pid)] = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    return found


def pull_user():
    """The expected user of skopeo: the package's user, else nobody."""
    try:
        entry = pwd.getpwnam("coracle-pull")
        return entry.pw_uid, entry.pw_gid
    except KeyError:
        return 65534, 65534


def test_user_of_pulls(t):
    """skopeo has its own user and no rights: it writes the pull's folders and can read nothing else of the store; with a key that only root can read it runs as root"""
    uid, gid = pull_user()
    registry = Scripted()
    conf = registries_conf(t, registry)
    node = t.node(conf)
    data = os.urandom(1 << 16)
    big = file_layer("big", data)
    reference = registry.image("big:1", big)
    asked, rest = threading.Event(), threading.Event()

    def hook(handler, kind, key):
        if kind != "blobs" or key != digest_of(big):
            return False
        asked.set()
        rest.wait(60 * SLOW)
        return False

    registry.hook = hook

    def pull(expected):
        asked.clear()
        rest.clear()
        before = set(skopeos())
        process = subprocess.Popen([node.coracle, "--socket", node.socket, "image", "pull", "-q", reference], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            check(asked.wait(30 * SLOW), "the layer is not asked for")
            new = [s for pid, s in skopeos().items() if pid not in before and s["Uid"].split() == [str(expected)] * 4]
            check(new, f"no skopeo of user {expected}: {skopeos()}")
            for status in new:
                equal([int(status[f"Cap{c}"], 16) for c in ("Inh", "Prm", "Eff", "Bnd", "Amb")], [0] * 5, "capabilities")
                equal(status["NoNewPrivs"], "1", "NoNewPrivs")
            if expected:
                equal((new[0]["Gid"].split(), new[0]["Groups"].split()), ([str(gid)] * 4, []), "groups")
                as_user()
        finally:
            rest.set()
            out = process.communicate(timeout=30 * SLOW)[0]
        equal((process.returncode, out), (0, f"image/{reference} imported\n".encode()), "the pull")

    def as_user():
        """What that user can do without Landlock, too."""
        images = f"{node.state_dir}/images"
        script = """
for folder in "$2" "$1" "$1/tmp"; do
    ls "$folder" > /dev/null 2>&1 && echo "lists $folder"
    mkdir "$folder/x" 2> /dev/null && echo "writes $folder"
    cd "$folder" || echo "cannot pass $folder"
done
for folder in layers refs images parts; do
    cd "$1/$folder" 2> /dev/null && echo "reaches $folder"
done
cat "$2"/lock 2> /dev/null && echo "reads the lock"
[ -w "$1/tmp/blobs/sha256" ] || echo "cannot write the blobs"
"""
        result = subprocess.run(["/bin/sh", "-c", script, "sh", images, node.state_dir], cwd="/", user=uid, group=gid, extra_groups=[], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=30, check=False)
        equal((result.stdout, result.stderr), ("", ""), "what the user can do")
        for folder in os.listdir(f"{images}/tmp"):
            st = os.stat(f"{images}/tmp/{folder}")
            equal((st.st_uid, st.st_mode & 0o027), (0, 0), folder)

    pull(uid)
    check("skopeo as root" not in node.log(), "a warning")
    path = conf.partition("=")[2]
    # Fetched by an agent whose skopeo ran as root: its files are taken over.
    shutil.rmtree(f"{node.state_dir}/images/tmp/blobs", ignore_errors=True)
    node.kill()
    blobs = f"{node.state_dir}/images/tmp/blobs"
    os.makedirs(f"{blobs}/sha256")
    os.chmod(blobs, 0o700)
    with open(f"{blobs}/sha256/{digest_of(big)[7:]}", "wb") as f:
        f.write(big)
    os.chmod(f.name, 0o600)
    node.start()
    node.cli("image", "rm", reference)
    rest.set()
    before = registry.asked[digest_of(big)]
    node.cli("image", "pull", "-q", reference)
    equal(registry.asked[digest_of(big)], before, "the layer that was here is fetched again")
    # Nobody but root may read a file that it may need.
    node.cli("image", "rm", reference)
    os.chmod(path, 0o600)
    node.stop()
    shutil.rmtree(blobs, ignore_errors=True)
    node.start()
    pull(0)
    equal([path in line for line in node.log().splitlines() if "running skopeo as root for this pull" in line], [True], "the warning")
    equal(node.stop(), 0, "exit code")


def test_progress(t):
    """image pull shows its progress: one line on a terminal, elsewhere a line for each step, nothing with -q"""
    registry = Scripted()
    node = t.node(registries_conf(t, registry))
    big, small = file_layer("big", os.urandom(1 << 20)), file_layer("small", b"s")
    reference, other = registry.image("big:1", small, big), registry.image("other:1", small)
    rest = threading.Event()

    def hook(handler, kind, key):
        if kind != "blobs" or key != digest_of(big):
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(big)))
        handler.end_headers()
        handler.wfile.write(big[:600000])
        handler.wfile.flush()
        rest.wait(60 * SLOW)
        handler.wfile.write(big[600000:])
        return True

    registry.hook = hook
    pull = OnTerminal(node, reference)
    pull.until(rb"\r\x1b\[Kpulling, [56]\d\dkB")
    rest.set()
    pull.until(rb"\r\x1b\[Kdone: 1\.05MB in \d+\.\d s\r\n")
    equal(pull.end(), (0, f"image/{reference} imported\n"), "exit code and output")
    equal(pull.shown.count(b"\n"), 1, f"lines of {pull.shown}")

    result = node.cli("image", "pull", other)
    equal(result.stdout, f"image/{other} imported\n", "output")
    check(re.fullmatch(r"(waiting\n)?asking\n(pulling\n)?(unpacking\n)?(layer 1 of 1 unpacked\n)?(storing\n)?done: 1B in \d+\.\d s\n",
                       result.stderr), f"what it said: {result.stderr!r}")
    equal(node.cli("image", "pull", "-q", other).stderr, "", "with -q")
    contains(node.cli("image", "pull", f"{registry.address}/none:1", ok=False).stderr, "Error from server (NotFound): pull", "a failure")
