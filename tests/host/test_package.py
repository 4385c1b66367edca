# SPDX-License-Identifier: Apache-2.0
"""The Debian package: its content, its build and its scripts.  tests/node/test_deb.py installs it."""
import os
import re
import shutil
import subprocess

from coracle import TOP, Skip, check, contains, equal, links, pod, read, run, until, world_cgroups

EPOCH = "1700000000"


def install(t, root, prefix):
    """What `make install` puts below a scratch folder."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    variant = os.path.basename(t.build)
    sanitizers = variant.partition("-")[2].replace("-", ",")
    run("make", "-s", "-C", TOP, f"O={os.path.dirname(t.build)}", "CC=gcc", f"SAN={sanitizers}", f"PREFIX={prefix}", f"DESTDIR={root}",
        "install", env=env, timeout=80)
    return env


def build(t, name):
    """Builds the package from the files of `make install`; skipped without dpkg's tools."""
    root, out = f"{t.scratch}/{name}/root", f"{t.scratch}/{name}"
    env = install(t, root, "/usr")
    env["SOURCE_DATE_EPOCH"] = EPOCH
    result = run(f"{TOP}/systemd/package/build", "1.2.3", root, out, env=env, timeout=80)
    path = result.stdout.strip()
    check(path.startswith(f"{out}/coracle_1.2.3_") and path.endswith(".deb"), result.stdout)
    return path


def test_content(t):
    """the package has all programs, units and documents, owned by root, with checksums, and is the same when built again"""
    package = build(t, "one")
    listing = run("dpkg-deb", "--contents", package).stdout.splitlines()
    found = {line.split(None, 5)[5].rstrip("/"): line.split()[:2] for line in listing}
    for path, mode in (("./usr/bin/coracle", "-rwxr-xr-x"), ("./usr/libexec/coracle/coracle-unpack", "-rwxr-xr-x"),
                       ("./usr/libexec/coracle/coracle-pause", "-rwxr-xr-x"), ("./usr/libexec/coracle/coracle-exec", "-rwxr-xr-x"),
                       ("./usr/libexec/coracle/coracle-probe", "-rwxr-xr-x"), ("./usr/libexec/coracle/coracle-kube", "-rwxr-xr-x"),
                       ("./usr/libexec/coracle/coracle-seal", "-rwxr-xr-x"),
                       ("./usr/lib/systemd/system/coracle.service", "-rw-r--r--"),
                       ("./usr/lib/systemd/system/coracle-pods.service", "-rw-r--r--"), ("./etc/coracle/manifests", "drwx------"),
                       ("./etc/coracle/config.yaml", "-rw-r--r--"), ("./usr/share/doc/coracle/copyright", "-rw-r--r--"),
                       ("./usr/share/doc/coracle/changelog.gz", "-rw-r--r--"), ("./usr/lib/tmpfiles.d/coracle.conf", "-rw-r--r--"), ("./usr/lib/sysusers.d/coracle.conf", "-rw-r--r--"),
                       ("./usr/lib/sysctl.d/40-coracle.conf", "-rw-r--r--"),
                       ("./usr/share/man/man1/coracle.1.gz", "-rw-r--r--"), ("./usr/share/man/man8/coracle.8.gz", "-rw-r--r--"),
                       ("./usr/share/man/man5/coracle-config.5.gz", "-rw-r--r--"), ("./usr/share/man/man5/coracle-annotations.5.gz", "-rw-r--r--"),
                       ("./usr/share/bash-completion/completions/coracle", "-rw-r--r--"),
                       ("./usr/share/zsh/vendor-completions/_coracle", "-rw-r--r--")):
        check(path in found, f"{path} is not in the package")
        equal(found[path][0], mode, path)
    equal([path for path, (_, owner) in found.items() if owner != "root/root"], [], "not root's")
    check(not [p for p in found if "/tests/" in p or p.endswith((".o", ".a"))], "things of the build are in the package")

    control = run("dpkg-deb", "--field", package).stdout
    contains(control, "Package: coracle\nVersion: 1.2.3\n", "control")
    for part in ("libc6 (>=", "libuv1", "libjansson4", "crun | runc", "conmon", "containernetworking-plugins", "skopeo"):
        contains(control, part, "control")
    unpacked = f"{t.scratch}/unpacked"
    run("dpkg-deb", "--raw-extract", package, unpacked)
    for unit in ("coracle.service", "coracle-pods.service"):
        documents = re.findall(r"^Documentation=(.*)", read(f"{unpacked}/usr/lib/systemd/system/{unit}"), re.MULTILINE)[0].split()
        contains(documents, "man:coracle(8)", unit)
        pages = [re.sub(r"man:(.*)\((\d)\)", r"/usr/share/man/man\2/\1.\2.gz", d) for d in documents]
        for path in (p.removeprefix("file:") for p in pages):
            check(os.path.exists(unpacked + path), f"{unit} names {path}, which is not in the package")
    run("md5sum", "--quiet", "-c", "DEBIAN/md5sums", cwd=unpacked)
    equal(read(f"{unpacked}/DEBIAN/conffiles"), "/etc/coracle/config.yaml\n", "conffiles")
    files = sum(len(f) for d, _, f in os.walk(unpacked) if not d.endswith("DEBIAN"))
    equal(len(read(f"{unpacked}/DEBIAN/md5sums").splitlines()), files - 1, "checksums: all but the conffile")
    with open(build(t, "two"), "rb") as second, open(package, "rb") as first:
        check(first.read() == second.read(), "two builds of the same files differ")


def test_lintian(t):
    """lintian finds no error and no warning that systemd/package/lintian-overrides does not argue"""
    result = run("lintian", "--allow-root", "--no-tag-display-limit", "--fail-on", "error,warning,info", "--display-info", build(t, "one"), ok=False, timeout=120)
    equal((result.returncode, result.stdout), (0, ""), "lintian")


def test_another_prefix(t):
    """below another PREFIX the agent finds its own programs, and the unit the agent"""
    node, root = t.node(), f"{t.scratch}/opt"
    install(t, root, "/local")
    check(not os.path.exists(f"{root}/usr"), "something was installed below /usr")
    contains(read(f"{root}/local/lib/systemd/system/coracle.service"), "ExecStart=/local/bin/coracle run", "unit")
    equal(node.stop(), 0, "exit code")
    node.coracle = f"{root}/local/bin/coracle"
    os.unlink(f"{t.scratch}/cni/10-coracle.conflist")
    node.start()
    sample = f"{root}/local/share/doc/coracle/examples/cni/10-coracle.conflist"
    check(os.path.exists(sample), "the sample network list is not installed")
    contains(node.cli("explain", "node").stdout, f"A list to begin with: {sample}\n", "explain node")
    equal(node.stop(), 0, "exit code")


def test_scripts(t):
    """its scripts are sound shell, and do nothing where systemd does not run"""
    for script in ("postinst", "prerm", "postrm", "build"):
        run("dash", "-n", f"{TOP}/systemd/package/{script}")
        check(os.access(f"{TOP}/systemd/package/build", os.X_OK), "build cannot be run")
    package = build(t, "one")
    root = f"{t.scratch}/chroot"
    os.makedirs(f"{root}/var/lib/dpkg/info")
    for file in ("status", "available"):
        with open(f"{root}/var/lib/dpkg/{file}", "w", encoding="ascii"):
            pass
    dpkg = ("dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless", "--log=/dev/null")
    run(*dpkg, "--unpack", package)
    check(os.access(f"{root}/usr/bin/coracle", os.X_OK), "no program")
    equal(os.stat(f"{root}/etc/coracle/manifests").st_mode & 0o7777, 0o700, "mode of the manifests' folder")
    contains(run("dpkg", f"--root={root}", "--status", "coracle").stdout, "Status: install ok unpacked")


def test_tmpfiles(t):
    """systemd-tmpfiles, which a package's installation runs at any time, leaves the state folder as the agent opened it for a pull"""
    if shutil.which("systemd-tmpfiles") is None:
        raise Skip("no systemd-tmpfiles here")
    root = f"{t.scratch}/root"
    os.makedirs(f"{root}/etc")
    for file in ("passwd", "group"):
        shutil.copy(f"/etc/{file}", f"{root}/etc/{file}")
    os.makedirs(f"{root}/var/lib/coracle")
    os.chown(f"{root}/var/lib/coracle", 0, 65534)
    os.chmod(f"{root}/var/lib/coracle", 0o710)
    run("systemd-tmpfiles", f"--root={root}", "--create", f"{TOP}/systemd/tmpfiles.conf")
    st = os.stat(f"{root}/var/lib/coracle")
    equal((oct(st.st_mode & 0o7777), st.st_gid), ("0o710", 65534), "mode and group of the state folder")
    equal(oct(os.stat(f"{root}/etc/coracle/manifests").st_mode & 0o7777), "0o700", "mode of the manifests' folder")


def test_removal_ends_pods(t):
    """the removal script ends all pods in order: networks, volumes, cgroups, namespaces"""
    prerm = read(f"{TOP}/systemd/package/prerm")
    contains(prerm, "--ephemeral --pod-manifest-path", "prerm")
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}]))
    node.put("b.yaml", pod("b"))
    a, b = node.wait_running("a"), node.wait_running("b")
    equal(node.stop(), 0, "exit code")
    os.makedirs(f"{t.scratch}/none")
    argv = node.argv() + ["--ephemeral", "--pod-manifest-path", f"{t.scratch}/none"]
    result = subprocess.run(["timeout", "--foreground", "--kill-after=60", "5"] + argv, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=80)
    contains(result.stdout, "all pods are gone", "output")
    for p in (a, b):
        node.wait_no_traces(p)
    equal([link for link in links() if link.startswith("veth")], [], "links")
    until(lambda: not world_cgroups(t.name), 10, lambda: f"cgroups {world_cgroups(t.name)}")
    check(os.path.exists(f"{node.manifests}/a.yaml"), "a manifest is gone")
    shutil.rmtree(f"{t.scratch}/none")
    bridge = [link for link in links() if link not in t.before["links"]]
    for link in bridge:  # the network's files stay, as with other node agents
        run("ip", "link", "del", link)
