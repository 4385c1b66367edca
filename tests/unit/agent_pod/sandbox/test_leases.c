/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of nobody are given back at the start. */
#include "agent/pod/sandbox/internal.h"
#include "tests/unit/agent_pod/world.h"
#include "tests/unit/base/failing.h"

#include "agent/pod/sandbox/leases.h"

#include <unistd.h>

#define KNOWN "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

static void put(const struct world *w, const char *name, const char *text)
{
    struct err e = { 0 };
    char path[256];

    snprintf(path, sizeof(path), "%s/cni/networks/net", w->dir);
    assert_int_equal(fs_mkdirs(path, 0755, &e), ERR_OK);
    snprintf(path, sizeof(path), "%s/cni/networks/net/%s", w->dir, name);
    assert_int_equal(fs_replace_at(AT_FDCWD, path, text, strlen(text), 0644, false, &e), ERR_OK);
}

static bool there(const struct world *w, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/cni/networks/net/%s", w->dir, name);
    return access(path, F_OK) == 0;
}

static void addresses_of_nobody_are_given_back(void **state)
{
    struct world *w = *state;
    const char *dirs[] = { "/nonexistent", NULL };
    str_auto cache = str_printf("%s/cni/results", w->dir);
    const struct cni_options o = {
        .loop = &w->loop, .conf_dir = w->dir, .bin_dirs = dirs, .cache_dir = cache, .ops_cgroup_fd = -1
    };
    struct pod *p = world_pod(w, "p", "containers: [{name: a, image: x}]");
    struct cni_stray_list lost = { 0 };
    struct err e = { 0 }, stays = { 0 };

    assert_int_equal(cni_open(&w->node.o.cni, &o, &e), ERR_OK);
    snprintf(p->sandbox_id, sizeof(p->sandbox_id), KNOWN);
    put(w, "10.0.0.2", KNOWN "\r\neth0");
    put(w, "10.0.0.3", "nobody\r\neth0");
    put(w, "10.0.0.4", ""); /* cut off */
    put(w, "fd00::5", "nobody\neth0");
    put(w, "fd00__6", "nobody\neth0");
    put(w, "last_reserved_ip.0", "10.0.0.4");
    put(w, "lock", "");
    assert_int_equal(leases_sweep(&w->node, false, &lost, &stays, &e), ERR_OK);
    assert_true(there(w, "10.0.0.4")); /* it may be being written */
    assert_int_equal(leases_sweep(&w->node, true, &lost, &stays, &e), ERR_OK);
    assert_true(there(w, "10.0.0.2"));
    assert_int_equal(lost.n, 0); /* no list could undo more of it */
    assert_false(there(w, "10.0.0.3"));
    assert_false(there(w, "10.0.0.4"));
    assert_false(there(w, "fd00::5"));
    assert_false(there(w, "fd00__6"));
    assert_true(there(w, "last_reserved_ip.0"));
    assert_true(there(w, "lock"));
    cni_close(w->node.o.cni);
}

/* A damaged file of a running pod's address is written again; what no network of ours gave out is not ours.
 */
static void the_address_of_a_running_pod_stays_taken(void **state)
{
    struct world *w = *state;
    const char *dirs[] = { "/nonexistent", NULL };
    str_auto cache = str_printf("%s/cni/results", w->dir);
    const struct cni_options o = {
        .loop = &w->loop, .conf_dir = w->dir, .bin_dirs = dirs, .cache_dir = cache, .ops_cgroup_fd = -1
    };
    struct pod *p = world_pod(w, "p", "containers: [{name: a, image: x}]");
    struct cni_stray_list lost = { 0 };
    str_auto entry = str_printf("%s/net-" KNOWN "-eth0.json", cache);
    static const char text[] =
        "{\"kind\":\"cniAttachment\",\"version\":1,\"complete\":true,\"containerId\":\"" KNOWN
        "\",\"ifName\":\"eth0\",\"networkName\":\"net\",\"netns\":\"\",\"cniArgs\":\"\",\"config\":{\"name\":"
        "\"net\","
        "\"cniVersion\":\"1.0.0\",\"plugins\":[{\"type\":\"bridge\"}]},\"result\":{}}";
    struct err e = { 0 }, stays = { 0 };

    assert_int_equal(cni_open(&w->node.o.cni, &o, &e), ERR_OK);
    assert_int_equal(fs_replace_at(AT_FDCWD, entry, text, strlen(text), 0600, false, &e), ERR_OK);
    snprintf(p->sandbox_id, sizeof(p->sandbox_id), KNOWN);
    sandbox_of(p)->net = NET_READY;
    sandbox_of(p)->net_result.n_ips = 2;
    snprintf(sandbox_of(p)->net_result.ips[0], sizeof(sandbox_of(p)->net_result.ips[0]), "10.0.0.2");
    snprintf(sandbox_of(p)->net_result.ips[1], sizeof(sandbox_of(p)->net_result.ips[1]), "10.0.0.3");
    put(w, "10.0.0.2", "rubbish");
    failing_arm("fstatat", "net", EIO, 1); /* unseen, it might be taken: neither now nor never */
    assert_int_not_equal(leases_sweep(&w->node, true, &lost, &stays, &e), ERR_OK);
    assert_false(there(w, "10.0.0.2"));
    e = (struct err){ 0 };
    failing_arm("readdir", "", EIO, 1);
    assert_int_not_equal(leases_sweep(&w->node, true, &lost, &stays, &e), ERR_OK);
    e = (struct err){ 0 };
    assert_int_equal(leases_sweep(&w->node, true, &lost, &stays, &e), ERR_OK);
    assert_true(there(w, "10.0.0.2"));
    assert_true(there(w, "10.0.0.3"));
    cni_close(w->node.o.cni);
}

/* A retry would find the same: it is reported, and no reason for one. What may pass is. */
static void what_no_retry_changes_is_no_failure(void **state)
{
    struct world *w = *state;
    const char *dirs[] = { "/nonexistent", NULL };
    str_auto cache = str_printf("%s/cni/results", w->dir);
    str_auto odd = str_printf("%s/cni/networks/net/10.0.0.7", w->dir);
    const struct cni_options o = {
        .loop = &w->loop, .conf_dir = w->dir, .bin_dirs = dirs, .cache_dir = cache, .ops_cgroup_fd = -1
    };
    struct cni_stray_list lost = { 0 };
    struct err e = { 0 }, stays = { 0 };
    char text[2048];

    assert_int_equal(cni_open(&w->node.o.cni, &o, &e), ERR_OK);
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    put(w, "10.0.0.7", text);
    assert_int_equal(leases_sweep(&w->node, true, &lost, &stays, &e), ERR_OK);
    assert_string_equal(stays.text, "address 10.0.0.7 of network net: read 10.0.0.7: more than 1024 bytes");
    assert_int_equal(unlink(odd), 0);
    assert_int_equal(mkfifo(odd, 0600), 0);
    assert_int_equal(leases_sweep(&w->node, true, &lost, &stays, &e), ERR_OK);
    assert_string_equal(stays.text, "address 10.0.0.7 of network net: read 10.0.0.7: not a regular file");
    assert_int_equal(unlink(odd), 0);
    assert_int_equal(mkdir(odd, 0700), 0);
    assert_int_equal(leases_sweep(&w->node, true, &lost, &stays, &e), ERR_OK);
    assert_int_equal(stays.sys, EISDIR);
    assert_int_equal(rmdir(odd), 0);

    put(w, "10.0.0.8", "nobody\r\neth0");
    failing_arm("unlinkat", "10.0.0.8", EROFS, 1);
    assert_int_equal(leases_sweep(&w->node, true, &lost, &stays, &e), ERR_OK);
    assert_int_equal(stays.sys, EROFS);
    failing_arm("unlinkat", "10.0.0.8", EIO, 1);
    assert_int_not_equal(leases_sweep(&w->node, true, &lost, &stays, &e), ERR_OK);
    assert_int_equal(stays.code, ERR_OK);
    e = (struct err){ 0 };
    assert_int_equal(leases_sweep(&w->node, true, &lost, &stays, &e), ERR_OK);
    assert_int_equal(stays.code, ERR_OK);
    assert_false(there(w, "10.0.0.8"));
    cni_close(w->node.o.cni);
}

static void a_node_without_networks_has_none(void **state)
{
    struct world *w = *state;
    struct cni_stray_list lost = { 0 };
    struct err e = { 0 }, stays = { 0 };

    assert_int_equal(leases_sweep(&w->node, true, &lost, &stays, &e), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(addresses_of_nobody_are_given_back),
        WORLD_TEST(the_address_of_a_running_pod_stays_taken),
        WORLD_TEST(what_no_retry_changes_is_no_failure),
        WORLD_TEST(a_node_without_networks_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
