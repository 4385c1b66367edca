# SPDX-License-Identifier: Apache-2.0
"""vm - one node VM: Debian with its cloud kernel and systemd in QEMU's software emulation (no KVM, no network card).

    with Vm("reset", root, payload, work, disks={"xfs": "xfs"}) as vm:
        vm.boot()
        vm.call("reset.begin", 7)      # runs begin(7) of inside/reset.py in the VM: its value
        vm.reset()                     # as the reset button: what the guest had not written yet is lost
        vm.reboot()                    # systemctl reboot
        vm.sleep(25)                   # suspend to memory
        vm.poweroff()

The root disk (mkroot) is never written to: what the VM writes goes to a temporary file of QEMU's own, which lives as long
as its process, over resets and reboots.  /dev/vdb is the payload (payload.py), read-only.  Further disks are empty sparse
files, found inside as /dev/disk/by-id/virtio-<name>; inside/start makes the file systems, at /mnt/<name>.

inside/control.py answers over a virtio serial port: a line of JSON for a call, lines for what it prints, a line for its
end.  Every boot says hello with its boot id; a boot that nobody asked for, a kernel panic on the console, and an answer that
does not come before its deadline raise Trouble with the console's last lines.  QEMU is controlled by QMP.  One thread a VM.
"""
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import time

BOOT_S = 400      # some 12 s on an idle processor; several times that beside other tests
CALL_S = 120
# no_timer_check: the kernel waits a few ticks for the timer's interrupt, which come late on a busy machine, and panics.
CMDLINE = ("root=/dev/vda rw console=ttyS0 quiet mitigations=off random.trust_cpu=on tsc=reliable nowatchdog no_timer_check "
           "rcupdate.rcu_cpu_stall_suppress=1 systemd.show_status=0")
DISK_BYTES = 2 << 30  # sparse
PANIC = "Kernel panic - not syncing"


class Trouble(AssertionError):
    """The VM or what ran in it did not do as it should."""


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Lines:
    """Lines from a socket, with a deadline each."""

    def __init__(self, sock):
        self.sock, self.data = sock, b""

    def next(self, seconds):
        """A line without its end; None after `seconds`.  EOFError: the other side is gone."""
        end = time.monotonic() + seconds
        while b"\n" not in self.data:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                return None
            try:
                more = self.sock.recv(1 << 16)
            except ConnectionResetError:
                more = b""
            if not more:
                raise EOFError
            self.data += more
        line, _, self.data = self.data.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")


class Vm:
    def __init__(self, name, root, payload, work, memory=1024, cpus=2, append="", disks=None, numa=1, on_line=print):
        """work: a folder for its files; disks: {name: file system}; numa: nodes that share memory and processors evenly; on_line gets what calls
        print."""
        self.name, self.root, self.payload, self.work = name, root, payload, work
        self.memory, self.cpus, self.append, self.disks, self.numa, self.on_line = memory, cpus, append, disks or {}, numa, on_line
        self.console = f"{work}/{name}.console"
        self.process = self.control = self.qmp = None
        self.boots, self.boot_id, self.serial = 0, "", 0
        self.boot_seconds = []  # power-on or reset to hello

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def disk(self, name):
        """The file that is a data disk."""
        return f"{self.work}/{self.name}-{name}.img"

    # -- QEMU

    def argv(self, *serials):
        disks = "node.disks=" + ",".join(f"{name}:{fs}" for name, fs in self.disks.items()) if self.disks else ""
        # Nehalem: what has wider vectors makes emulation slower; with rdrand, or a boot waits for random numbers.
        # tb-size in MiB: what QEMU takes by itself is a GiB, and each reset that fills it is slower than the one before.
        # QEMU 7.2 emulates cmpxchg16b wrongly at times, which crashes kernels of another package.
        cpu = "Nehalem,+rdrand" + (",-cx16" if os.environ.get("NODE_KERNEL") else "")
        argv = ["qemu-system-x86_64", "-name", self.name, "-machine", "pc", "-accel", "tcg,thread=multi,tb-size=256",
                "-cpu", cpu, "-smp", str(self.cpus), "-m", str(self.memory), "-nodefaults", "-display", "none", "-nic", "none",
                "-kernel", f"{self.root}/vmlinuz", "-initrd", f"{self.root}/initrd.img", "-append", f"{CMDLINE} {self.append} {disks}"]
        for i in range(self.numa if self.numa > 1 else 0):
            cpus, each = self.cpus // self.numa, self.memory // self.numa
            argv += ["-object", f"memory-backend-ram,id=memory{i},size={each}M", "-numa", f"node,nodeid={i},cpus={i * cpus}-{(i + 1) * cpus - 1},memdev=memory{i}"]
        # Devices, not if=virtio: the order here is the order inside.
        drives = [("root", f"file={self.root}/root.img,snapshot=on"), ("payload", f"file={self.payload},readonly=on")]
        for name in self.disks:
            with open(self.disk(name), "wb") as f:
                f.truncate(DISK_BYTES)
            drives.append((name, f"file={self.disk(name)},cache=unsafe"))  # unsafe only when this machine fails
        for name, drive in drives:
            argv += ["-drive", f"{drive},if=none,id={name},format=raw", "-device", f"virtio-blk-pci,drive={name},serial={name}"]
        for serial in serials:
            argv += ["-serial", serial]
        return argv

    def start(self):
        """Power-on; returns at once."""
        control, control_qemu = socket.socketpair()
        qmp, qmp_qemu = socket.socketpair()
        argv = self.argv(f"file:{self.console}", "null")
        argv += ["-device", "virtio-serial-pci", "-chardev", f"socket,id=control,fd={control_qemu.fileno()}",
                 "-device", "virtserialport,chardev=control,name=control",
                 "-chardev", f"socket,id=qmp,fd={qmp_qemu.fileno()}", "-mon", "chardev=qmp,mode=control"]
        self.power_on = time.monotonic()
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=(control_qemu.fileno(), qmp_qemu.fileno()),
                                        env={**os.environ, "TMPDIR": self.work}, preexec_fn=die_with_parent)
        control_qemu.close()
        qmp_qemu.close()
        self.control, self.qmp = Lines(control), Lines(qmp)
        self.monitor("qmp_capabilities")

    def monitor(self, command, **arguments):
        """A QMP command: what it returns."""
        self.qmp.sock.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        end = time.monotonic() + 30
        while True:
            line = self.line_of(self.qmp, end, f"QMP {command}")
            answer = json.loads(line)
            if "error" in answer:
                raise Trouble(f"QMP {command}: {answer['error']}")
            if "return" in answer:
                return answer["return"]

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self.control.sock.close()
            self.qmp.sock.close()

    def console_tail(self, lines=40):
        try:
            with open(self.console, encoding="utf-8", errors="replace") as f:
                return "\n".join(line.rstrip() for line in f.read().split("\n")[-lines:])
        except OSError as e:
            return str(e)

    def trouble(self, text):
        return Trouble(f"{text}\n--- the console's end\n{self.console_tail()}")

    def line_of(self, lines, end, what):
        """The next line; looks for panics meanwhile."""
        while True:
            try:
                line = lines.next(max(0, min(2, end - time.monotonic())))
            except EOFError:
                raise self.trouble(f"{what}: QEMU ended") from None
            if line:
                return line
            if PANIC in self.console_tail():
                raise self.trouble(f"{what}: kernel panic")
            if time.monotonic() >= end:
                raise self.trouble(f"{what}: no answer before its deadline")

    # -- boots

    def boot(self):
        """Power-on, and waits until it answers."""
        self.start()
        self.wait_boot(self.power_on)

    def wait_boot(self, since):
        end = since + BOOT_S
        while True:
            hello = self.message(end, "boot")
            if "hello" in hello and hello["hello"] != self.boot_id:
                break
        self.boot_id = hello["hello"]
        self.boots += 1
        self.boot_seconds.append(time.monotonic() - since)

    def message(self, end, what):
        """The next whole message; a line cut off by a reset is none."""
        while True:
            line = self.line_of(self.control, end, what)
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                return message

    def reset(self):
        """The reset button."""
        since = time.monotonic()
        self.monitor("system_reset")
        self.wait_boot(since)

    def reboot(self):
        """systemctl reboot; the time includes the shutdown."""
        since = time.monotonic()
        self.call("tools.run", ["systemctl", "reboot", "--no-block"])
        self.wait_boot(since)

    def sleep(self, seconds):
        """Suspend to memory (S3) for so long; its clocks go on as a machine's do."""
        serial = self.send("tools.run", ["sh", "-c", "echo mem > /sys/power/state"])
        end = time.monotonic() + CALL_S
        while self.monitor("query-status")["status"] != "suspended":
            if time.monotonic() >= end:
                raise self.trouble("it does not fall asleep")
            time.sleep(0.2)
        time.sleep(seconds)
        self.monitor("system_wakeup")
        self.answer(serial, "sleep", CALL_S)

    def poweroff(self, deadline=BOOT_S):
        """systemctl poweroff, and QEMU's end."""
        self.call("tools.run", ["systemctl", "poweroff", "--no-block"])
        self.wait_off(deadline)

    def wait_off(self, deadline=BOOT_S):
        try:
            self.process.wait(timeout=deadline)
        except subprocess.TimeoutExpired:
            raise self.trouble(f"the VM did not switch itself off within {deadline} s") from None
        self.kill()

    # -- what runs inside

    def send(self, function, *args, deadline=CALL_S):
        """Begins a call, e.g. one that a reset will cut off."""
        self.serial += 1
        request = {"id": self.serial, "call": function, "args": args, "deadline": deadline}
        self.control.sock.sendall(json.dumps(request).encode() + b"\n")
        return self.serial

    def call(self, function, *args, deadline=CALL_S):
        """Runs module.function(*args) of inside/ in a process of its own: its value.  What it prints goes to on_line."""
        return self.answer(self.send(function, *args, deadline=deadline), function, deadline)

    def answer(self, serial, function, deadline):
        """What a call that was sent returned."""
        end = time.monotonic() + deadline + 30
        while True:
            message = self.message(end, function)
            if "hello" in message:
                if message["hello"] == self.boot_id:
                    raise self.trouble(f"{function}: the control process in the VM was restarted")
                raise self.trouble(f"{function}: the VM booted in the midst of it")
            if message.get("id") != serial:
                continue
            if "out" in message:
                self.on_line(message["out"])
            elif "error" in message:
                raise Trouble(f"{function}: {message['error']}")
            else:
                return message["value"]

    def run(self, *argv, deadline=CALL_S, ok=True):
        """A command inside: (exit code, output, error output); one that fails raises unless ok=False."""
        code, out, err = self.call("tools.run", list(argv), ok, deadline=deadline)
        return code, out, err

    def put(self, path, text):
        """A small file inside, on the disk when this returns."""
        self.call("tools.put", path, text)

    def get(self, path):
        return self.call("tools.get", path)
