# SPDX-License-Identifier: Apache-2.0
"""pressure - a pod uses up a disk, inodes or process ids: it is evicted, nobody else is, and the node is well again; images go before pods.

On one disk, XFS or ext4 or one without quotas, with images on another one, with layers on another one, and with both.  Then a pod that comes back
fills the disk again and again: until it was evicted twice, in the long form for ten minutes.  The short form leaves out some cases.  TEXTs choose
among LAYOUTS; `refill` leaves out all but that."""
OPTIONS = {"disks": {"xfs": "xfs", "ext4": "ext4"}}
REFILL_S = 600
CALL_S = 600
MIB = 1 << 20
# (name, whether the short form has it, begin()'s disks, the disk of an unused image, cases: (signal, who takes it, how much is left until the
# threshold, whether the short form has it))
LAYOUTS = [
    ("XFS", True, ("xfs", "xfs"), "nodefs.available", [
        ("nodefs.available", "layer", 60 * MIB, True), ("nodefs.available", "log", 30 * MIB, False),
        ("nodefs.inodesFree", "volume's inodes", 400, True), ("pid.available", "processes", 120, True)]),
    ("ext4", False, ("ext4", "ext4"), "nodefs.available", [
        ("nodefs.available", "volume", 60 * MIB, True), ("nodefs.available", "log", 30 * MIB, True), ("nodefs.inodesFree", "layer's inodes", 400, True)]),
    ("images and layers on ext4, the rest without quotas", False, ("", "ext4"), "imagefs.available", [
        ("imagefs.available", "layer", 60 * MIB, True), ("imagefs.inodesFree", "layer's inodes", 400, False),
        ("nodefs.available", "volume", 60 * MIB, True), ("nodefs.available", "log", 30 * MIB, False), ("nodefs.inodesFree", "volume's inodes", 400, False)]),
    ("images on ext4, the rest on XFS", False, ("xfs", "xfs", "ext4"), "imagefs.available", [
        ("nodefs.available", "layer", 60 * MIB, True)]),
    ("layers on ext4, the rest on XFS", False, ("xfs", "xfs", "", "ext4"), "", [
        ("containerfs.available", "layer", 60 * MIB, True), ("nodefs.available", "volume", 60 * MIB, True)]),
    ("no quotas", False, ("", ""), "nodefs.available", [
        ("nodefs.available", "volume", 60 * MIB, True), ("nodefs.available", "layer", 60 * MIB, True), ("nodefs.available", "log", 30 * MIB, False)]),
]


def is_chosen(name, words, otherwise):
    """By its whole name, or by a part of it."""
    names = [layout[0] for layout in LAYOUTS]
    return any(word == name or (word not in names and word in name) for word in words) if words else otherwise


def suite(t):
    vm = t.vm()
    refill_s = REFILL_S if t.long else 0

    def step(title, function, *args):
        with t.step(title):
            print(f"# {title}: {vm.call(function, *args, deadline=CALL_S + 2 * refill_s)}", flush=True)

    only_refill = "refill" in t.words
    with t.step("the VM boots"):
        vm.boot()
    for name, often, disks, image_signal, cases in LAYOUTS:
        if not is_chosen(name, [word for word in t.words if word != "refill"], often or t.long):
            continue
        step(f"{name}: pods run", "pressure.begin", *disks)
        if image_signal and not only_refill:
            step(f"{name}: an image that nobody uses goes before a pod ({image_signal})", "pressure.unused_image", image_signal, 40)
        for signal, what, room, also in cases:
            if (also or t.long) and not only_refill:
                step(f"{name}: {signal} ({what}): who takes it is evicted, nobody else", "pressure.take", signal, what, room)
        if name == "XFS" and t.long and not only_refill:
            step("XFS: an emptyDir filled at full speed, a tenth of the disk as the threshold", "pressure.full_speed", "nodefs.available", 10)
        if name in ("XFS", "ext4"):
            step(f"{name}: a pod that comes back fills the disk again: nothing flaps, and its image stays", "refill.refill", "nodefs.available", refill_s)
        step(f"{name}: the pods end", "pressure.end")
