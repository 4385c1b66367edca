# SPDX-License-Identifier: Apache-2.0
"""deb - the Debian package below pods that stay: installed, upgraded, removed, installed again, purged."""

PACKAGES = True


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    with t.step("the package installs, both units run and are enabled, pods come up"):
        before = vm.call("deb.install", deadline=400)
    for title, function in (
            ("an upgrade replaces the agent, changes nothing for a pod, keeps an edited configuration", "deb.upgrade"),
            ("removal ends the pods in order, also with the flags of a drop-in, and leaves nothing that runs, is mounted or linked", "deb.remove"),
            ("installed again it brings the pods back, with the images that were there", "deb.again")):
        with t.step(title):
            before = vm.call(function, before, deadline=400)
    with t.step("a purge, with the agent stopped, ends pods in order, takes away state, images and logs, never manifests"):
        vm.call("deb.purge", before, deadline=400)
