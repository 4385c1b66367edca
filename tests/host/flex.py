# SPDX-License-Identifier: Apache-2.0
"""flex - a FlexVolume driver as a shell script that logs its calls and answers as it is told.

Beside the script are `log` (a line of JSON a call) and `answers`: COMMAND.json, and COMMAND.exit if the exit code is not 0. Without one
`init` says that nothing is attached, `mount` binds the folder `data` and `unmount` unmounts, everything else is not supported.
"""
import json
import os

SCRIPT = """#!/bin/sh
d=@STATE@
q() { printf '%s' "$1" | sed 's/\\\\/\\\\\\\\/g; s/"/\\\\"/g'; }
line=
for a in "$@"; do line="$line${line:+, }\\"$(q "$a")\\""; done
echo "[$line]" >> $d/log
[ ! -e $d/hang.$1 ] || sleep 1000
[ ! -e $d/script.$1 ] || . $d/script.$1
if [ -e $d/answers/$1.json ]; then
    code=0; [ ! -e $d/answers/$1.exit ] || code=$(cat $d/answers/$1.exit)
    cat $d/answers/$1.json
    exit $code
fi
case "$1" in
init) echo '{"status": "Success", "capabilities": {"attach": false}}' ;;
mount) mkdir -p $d/data; mount --bind $d/data "$2" && echo '{"status": "Success"}' ;;
unmount) umount "$2"; echo '{"status": "Success"}' ;;
*) echo '{"status": "Not supported"}'; exit 1 ;;
esac
"""


class Driver:
    def __init__(self, t, plugins, vendor="example.test", name="vol"):
        self.name = f"{vendor}/{name}"
        self.state = os.path.join(t.scratch, f"flex-{vendor}-{name}")
        self.folder = os.path.join(plugins, f"{vendor}~{name}")
        self.path = os.path.join(self.folder, name)
        os.makedirs(f"{self.state}/answers")

    def install(self):
        """As one does: written beside it and renamed."""
        os.makedirs(self.folder, exist_ok=True)
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            file.write(SCRIPT.replace("@STATE@", self.state))
        os.chmod(self.path + ".new", 0o755)
        os.rename(self.path + ".new", self.path)

    def remove(self):
        os.remove(self.path)
        os.rmdir(self.folder)

    def answer(self, command, answer=None, code=0):
        """None: the usual one again."""
        base = f"{self.state}/answers/{command}"
        for end in (".json", ".exit"):
            if os.path.exists(base + end):
                os.remove(base + end)
        if answer is not None:
            with open(base + ".exit", "w", encoding="utf-8") as file:
                file.write(str(code))
            with open(base + ".json", "w", encoding="utf-8") as file:
                file.write(answer if isinstance(answer, str) else json.dumps(answer))

    def hang(self, command, on=True):
        path = f"{self.state}/hang.{command}"
        if on:
            open(path, "w", encoding="utf-8").close()
        elif os.path.exists(path):
            os.remove(path)

    def script(self, command, text):
        """Lines of shell that run instead of the answer; None: as before."""
        path = f"{self.state}/script.{command}"
        if text is not None:
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.write(text + "\nexit 0\n")
            os.rename(path + ".new", path)
        elif os.path.exists(path):
            os.remove(path)

    def calls(self, command=None):
        path = f"{self.state}/log"
        found = [json.loads(line) for line in open(path, encoding="utf-8")] if os.path.exists(path) else []
        return [c for c in found if command is None or c[0] == command]

    def commands(self):
        return [c[0] for c in self.calls()]
