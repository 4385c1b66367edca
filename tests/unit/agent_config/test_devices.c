/* SPDX-License-Identifier: Apache-2.0 */
/* Settings about devices: waiting, extended resources, folders, alignment. */
#include "tests/unit/agent_config/helper.h"

static void read_both(struct scratch *s, const char *kubelet, const char *own, const char *flags)
{
    str_auto file = str_printf("%s%s---\n%s%s", KUBELET, kubelet, OWN, own);

    put(s, "config.yaml", file);
    parses(s, flags);
}

static void without_settings_pods_wait_and_nothing_is_aligned(void **state)
{
    struct scratch *s = *state;

    parses(s, "");
    assert_int_equal(s->c.device_wait_ms, 300000);
    assert_int_equal(s->c.extended_resources.n, 0);
    assert_string_equal(s->c.device_dir, "/etc/coracle/devices.d");
    assert_int_equal(s->c.cdi_dirs.n, 2);
    assert_string_equal(s->c.cdi_dirs.v[0], "/etc/cdi");
    assert_string_equal(s->c.cdi_dirs.v[1], "/var/run/cdi");
    assert_string_equal(s->c.topology_policy, "none");
    assert_string_equal(s->c.topology_scope, "container");
}

static void zero_is_a_wait_of_its_own(void **state)
{
    struct scratch *s = *state;

    read_both(s, "", "devicePluginWait: 0s\n", "");
    assert_int_equal(s->c.device_wait_ms, 0);
    parses(s, "--device-plugin-wait=90s");
    assert_int_equal(s->c.device_wait_ms, 90000);
}

static void extended_resources_are_numbers_or_quantities(void **state)
{
    struct scratch *s = *state;
    const struct api_counts *r = &s->c.extended_resources;

    read_both(s, "", "extendedResources: {example.com/slot: 4, a.example/none: 0, example.com/bits: 2k}\n",
              "");
    assert_int_equal(r->n, 3);
    assert_string_equal(r->v[0].name, "a.example/none");
    assert_int_equal(r->v[0].n, 0);
    assert_string_equal(r->v[1].name, "example.com/bits");
    assert_int_equal(r->v[1].n, 2000);
    assert_int_equal(r->v[2].n, 4);
    setting_is(s, "extendedResources",
               "{\"a.example/none\":0,\"example.com/bits\":2000,\"example.com/slot\":4}");
    parses(s, "--extended-resources=example.com/slot=5,b.example/x=1"); /* a flag replaces all of it */
    setting_is(s, "extendedResources", "{\"b.example/x\":1,\"example.com/slot\":5}");
}

static void a_drop_in_removes_an_extended_resource(void **state)
{
    struct scratch *s = *state;
    str_auto dir = str_printf("%s/d", s->dir);
    str_auto flags = str_printf("--config-dir %s", dir);

    assert_int_equal(mkdir(dir, 0755), 0);
    put(s, "d/a.conf", OWN "extendedResources: {example.com/slot: null, example.com/more: 1}\n");
    read_both(s, "", "extendedResources: {example.com/slot: 4}\n", flags);
    setting_is(s, "extendedResources", "{\"example.com/more\":1}");
}

#define NO_NAME                                                                                              \
    "is not the name of an extended resource, which is a domain outside kubernetes.io, a slash, and up to "  \
    "63 characters: example.com/slot"

static void extended_resources_that_no_node_can_have_are_refused(void **state)
{
    struct scratch *s = *state;

    refused(s, "---\n" OWN "extendedResources: {cpu: 4}\n", "", ": extendedResources: \"cpu\" " NO_NAME);
    refused(s, "---\n" OWN "extendedResources: {kubernetes.io/x: 4}\n", "",
            ": extendedResources: \"kubernetes.io/x\" " NO_NAME);
    refused(s, "---\n" OWN "extendedResources: {example.com/x: -1}\n", "",
            ": extendedResources: example.com/x: not a whole number from 0 to 9007199254740991");
    refused(s, "---\n" OWN "extendedResources: {example.com/x: 500m}\n", "",
            ": extendedResources: example.com/x: not a whole number from 0 to 9007199254740991");
    refused(s, "---\n" OWN "extendedResources: {example.com/x: 10E}\n", "",
            ": extendedResources: example.com/x: not a whole number from 0 to 9007199254740991");
    refused(s, "---\n" OWN "extendedResources: {example.com/x: [1]}\n", "",
            ": extendedResources: example.com/x: not a whole number");
    refused(s, "---\n" OWN "extendedResources: [example.com/x]\n", "",
            ": extendedResources: [\"example.com/x\"] is not a mapping");
}

static void folders_of_cdi_specs_are_absolute(void **state)
{
    struct scratch *s = *state;

    parses(s, "--cdi-spec-dirs=/srv/cdi");
    assert_int_equal(s->c.cdi_dirs.n, 1);
    assert_string_equal(s->c.cdi_dirs.v[0], "/srv/cdi");
    refused(s, "---\n" OWN "cdiSpecDirs: [/etc/cdi, cdi]\n", "",
            ": cdiSpecDirs: \"cdi\" is not an absolute path of at most 200 bytes without \"..\"");
}

static void kubelets_topology_settings_apply_to_devices(void **state)
{
    struct scratch *s = *state;

    read_both(s, "topologyManagerPolicy: single-numa-node\ntopologyManagerScope: pod\n", "", "");
    assert_string_equal(s->c.topology_policy, "single-numa-node");
    assert_string_equal(s->c.topology_scope, "pod");
    expect_warnings(s, "");
    read_both(s, "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}\n", "", "");
    expect_warnings(s, "");
    refused(s, "topologyManagerPolicyOptions: {closest: 'true'}\n", "",
            ": topologyManagerPolicyOptions: unknown option \"closest\"; there are "
            "prefer-closest-numa-nodes, max-allowable-numa-nodes");
    refused(s, "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: maybe}\n", "",
            ": prefer-closest-numa-nodes: \"maybe\" is neither true nor false");
    refused(s, "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '4'}\n", "",
            ": max-allowable-numa-nodes: \"4\" is not a whole number between 8 and 1048576");
}

static void processors_and_memory_are_set_under_kubelets_names(void **state)
{
    struct scratch *s = *state;
    struct pl_settings p;
    struct err e = { 0 };

    read_both(s,
              "cpuManagerPolicy: static\ncpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n"
              "reservedSystemCPUs: '0'\nmemoryManagerPolicy: Static\n"
              "reservedMemory: [{numaNode: 1, limits: {memory: 1Gi}}]\n",
              "", "");
    expect_warnings(s, "");
    assert_int_equal(s->c.resources.system.cpu_milli, 1000);
    assert_int_equal(config_placement(&s->c, &p, &e), ERR_OK);
    assert_true(p.cpu_static && p.memory_static);
    assert_string_equal(p.reserved_cpus, "0");
    assert_string_equal(p.cpu_options[0].name, "full-pcpus-only");
    assert_int_equal(p.n_reserved, 1);
    assert_int_equal(p.reserved[0].node, 1);
    assert_false(p.isolates);
    read_both(s, "", "", "");
    assert_int_equal(config_placement(&s->c, &p, &e), ERR_OK);
    assert_false(p.cpu_static || p.memory_static);
    read_both(s, "cpuManagerPolicy: static\n", "isolateExclusiveCPUs: true\n", "");
    assert_int_equal(config_placement(&s->c, &p, &e), ERR_OK);
    assert_true(p.isolates);
    refused(s, "", "--isolate-exclusive-cpus", "isolateExclusiveCPUs: true needs cpuManagerPolicy: static");
}

static void reserved_memory_is_checked_as_by_kubelet(void **state)
{
    struct scratch *s = *state;

    refused(s, "reservedMemory: [{numaNode: 1, limits: {cpu: 1}}]\n", "",
            ": [0]: limits: \"cpu\" is neither memory nor hugepages-<size>");
    refused(s, "reservedMemory: [{numaNode: 0, limits: {memory: '0'}}]\n", "",
            ": [0]: limits: memory: not above 0");
    refused(s, "reservedMemory: [{numaNode: 0, limits: {memory: -1}}]\n", "",
            ": [0]: limits: memory: not above 0");
    refused(s,
            "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}, {numaNode: 1, limits: {memory: 1Gi}}, "
            "{numaNode: 0, limits: {memory: 1Mi}}]\n",
            "", ": [2]: limits: memory: given twice for NUMA node 0");
}

static void ignore(const char *setting, bool live, void *arg)
{
    (void)setting;
    *(unsigned *)arg += live ? 1 : 100;
}

static void the_wait_and_the_counted_resources_change_at_run_time(void **state)
{
    struct scratch *s = *state, next = *s;
    unsigned changes = 0;

    read_both(s, "", "extendedResources: {example.com/slot: 4}\n", "");
    memset(&next.c, 0, sizeof(next.c));
    put(&next, "config.yaml",
        OWN "extendedResources: {example.com/slot: 5, example.com/x: 1}\ndevicePluginWait: 1s\n"
            "deviceDeclarationDir: /elsewhere\n");
    parses(&next, "");
    config_take(&s->c, &next.c, ignore, &changes);
    config_done(&next.c);
    assert_int_equal(changes, 102);
    assert_int_equal(s->c.device_wait_ms, 1000);
    assert_int_equal(s->c.extended_resources.n, 2);
    assert_int_equal(s->c.extended_resources.v[0].n, 5);
    assert_string_equal(s->c.device_dir, "/etc/coracle/devices.d");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_settings_pods_wait_and_nothing_is_aligned),
        TEST(zero_is_a_wait_of_its_own),
        TEST(extended_resources_are_numbers_or_quantities),
        TEST(a_drop_in_removes_an_extended_resource),
        TEST(extended_resources_that_no_node_can_have_are_refused),
        TEST(folders_of_cdi_specs_are_absolute),
        TEST(kubelets_topology_settings_apply_to_devices),
        TEST(processors_and_memory_are_set_under_kubelets_names),
        TEST(reserved_memory_is_checked_as_by_kubelet),
        TEST(the_wait_and_the_counted_resources_change_at_run_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
