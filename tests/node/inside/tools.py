# SPDX-License-Identifier: Apache-2.0
"""tools - what every test outside may ask for: commands and files."""
import os
import subprocess


def run(argv, ok=True):
    """(exit code, output, error output) of a command; a failing one raises unless ok is false."""
    result = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                            check=False)
    if ok and result.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.returncode, result.stdout, result.stderr


def put(path, text):
    """A file by rename, synced."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".new", path)
    os.sync()


def get(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def stream(argv):
    """A command whose output is seen as it comes."""
    code = subprocess.run(argv, stdin=subprocess.DEVNULL, check=False).returncode
    print(f"# exit code {code}", flush=True)
