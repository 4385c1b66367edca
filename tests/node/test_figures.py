# SPDX-License-Identifier: Apache-2.0
"""figures - what project quotas cost: by `make bench`, which prints them (tests/bench/bench_quota.py); `quick`: fewer samples; `xfs` or `ext4`:
that file system alone."""
import json

BY_HAND = True
OPTIONS = {"disks": {"xfs": "xfs", "ext4": "ext4"}, "memory": 2048, "cpus": 2}


def say(name, unit, values, floor=None):
    print("# figure " + json.dumps({"name": name, "unit": unit, "values": values, "floor": floor}), flush=True)


def suite(t):
    quick = "quick" in t.words
    rounds, count, pods, seconds = (2, 4, 30, 10) if quick else (6, 10, 110, 60)
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    for fs in [fs for fs in ("xfs", "ext4") if fs in t.words or not {"xfs", "ext4"} & set(t.words)]:
        with t.step(f"{fs}: ids for {pods} pods"):
            each, last = vm.call("figures.assign", fs, pods, deadline=600)
        say(f"VM, {fs}: ids for a pod of six trees, mean of {pods}", "ms", [each])
        say(f"VM, {fs}: ids for a pod of six trees, the last of {pods}", "ms", [last])
        took, cpu, answers, wakes = {True: [], False: []}, {True: [], False: []}, {}, {}
        with t.step(f"{fs}: starts with quotas and without, in turns"):
            vm.call("figures.begin", fs, deadline=600)
            for i in range(rounds):
                for quotas in (True, False) if i % 2 else (False, True):
                    each, of_agent = vm.call("figures.one_by_one", fs, quotas, count, deadline=1800)
                    took[quotas] += each
                    cpu[quotas].append(of_agent)
        say(f"VM, {fs}: one pod with quotas; floor: without", "ms", took[True], took[False])
        say(f"VM, {fs}: CPU of a start, agent, with quotas; floor: without", "ms", cpu[True], cpu[False])
        with t.step(f"{fs}: {pods} pods with quotas and without"):
            for quotas in (False, True):
                answers[quotas], wakes[quotas] = vm.call("figures.full", fs, quotas, pods, seconds, deadline=3600)
        say(f"VM, {fs}: usage of {pods} pods by quotas; floor: without", "ms", answers[True], answers[False])
        for quotas, word in ((True, "with"), (False, "without")):
            say(f"VM, {fs}: {pods} pods {word} quotas, {seconds} s idle: wake-ups a second", "1/s", [wakes[quotas] / seconds])
        with t.step(f"{fs}: nothing is left on the disk"):
            vm.call("figures.end", fs, deadline=600)
