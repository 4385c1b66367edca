#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fill - `fill.py IMAGE FOLDER COUNT PROJECT`: empty files in a folder of a VM's disk, by this machine's kernel, which is many times faster
than the emulated one.  The disk must not be mounted inside.  They belong to that project, as the folder does already.

On XFS they inherit it by any kernel, and the next mount counts.  ext4 is not even mounted by a kernel without quotas, unless the disk has no
projects: they come afterwards, by debugfs, and tune2fs counts.
Run it in a mount namespace of its own (`unshare -m`), so that nothing stays mounted.  Exit code 77: this machine cannot mount the disk."""
import os
import stat
import subprocess
import sys
import tempfile

FILES_A_FOLDER = 1000


def run(*argv, text=None):
    subprocess.run(argv, check=True, input=text, stdout=subprocess.DEVNULL, text=True)


def files(top, count):
    """The numbers of all inodes, the folder's own first."""
    numbers = [os.stat(top).st_ino]
    for first in range(0, count, FILES_A_FOLDER):
        os.mkdir(f"{top}/{first}")
        folder = os.open(f"{top}/{first}", os.O_RDONLY | os.O_DIRECTORY)
        for i in range(first, min(first + FILES_A_FOLDER, count)):
            os.mknod(str(i), stat.S_IFREG | 0o644, dir_fd=folder)
        numbers.append(os.fstat(folder).st_ino)
        numbers += [entry.inode() for entry in os.scandir(folder)]
        os.close(folder)
    return numbers


def fill(image, folder, count):
    """Inodes, or nothing if the disk cannot be mounted."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(image)) as where:
        if subprocess.run(["mount", "-o", "loop,noatime", image, where], check=False).returncode != 0:
            return []
        try:
            return files(f"{where}/{folder}", count)
        finally:
            run("umount", where)


def main():
    image, folder, count, project = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    ext4 = subprocess.run(["dumpe2fs", "-h", image], capture_output=True, check=False).returncode == 0
    if ext4:
        run("tune2fs", "-O", "^quota", image)  # and without projects
    numbers = fill(image, folder, count)
    if ext4:
        commands = ["feature project"] + [f"set_inode_field <{number}> projid {project}" for number in numbers]
        run("debugfs", "-w", "-f", "-", image, text="\n".join(commands) + "\n")
        run("tune2fs", "-O", "quota", "-Q", "prjquota", image)
    return 0 if numbers else 77


if __name__ == "__main__":
    sys.exit(main())
