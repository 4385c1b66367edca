# SPDX-License-Identifier: Apache-2.0
"""image tag, history, login and logout."""
import json
import os
import pty
import subprocess

from coracle import SLOW, check, contains, equal, read
from registry import GOOD, Registry, auths, busybox, registries_conf


def said(result):
    return result.returncode, result.stdout, result.stderr


def test_tag_and_history(t):
    """an image gets another name, which survives a restart; a name moves from one image to another"""
    node = t.node()
    node.import_image()
    cli = lambda *words: node.cli("image", *words, ok=False)
    equal(said(cli("tag", "localhost/busybox:1", "localhost/box:stable", "team/box")),
          (0, 'image "localhost/busybox:1" tagged "localhost/box:stable"\nimage "localhost/busybox:1" tagged "team/box"\n', ""), "tag")
    names = lambda: sorted(name for item in node.get("/images")["items"] for name in item["names"])
    equal(names(), ["docker.io/team/box:latest", "localhost/box:stable", "localhost/busybox:1"], "names")
    equal(said(cli("tag", "nothing", "a:b"))[0], 5, "of none")
    equal(cli("tag", "localhost/busybox:1", "UPPER CASE").returncode, 1, "no name")
    contains(cli("tag", "localhost/busybox:1", f"localhost/a@sha256:{'0' * 64}").stderr, "has a digest")
    contains(cli("tag", "localhost/busybox:1").stderr, "wrong number of words")
    cli("rm", "localhost/busybox:1")
    node.kill()
    node.start()
    equal(names(), ["docker.io/team/box:latest", "localhost/box:stable"], "names after a restart")
    head, *steps = cli("history", "localhost/box:stable").stdout.splitlines()
    equal(head.split(), ["CREATED", "CREATED", "BY", "SIZE", "COMMENT"], "columns")
    told = json.loads(cli("history", "localhost/box:stable", "-o", "json").stdout)
    equal(len(steps), len(told["items"]), "steps")
    equal(cli("history", "nothing").returncode, 5, "of none")
    node.stop()


def test_login(t):
    """login asks the registry, stores valid credentials in the node's file for root only, and pulls use them; logout removes them"""
    registry = Registry(t, closed=True)
    tag, _ = registry.push(busybox(), "team/box:1")
    file = f"{t.scratch}/auth.json"
    node = t.node(f"--registry-auth-file={file}", env={"SSL_CERT_FILE": registry.certificate})
    env = {**os.environ, "SSL_CERT_FILE": registry.certificate}
    login = lambda password, *words: node.cli("image", "login", registry.address, *words, ok=False, env=env, stdin=None, input=password)
    wrong = login("falsch\n", "-u", "user", "--password-stdin")
    equal((wrong.returncode, os.path.exists(file)), (1, False), "a wrong password")
    contains(wrong.stderr, f"login to {registry.address}: ")
    check("falsch" not in wrong.stderr, "the password is shown")
    equal(said(login("geheim\n", "-u", "user", "--password-stdin")),
          (0, f"Login to {registry.address} succeeded; the node's pulls use it ({file})\n", ""), "login")
    equal((json.loads(read(file)), os.stat(file).st_mode & 0o777), ({"auths": auths(registry.address, GOOD)}, 0o600), "the file")
    node.cli("image", "pull", tag)
    node.cli("image", "rm", tag)
    with open(file, "w", encoding="utf-8") as f:
        json.dump({"auths": {"other.example": {"auth": "eDp5"}, **auths(registry.address, GOOD)}, "credHelpers": {"a.example": "b"}}, f)
    logout = lambda: node.cli("image", "logout", f"https://{registry.address}/", ok=False)
    equal(said(logout()), (0, f"Removed the login to {registry.address} from {file}\n", ""), "logout")
    equal(json.loads(read(file)), {"auths": {"other.example": {"auth": "eDp5"}}, "credHelpers": {"a.example": "b"}}, "the rest of the file")
    equal(logout().returncode, 5, "logout again")
    contains(node.cli("image", "pull", tag, ok=False).stderr, "no credentials for", "a pull without")
    contains(login("", "-u", "user", "--password-stdin").stderr, "the password may not be empty")
    contains(login("geheim", "-u", "user").stderr, "--password-stdin", "no terminal")
    with open(file, "w", encoding="utf-8") as f:
        f.write("{")
    contains(login("geheim", "-u", "user", "--password-stdin").stderr, "mend or remove it", "a broken file")
    equal(read(file), "{", "it stays")
    os.unlink(file)

    master, slave = pty.openpty()
    ask = subprocess.Popen([node.coracle, "--socket", node.socket, "image", "login", registry.address], stdin=slave, stdout=slave, stderr=slave,
                           env=env, start_new_session=True, preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
    os.close(slave)
    shown = b""
    for prompt, answer in ((b"Username: ", b"user\n"), (b"Password: ", b"geheim\n"), (b"succeeded", b"")):
        while prompt not in shown:
            shown += os.read(master, 4096)
        os.write(master, answer)
    equal(ask.wait(timeout=20 * SLOW), 0, "login on a terminal")
    check(b"geheim" not in shown, lambda: f"the password is shown: {shown}")
    node.cli("image", "pull", tag)
    node.stop()


def test_login_without_tls(t):
    """a registry without TLS needs --insecure, or registries.conf"""
    registry = Registry(t)
    node = t.node(f"--registry-auth-file={t.scratch}/auth.json")
    login = lambda *words: node.cli("image", "login", registry.address, "-u", "a", "--password-stdin", *words, ok=False, stdin=None, input="b")
    equal(login().returncode, 1, "with TLS")
    equal(login("--insecure").returncode, 0, "--insecure")
    node.stop()
    node = t.node(registries_conf(t, registry), f"--registry-auth-file={t.scratch}/auth.json")
    equal(login().returncode, 0, "registries.conf")
    node.stop()
