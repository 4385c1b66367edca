# SPDX-License-Identifier: Apache-2.0
"""How programs save and remove the manifest of a running pod: only a change of content causes a restart."""
import json
import os
import select
import shutil
import subprocess
import time

from coracle import SLOW, Skip, check, container, equal, pod, run, shell, until

GONE_MS = 30  # from unlink(2) to the end of a process that ends on SIGTERM


def end_ms(node, name):
    """Unlinks the manifest: ms until the pod's process is gone."""
    shown = node.wait_running(name)
    process = os.pidfd_open(node.pid(shown))
    start = time.monotonic_ns()
    node.remove(f"{name}.yaml")
    ended, _, _ = select.select([process], [], [], 20)
    took = (time.monotonic_ns() - start) / 1e6
    os.close(process)
    check(ended, f"the process of {name} runs on without its manifest")
    return took


def test_unlink_ends_at_once(t):
    """an unlinked manifest ends its pod at once; one that was renamed away may come back for a quarter of a second"""
    node = t.node()
    node.import_image()
    names = [f"p{i}" for i in range(8)]  # the least of some: the machine is busy with other tests
    for name in names:
        node.put(f"{name}.yaml", pod(name, container(command=shell("trap 'exit 0' TERM; while :; do sleep 100 & wait; done"))))
    took = [end_ms(node, name) for name in names]
    check(min(took) < GONE_MS * SLOW, f"ms from the unlink to the end of the process: {took}")
    node.wait_gone(*names)

    node.put("away.yaml", pod("away"))
    away = node.wait_running("away")
    os.rename(f"{node.manifests}/away.yaml", f"{t.scratch}/away.yaml")
    time.sleep(0.05)  # as long as editors need, and far longer than the wait after an unlink
    os.rename(f"{t.scratch}/away.yaml", f"{node.manifests}/away.yaml")
    stays(t, node, away, {})
    os.rename(f"{node.manifests}/away.yaml", f"{t.scratch}/away.yaml")
    node.wait_gone("away")
    node.stop()


def stays(t, node, before, labels):
    """Waits until the pod has these labels; it must still have its container."""
    node.wait_pod(before.name, lambda p: (p["metadata"].get("labels") or {}) == labels)
    mark = f"mark{time.monotonic_ns()}"
    with open(f"{t.scratch}/{mark}", "w", encoding="ascii") as f:
        json.dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": mark}, "data": {}}, f)
    # A file renamed away is regarded as removed after 250 ms; a file that comes and goes after the save shows
    # that this time is over.
    os.rename(f"{t.scratch}/{mark}", f"{node.manifests}/{mark}.json")
    until(lambda: mark in json.dumps(node.get("/manifests")), 10, "the mark is read")
    os.rename(f"{node.manifests}/{mark}.json", f"{t.scratch}/{mark}")
    until(lambda: mark not in json.dumps(node.get("/manifests")), 10, "the mark is gone")
    now = node.pod(before.name)
    equal((now.uid, now.container_id(), now.restarts()), (before.uid, before.container_id(), 0), "the pod after the save")


def saved(t, program, save):
    """`save(path, new)` changes the label "v" of the manifest at `path` to `new`, in the way of the program."""
    if shutil.which(program) is None:
        raise Skip(f"{program} is not installed")
    node = t.node()
    node.import_image()
    manifest = pod("web", labels={"v": "1"})
    with open(f"{node.manifests}/web.yaml", "w", encoding="utf-8") as f:
        json.dump(manifest, f)
    before = node.wait_running("web")
    for new in ("2", "3"):  # the second save finds files of the first one, such as a backup
        save(f"{node.manifests}/web.yaml", new)
        stays(t, node, before, {"v": new})
    equal(node.problems(), {}, "problems")
    equal([line for line in node.log().splitlines() if "manifest rejected" in line], [], "errors in the log")
    node.stop()


def in_terminal(t, command, keys, done):
    """Runs an editor in a terminal of its own: these keys, until done()."""
    if shutil.which("tmux") is None:
        raise Skip("tmux is not installed")
    tmux = ["tmux", "-S", f"{t.scratch}/tmux", "-f", "/dev/null"]
    run(*tmux, "new-session", "-d", "-s", "editor", "-x", "100", "-y", "30", *command)
    try:
        until(lambda: "web" in run(*tmux, "capture-pane", "-p", "-t", "editor").stdout, 20, "the editor shows the manifest")
        run(*tmux, "send-keys", "-t", "editor", *keys)
        until(done, 20, "the manifest is saved")
        # An editor whose terminal goes writes what it has to a file of another name.
        until(lambda: run(*tmux, "has-session", "-t", "editor", ok=False).returncode != 0, 20, "the editor has ended")
    finally:
        run(*tmux, "kill-server", ok=False)


def replace_in_python(path, new):
    with open(path, encoding="utf-8") as f:
        manifest = json.load(f)
    manifest["metadata"]["labels"]["v"] = new
    return json.dumps(manifest)


VIM = ["vim", "-N", "-u", "NONE", "-i", "NONE", "-es", "--cmd", "set backupskip="]


def test_vim_renames(t):
    """vim with backupcopy=no renames the manifest to web.yaml~, writes a new one and unlinks the backup"""
    saved(t, "vim", lambda path, new: run(*VIM, "-c", "set writebackup backupcopy=no", "-c", f"%s/\"v\": \"\\d\"/\"v\": \"{new}\"/",
                                          "-c", "wq", path))


def test_vim_writes_in_place(t):
    """vim with backupcopy=yes copies the manifest and writes into it"""
    saved(t, "vim", lambda path, new: run(*VIM, "-c", "set writebackup backupcopy=yes", "-c",
                                          f"%s/\"v\": \"\\d\"/\"v\": \"{new}\"/", "-c", "wq", path))


def test_nano(t):
    """nano writes into the manifest"""
    def save(path, new):
        # ^\ replaces: what, by what, all of them; ^O Enter saves, ^X ends.
        tmux_keys = ["C-\\", f'"v": "{int(new) - 1}"', "Enter", f'"v": "{new}"', "Enter", "a", "C-o", "Enter", "C-x"]
        in_terminal(t, ["nano", "--ignorercfiles", "--nowrap", path], tmux_keys,
                    lambda: f'"v": "{new}"' in open(path, encoding="utf-8").read())
    saved(t, "nano", save)


def test_emacs(t):
    """emacs renames the manifest to web.yaml~ at its first save and writes a new one"""
    saved(t, "emacs", lambda path, new: run("emacs", "-Q", "--batch", path, "--eval",
                                            f"""(progn (goto-char 1) (re-search-forward "\\"v\\": \\"[0-9]\\"")
                                                (replace-match "\\"v\\": \\"{new}\\"") (save-buffer))"""))


def test_sed(t):
    """sed -i writes a file of another name and renames it over the manifest"""
    saved(t, "sed", lambda path, new: run("sed", "-i", f's/"v": "[0-9]"/"v": "{new}"/', path))


def test_rsync(t):
    """rsync writes a hidden file and renames it over the manifest; with --inplace it writes into it"""
    def save(path, new):
        with open(f"{t.scratch}/web.yaml", "w", encoding="utf-8") as f:
            f.write(replace_in_python(path, new))
        run("rsync", "--checksum", *(["--inplace"] if new == "3" else []), f"{t.scratch}/web.yaml", path)
    saved(t, "rsync", save)


def test_install(t):
    """install and cp --remove-destination unlink the manifest and write it again"""
    def save(path, new):
        with open(f"{t.scratch}/web.yaml", "w", encoding="utf-8") as f:
            f.write(replace_in_python(path, new))
        run(*(["install", "-m", "644"] if new == "2" else ["cp", "--remove-destination"]), f"{t.scratch}/web.yaml", path)
    saved(t, "install", save)


def test_git_checkout(t):
    """git checkout unlinks the manifest and writes it again"""
    def save(path, new):
        folder = os.path.dirname(path)
        git = ["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x@example", "-c", "init.defaultBranch=main"]
        work = {**os.environ, "HOME": t.scratch}
        if new == "2":
            run(*git, "init", "-q", env=work)
            run(*git, "add", "web.yaml", env=work)
            run(*git, "commit", "-q", "-m", "1", env=work)
        # The commit is made beside the folder, so that only the checkout touches it.
        blob = subprocess.run([*git, "hash-object", "-w", "--stdin"], input=replace_in_python(path, new), text=True, check=True,
                              capture_output=True, env=work).stdout.strip()
        tree = subprocess.run([*git, "mktree"], input=f"100644 blob {blob}\tweb.yaml\n", text=True, check=True,
                              capture_output=True, env=work).stdout.strip()
        commit = run(*git, "commit-tree", "-p", "HEAD", "-m", new, tree, env=work).stdout.strip()
        run(*git, "checkout", "-q", "--detach", commit, env=work)
    saved(t, "git", save)


def test_rename_over(t):
    """a careful writer renames a finished file over the manifest"""
    def save(path, new):
        with open(f"{os.path.dirname(path)}/.web.new", "w", encoding="utf-8") as f:
            f.write(replace_in_python(path, new))
        os.rename(f"{os.path.dirname(path)}/.web.new", path)
    saved(t, "mv", save)
