/* SPDX-License-Identifier: Apache-2.0 */
/* Rows marked with a case are sessions of a real kubelet. */
#include "tests/unit/deviceplugin/scene.h"

#include "deviceplugin/topology.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

static uint64_t seed;

static unsigned chance(unsigned n) /* xorshift64 */
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % n;
}

static void begin_chance(void)
{
    const char *given = getenv("RANDOM_SEED");

    seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + 1;
    print_message("RANDOM_SEED=%llu\n", (unsigned long long)seed);
}

/* ---- the machine ---- */

static enum err_code machine_of(const char *const *names, size_t n, struct dp_machine *m, struct err *e)
{
    char dir[] = "/tmp/test_topology.XXXXXX", path[300];
    enum err_code code;

    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    code = dp_machine_read(m, dir, e);
    assert_int_equal(fs_remove_tree(AT_FDCWD, dir, ERR_IGNORED), ERR_OK);
    return code;
}

static void nodes_of_a_machine_are_the_folders_of_sysfs(void **state)
{
    static const char *const two[] = { "node1",  "node0",   "online", "possible", "node",  "nodex",
                                       "node1x", "has_cpu", "power",  "node-3",   "node+4" };
    static const char *const sparse[] = { "node63", "node8", "node0" };
    static const char *const eight[] = { "node0", "node1", "node2", "node3", "node4",
                                         "node5", "node6", "node7", "node8" };
    static const char *const far[] = { "node0", "node64" };
    struct dp_machine m = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(machine_of(two, ARRAY_LEN(two), &m, &e), ERR_OK);
    assert_int_equal(m.nodes, 3);
    assert_int_equal(machine_of(sparse, ARRAY_LEN(sparse), &m, &e), ERR_OK);
    assert_true(m.nodes == (1ull << 63 | 1 << 8 | 1));
    assert_int_equal(machine_of(eight, 8, &m, &e), ERR_OK);
    assert_int_equal(m.nodes, 255);
    assert_int_equal(machine_of(eight, 9, &m, &e), ERR_RANGE);
    assert_string_equal(e.text, "9 NUMA nodes: at most 8 are supported");
    assert_int_equal(machine_of(far, 2, &m, &e), ERR_RANGE);
    assert_string_equal(e.text, "NUMA node 64: at most 63 is supported");
    assert_int_equal(m.nodes, 255); /* as it was */
}

static void a_machine_without_that_folder_has_one_node(void **state)
{
    struct dp_machine m = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(machine_of(NULL, 0, &m, &e), ERR_OK);
    assert_int_equal(m.nodes, 1);
    m.nodes = 0;
    assert_int_equal(dp_machine_read(&m, "/proc/self/no-such-folder", &e), ERR_OK);
    assert_int_equal(m.nodes, 1);
}

static void a_folder_that_cannot_be_read_is_no_machine_with_one_node(void **state)
{
    char path[] = "/tmp/test_topology.XXXXXX";
    struct dp_machine m = { 0 };
    struct err e = { 0 };
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    assert_int_equal(symlink(path, path), 0); /* ELOOP */
    assert_int_not_equal(dp_machine_read(&m, path, &e), ERR_OK);
    assert_int_equal(m.nodes, 0);
    unlink(path);
}

/* ---- hints ---- */

/* "0! 1! 0,1": the sets with a hint, '!': preferred; "any"; "none". */
static const char *hints_text(const struct dp_machine *m, const struct dp_hints *h)
{
    static char text[8192];
    unsigned all = (1u << __builtin_popcountll(m->nodes)) - 1;
    size_t at = 0;

    if (h->any)
        return "any";
    text[0] = '\0';
    for (unsigned set = 1; set <= all; set++) {
        const char *comma = at > 0 ? " " : "";
        unsigned bit = 1;

        if (h->v[set] == DP_HINT_NO)
            continue;
        for (unsigned node = 0; node < 64; node++) {
            if ((m->nodes >> node & 1) == 0)
                continue;
            if ((set & bit) != 0) {
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u", comma, node);
                comma = ",";
            }
            bit <<= 1;
        }
        if (h->v[set] == DP_HINT_PREFERRED)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "!");
    }
    return at > 0 ? text : "none";
}

static void hints_are_the_sets_of_nodes_with_enough_devices(void **state)
{
    static const struct {
        uint64_t nodes;
        const char *devices, *mine, *others; /* what container main of pod a holds, what pod b holds */
        const char *init;                    /* what init of pod a holds, to be reused */
        int64_t count;
        const char *hints;
    } rows[] = {
        { 3, "dev-0@0 dev-1@1 dev-2@0 dev-3@1", "", "", "", 1, "0! 1! 0,1" },   /* case 31 */
        { 3, "dev-0@0 dev-1@1 dev-2@0 dev-3@1", "", "dev-2", "", 2, "1! 0,1" }, /* case 31 */
        { 3, "dev-0@0 dev-1@1 dev-2@0 dev-3@1", "", "dev-2 dev-1 dev-3", "", 1, "0! 0,1" },
        { 3, "dev-0@0 dev-1@1 dev-2@0 dev-3@1", "", "", "", 3, "0,1!" }, /* case 32 */
        { 3, "dev-0@0 dev-1@1 dev-2@0 dev-3@1", "", "", "", 5, "none" },
        /* Two would fit on one node, were all free: what is left on both is not preferred.  Case 37. */
        { 3, "dev-0@0 dev-1@1 dev-2@0 dev-3@1", "", "dev-0 dev-1", "", 2, "0,1" },
        { 3, "net-0@1 net-1@1", "", "", "", 1, "1! 0,1" }, /* case 33 */
        { 3, "gpu0 gpu1", "", "", "", 2, "any" },          /* case 33 */
        { 3, "", "", "", "", 2, "any" },
        { 1, "dev-0@0 dev-1@0", "", "", "", 1, "0!" },   /* case 36 */
        { 1, "net-0@1 net-1@1", "", "", "", 1, "none" }, /* case 36 */
        { 1, "net-0@1,0 net-1@64,-2,0", "", "", "", 2, "0!" },
        /* Without topology, among others with: on no node. */
        { 3, "dev-0 dev-1@1", "", "", "", 2, "none" },
        { 3, "dev-0 dev-1@1", "", "", "", 1, "1! 0,1" },
        { 3, "dev-0@0,1 dev-1@1", "", "", "", 2, "1! 0,1" },
        { 3, "dev-0!@0 dev-1@1", "", "", "", 1, "1! 0,1" },
        { 3, "dev-0!@0 dev-1!@1", "", "", "", 1, "none" },
        { 3, "dev-0@0 dev-1@1", "", "", "", 0, "0! 1! 0,1" },
        /* Reused devices are part of each set, and count. */
        { 3, "dev-0@0 dev-1@1 dev-2@0", "", "", "dev-1", 1, "1! 0,1" },
        { 3, "dev-0@0 dev-1@1 dev-2@0", "", "", "dev-1", 2, "0,1" },
        { 3, "dev-0@0 dev-1@1 dev-2@0", "", "dev-2", "dev-0", 1, "0! 0,1" },
        { 3, "dev-0@0 dev-1!@1", "", "", "dev-1", 1, "1! 0,1" }, /* health is not asked for */
        { 3, "dev-0@0 dev-1@7", "", "", "dev-1", 1, "none" },    /* nowhere on this machine */
        { 3, "dev-0@0 dev-1", "", "", "dev-1", 1, "0! 0,1" },    /* without topology: ignored */
        { 3, "dev-0@0", "", "", "gone", 1, "0! 0,1" },
        /* Held already: the same again, whatever else is free. */
        { 3, "dev-0@0 dev-1@1 dev-2@0 dev-3@1", "dev-1 dev-3", "", "", 2, "1! 0,1" },
        { 3, "dev-0@0 dev-1!@1 dev-2@0 dev-3@1", "dev-1 dev-3", "", "", 2, "1! 0,1" },
        { 3, "dev-0@0 dev-1@1 dev-2@0 dev-3@1", "dev-0 dev-3", "", "", 2, "0,1" },
        { 3, "dev-0@0 dev-1@1 dev-2@0 dev-3@1", "dev-1 dev-3", "", "", 1, "none" },
        { 3, "dev-0@0 dev-2@0", "gone", "", "", 1, "none" },
        /* Numbers of nodes need not be dense. */
        { 1ull << 8 | 1ull << 63, "dev-0@8 dev-1@63 dev-2@0", "", "", "", 1, "8! 63! 8,63" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct dp_machine m = { rows[i].nodes };
        struct dp_wish w = { .pod_uid = "a", .container = "main", .count = rows[i].count };
        struct help_devices reusable;
        const char *ids[64];
        struct dp_hints hints;
        struct scene s;

        scene_open(&s, rows[i].devices, false);
        if (*rows[i].mine != '\0')
            help_holds(s.h, "a", "main", rows[i].mine);
        if (*rows[i].others != '\0')
            help_holds(s.h, "b", "main", rows[i].others);
        if (*rows[i].init != '\0')
            help_holds(s.h, "a", "init", rows[i].init);
        help_parse(&reusable, rows[i].init);
        for (size_t k = 0; k < reusable.n; k++)
            ids[k] = reusable.v[k].id;
        w.reusable = ids;
        w.n_reusable = reusable.n;
        dp_hints_make(&m, &s.r, s.h, &w, &hints);
        if (strcmp(hints_text(&m, &hints), rows[i].hints) != 0)
            fail_msg("row %zu: %s, not %s", i, hints_text(&m, &hints), rows[i].hints);
        scene_close(&s);
    }
}

static void in_the_scope_of_a_pod_its_containers_hold_together(void **state)
{
    const struct dp_machine m = { 3 };
    struct dp_wish w = { .pod_uid = "a", .count = 3 };
    struct dp_hints hints;
    struct scene s;

    (void)state;
    scene_open(&s, "dev-0@0 dev-1@1 dev-2@0 dev-3@1 dev-4@0 dev-5@1", false);
    dp_hints_make(&m, &s.r, s.h, &w, &hints);
    assert_string_equal(hints_text(&m, &hints), "0! 1! 0,1");
    help_holds(s.h, "a", "init", "dev-1 dev-3");
    help_holds(s.h, "a", "main", "dev-1 dev-3");
    help_holds(s.h, "a", "side", "dev-5");
    help_holds(s.h, "b", "main", "dev-0");
    dp_hints_make(&m, &s.r, s.h, &w, &hints);
    assert_string_equal(hints_text(&m, &hints), "1! 0,1");
    w.count = 2;
    dp_hints_make(&m, &s.r, s.h, &w, &hints);
    assert_string_equal(hints_text(&m, &hints), "none");
    dp_hints_make(&m, NULL, s.h, &w, &hints);
    assert_string_equal(hints_text(&m, &hints), "any");
    scene_close(&s);
}

static void a_pod_that_holds_a_part_gets_the_rest_beside_it(void **state)
{
    const struct dp_machine m = { 3 };
    struct dp_wish w = { .pod_uid = "a", .count = 2 };
    struct dp_hints hints;
    struct scene s;

    (void)state;
    scene_open(&s, "dev-0@0 dev-1@1 dev-2@0 dev-3@1 dev-4@0 dev-5", false);
    help_holds(s.h, "a", "main", "dev-1");
    dp_hints_make(&m, &s.r, s.h, &w, &hints);
    assert_string_equal(hints_text(&m, &hints), "1! 0,1");
    w.count = 3;
    dp_hints_make(&m, &s.r, s.h, &w, &hints);
    assert_string_equal(hints_text(&m, &hints), "0,1");
    help_holds(s.h, "b", "main", "dev-3");
    w.count = 2;
    dp_hints_make(&m, &s.r, s.h, &w, &hints);
    assert_string_equal(hints_text(&m, &hints), "0,1");
    scene_close(&s);
}

/* What a single node promises is what is chosen. */
static void devices_come_from_the_node_that_was_preferred(void **state)
{
    unsigned admitted = 0;

    (void)state;
    begin_chance();
    for (int round = 0; round < 3000; round++) {
        const struct dp_machine m = { 7 };
        struct dp_wish w = { .pod_uid = "a", .container = "main", .count = 1 + chance(4) };
        struct dp_choice c = { 0 };
        struct dp_hints hints;
        struct err e = { 0 };
        struct scene s;
        char devices[512] = "";

        for (unsigned i = 0, n = 1 + chance(12); i < n; i++)
            snprintf(devices + strlen(devices), sizeof(devices) - strlen(devices), "%sd%u%s@%u",
                     i > 0 ? " " : "", i, chance(5) == 0 ? "!" : "", chance(4));
        scene_open(&s, devices, false);
        for (unsigned i = 0; i < s.r.n_devices; i++)
            if (chance(4) == 0) {
                char pod[16];

                snprintf(pod, sizeof(pod), "b%u", i);
                help_holds(s.h, pod, "main", s.list[i].id);
            }
        dp_hints_make(&m, &s.r, s.h, &w, &hints);
        for (unsigned node = 3; node-- > 0;)
            if (hints.v[1u << node] == DP_HINT_PREFERRED) {
                w.has_hint = true;
                w.numa = 1ull << node;
            }
        if (w.has_hint) {
            admitted++;
            assert_int_equal(dp_choose_begin(&s.r, DEV, s.h, &w, &c, &e), ERR_OK);
            for (size_t i = 0; i < c.n; i++)
                assert_true(w.numa == 1ull << c.devices[i].numa[0]);
        }
        dp_choice_done(&c);
        scene_close(&s);
    }
    assert_true(admitted > 100);
}

static void hints_of_many_devices_are_made_at_once(void **state)
{
    static const int64_t nodes[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    struct dp_device *list = calloc(DP_DEVICES_MAX, sizeof(*list));
    char *ids = malloc((size_t)DP_DEVICES_MAX * 16);
    const struct dp_machine m = { 255 };
    struct dp_wish w = { .pod_uid = "a", .container = "main", .count = 2 };
    struct dp_hints hints;
    struct timespec begin, end;
    struct scene s;
    double each;

    (void)state;
    for (size_t i = 0; i < DP_DEVICES_MAX; i++) {
        snprintf(ids + 16 * i, 16, "dev-%zu", i);
        list[i] = (struct dp_device){ ids + 16 * i, true, &nodes[i % 8], 1 };
    }
    scene_open(&s, "", false);
    s.r.devices = list;
    s.r.n_devices = s.r.n_healthy = DP_DEVICES_MAX;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (int i = 0; i < 20; i++)
        dp_hints_make(&m, &s.r, s.h, &w, &hints);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    each = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / 20e3;
    if (getenv("CHOOSE_TIMES") != NULL)
        printf("hints: %.0f us\n", each);
    assert_true(each < 100000);
    assert_int_equal(hints.v[1], DP_HINT_PREFERRED);
    scene_close(&s);
    free(ids);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_a_machine_are_the_folders_of_sysfs),
        cmocka_unit_test(a_machine_without_that_folder_has_one_node),
        cmocka_unit_test(a_folder_that_cannot_be_read_is_no_machine_with_one_node),
        cmocka_unit_test(hints_are_the_sets_of_nodes_with_enough_devices),
        cmocka_unit_test(in_the_scope_of_a_pod_its_containers_hold_together),
        cmocka_unit_test(a_pod_that_holds_a_part_gets_the_rest_beside_it),
        cmocka_unit_test(devices_come_from_the_node_that_was_preferred),
        cmocka_unit_test(hints_of_many_devices_are_made_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
