/* SPDX-License-Identifier: Apache-2.0 */
/* Huge pages: what the node has, what pods may have of it, which size an emptyDir is of. */
#include "agent/pod/admit/admit.h"
#include "agent/pod/limits/allocatable.h"
#include "agent/pod/limits/hugepages.h"
#include "tests/unit/agent_pod/world.h"

#include "tests/unit/base/failing.h"

/* A node with four pages of 2 MiB and one of 1 GiB. */
static const char *pages(struct world *w)
{
    static const char *const files[][2] = { { "hugepages-2048kB", "4\n" },
                                            { "hugepages-1048576kB", "1\n" },
                                            { "hugepages-64kB", "0\n" },
                                            { "nonsense", "7\n" } };
    struct err e = { 0 };

    w->node.o.hugepages_dir = w->dir;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        str_auto dir = str_printf("%s/%s", w->dir, files[i][0]);
        str_auto file = str_printf("%s/nr_hugepages", dir);
        assert_int_equal(fs_mkdirs(dir, 0755, &e), ERR_OK);
        assert_int_equal(fs_replace_at(AT_FDCWD, file, files[i][1], 2, 0644, false, &e), ERR_OK);
    }
    return w->dir;
}

#define HUGE(limits)                                                                                         \
    "containers: [{name: a, image: x, resources: {limits: {cpu: 1, memory: 1Mi, " limits "}}}]"

static void the_sizes_are_named_as_kubernetes_and_the_kernel_do(void **state)
{
    struct world *w = *state;
    struct hugepages_size s[HUGEPAGES_SIZES_MAX];

    pages(w);
    assert_int_equal(hugepages_sizes(&w->node, s), 3);
    assert_string_equal(s[0].resource, "hugepages-64Ki");
    assert_string_equal(s[0].cgroup, "64KB");
    assert_string_equal(s[1].resource, "hugepages-2Mi");
    assert_string_equal(s[1].cgroup, "2MB");
    assert_int_equal(s[1].total_bytes, 8 << 20);
    assert_string_equal(s[2].resource, "hugepages-1Gi");
    assert_string_equal(s[2].cgroup, "1GB");
    assert_int_equal(node_allocatable(&w->node, "memory"), (8ull << 30) - (1ull << 30) - (8ull << 20));
    w->node.o.hugepages_dir = "/does/not/exist";
    assert_int_equal(hugepages_sizes(&w->node, s), 0);
    assert_int_equal(node_allocatable(&w->node, "memory"), 8ull << 30);
}

static void sizes_that_cannot_be_looked_at_are_those_of_the_last_look(void **state)
{
    static const char *const calls[][2] = { { "openat", "nr_hugepages" },
                                            { "openat", "/tmp" },
                                            { "readdir", "" } };
    struct world *w = *state;
    struct hugepages_size s[HUGEPAGES_SIZES_MAX];

    pages(w);
    assert_int_equal(hugepages_sizes(&w->node, s), 3);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        failing_arm(calls[i][0], calls[i][1], EMFILE, 1);
        memset(s, 0, sizeof(s));
        assert_int_equal(hugepages_sizes(&w->node, s), 3);
        assert_int_equal(failing_times, 0);
        assert_string_equal(s[2].resource, "hugepages-1Gi");
    }
}

static void limits_name_every_size_and_are_zero_for_what_is_not_asked_for(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p", HUGE("hugepages-2Mi: 4Mi"));
    struct pod *none = world_pod(w, "none", "containers: [{name: a, image: x}]");
    struct cg_hugetlb l[HUGEPAGES_SIZES_MAX];
    struct rt_hugepages c[HUGEPAGES_SIZES_MAX];

    pages(w);
    assert_int_equal(hugepages_pod_limits(p, l), 3);
    assert_string_equal(l[1].size, "2MB");
    assert_int_equal(l[1].bytes, 4 << 20);
    assert_int_equal(l[0].bytes + l[2].bytes, 0);
    assert_int_equal(hugepages_ctr_limits(p, p->ctrs[0]->spec, c), 3);
    assert_string_equal(c[1].size, "2MB");
    assert_int_equal(c[1].limit, 4 << 20);
    assert_int_equal(c[2].limit, 0);
    assert_int_equal(hugepages_pod_limits(none, l), 3);
    assert_int_equal(l[1].bytes, 0);
}

static void what_the_node_lacks_is_refused_in_kubelets_words(void **state)
{
    struct world *w = *state;
    struct pod *first = world_pod(w, "first", HUGE("hugepages-2Mi: 6Mi"));
    struct pod *second = world_pod(w, "second", HUGE("hugepages-2Mi: 4Mi"));
    struct pod *odd = world_pod(w, "odd", HUGE("hugepages-2048Ki: 2Mi"));
    char reason[64] = "";
    struct err e = { 0 };

    pages(w);
    assert_int_equal(admit_pod(first, reason, &e), ERR_OK);
    first->admitted = true;
    first->state = POD_RUNNING;
    assert_int_equal(admit_pod(second, reason, &e), ERR_EXHAUSTED);
    assert_string_equal(reason, "OutOfhugepages-2Mi");
    assert_string_equal(e.text, "Node didn't have enough resource: hugepages-2Mi, requested: 4194304, used: "
                                "6291456, capacity: 8388608");
    first->state = POD_TERMINATING;
    e = (struct err){ 0 };
    assert_int_equal(admit_pod(second, reason, &e), ERR_UNAVAILABLE);
    assert_string_equal(e.text, "waits for hugepages-2Mi: 1 pods are ending");
    e = (struct err){ 0 };
    assert_int_equal(admit_pod(odd, reason, &e), ERR_EXHAUSTED); /* no node offers that name */
    assert_string_equal(reason, "OutOfhugepages-2048Ki");
}

static void an_empty_dir_has_the_page_size_that_the_pod_asks_for(void **state)
{
    struct world *w = *state;
    struct pod *one = world_pod(w, "one", HUGE("hugepages-2Mi: 4Mi"));
    struct pod *two = world_pod(w, "two", HUGE("hugepages-2Mi: 4Mi, hugepages-1Gi: 1Gi"));
    struct pod *none = world_pod(w, "none", "containers: [{name: a, image: x}]");
    struct pod *init =
        world_pod(w, "init",
                  "containers: [{name: a, image: x}], initContainers: [{name: i, image: x, resources: "
                  "{limits: {cpu: 1, hugepages-1Gi: 1Gi}}}]");
    uint64_t bytes = 0;
    struct err e = { 0 };

    assert_int_equal(hugepages_of_medium(one->api, "HugePages", &bytes, &e), ERR_OK);
    assert_int_equal(bytes, 2 << 20);
    assert_int_equal(hugepages_of_medium(two->api, "HugePages-1Gi", &bytes, &e), ERR_OK);
    assert_int_equal(bytes, 1 << 30);
    assert_int_equal(hugepages_of_medium(two->api, "HugePages-2048Ki", &bytes, &e), ERR_OK);
    assert_int_equal(bytes, 2 << 20);
    assert_int_equal(hugepages_of_medium(init->api, "HugePages", &bytes, &e), ERR_OK);
    assert_int_equal(bytes, 1 << 30);
    assert_int_equal(hugepages_of_medium(two->api, "HugePages", &bytes, &e), ERR_INVALID);
    assert_string_equal(e.text,
                        "medium: HugePages can't be used if container requests multiple huge page sizes");
    assert_int_equal(hugepages_of_medium(one->api, "HugePages-1Gi", &bytes, &e), ERR_INVALID);
    assert_string_equal(e.text, "medium HugePages-1Gi: hugePages storage requested, but there is no resource "
                                "request for huge pages");
    assert_int_equal(hugepages_of_medium(none->api, "HugePages", &bytes, &e), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(the_sizes_are_named_as_kubernetes_and_the_kernel_do),
        WORLD_TEST(sizes_that_cannot_be_looked_at_are_those_of_the_last_look),
        WORLD_TEST(limits_name_every_size_and_are_zero_for_what_is_not_asked_for),
        WORLD_TEST(what_the_node_lacks_is_refused_in_kubelets_words),
        WORLD_TEST(an_empty_dir_has_the_page_size_that_the_pod_asks_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
