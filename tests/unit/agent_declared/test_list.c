/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a resource has, from what was found; what a container gets with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/declared/list.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MATCHES_MAX 8

struct scene {
    struct decl_file file;
    struct look_member found[DECL_MEMBERS_MAX];
    struct look_match matches[DECL_MEMBERS_MAX][MATCHES_MAX];
    char ids[DECL_MEMBERS_MAX][MATCHES_MAX][64];
    struct decl_list list;
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct scene));
    return *state == NULL;
}

static int teardown(void **state)
{
    struct scene *s = *state;

    decl_done(&s->file);
    decl_list_done(&s->list);
    free(s);
    return 0;
}

/* `groups` is the YAML of the resource's groups. */
static void declare(struct scene *s, const char *groups)
{
    str_auto text = str_printf("devices: [{name: example.com/x, groups: %s}]\n", groups);
    struct api_problems problems = { 0 };
    struct err e = { 0 };

    decl_done(&s->file);
    assert_int_equal(decl_parse("x.yaml", text, strlen(text), &s->file, &problems, &e), ERR_OK);
    if (problems.n > 0)
        fail_msg("%s: %s", problems.v[0].field, problems.v[0].message);
    api_problems_done(&problems);
}

/* Member `k` matches these paths, blank-separated: "/dev/a" or "/dev/a=c1:2". */
static void finds(struct scene *s, size_t k, const char *paths)
{
    str_auto copy = strdup(paths);
    struct look_member *m = &s->found[k];

    *m = (struct look_member){ .v = s->matches[k] };
    for (char *save = NULL, *word = strtok_r(copy, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        struct look_match *x = &s->matches[k][m->n];
        char *at = s->ids[k][m->n++], *node;

        snprintf(at, sizeof(s->ids[0][0]), "%s", word);
        node = strchr(at, '=');
        if (node != NULL)
            *node++ = '\0';
        *x = (struct look_match){ .path = at, .id = at, .node = node != NULL ? node : at, .numa = -1 };
    }
}

static void devices_are(struct scene *s, const char *wanted)
{
    struct decl_list next = { 0 };
    buf_auto found = BUF_INIT(65536);
    struct err e = { 0 };

    assert_int_equal(decl_list_make(&next, &s->file.v[0], s->found, &s->list, &e), ERR_OK);
    decl_list_done(&s->list);
    s->list = next;
    for (size_t i = 0; i < s->list.n; i++)
        buf_addf(&found, "%s%s%s", i > 0 ? " " : "", s->list.v[i].id, s->list.v[i].ambiguous ? "?" : "");
    assert_string_equal(found.p, wanted);
}

/* "node>container:permissions", mounts, variables. */
static void answer_is(struct scene *s, const char *ids, const char *wanted)
{
    str_auto copy = strdup(ids);
    const char *v[MATCHES_MAX];
    size_t n = 0;
    mem_auto struct dp_answer *a = NULL;
    buf_auto found = BUF_INIT(65536);
    struct err e = { 0 };

    for (char *save = NULL, *word = strtok_r(copy, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save))
        v[n++] = word;
    if (decl_list_answer(&s->list, v, n, &a, &e) != ERR_OK) {
        assert_string_equal(e.text, wanted);
        return;
    }
    for (size_t i = 0; i < a->n_nodes; i++)
        buf_addf(&found, "%s>%s:%s ", a->nodes[i].host_path, a->nodes[i].container_path,
                 a->nodes[i].permissions);
    for (size_t i = 0; i < a->n_mounts; i++)
        buf_addf(&found, "mount %s>%s%s ", a->mounts[i].host_path, a->mounts[i].container_path,
                 a->mounts[i].read_only ? ":ro" : "");
    for (size_t i = 0; i < a->n_envs; i++)
        buf_addf(&found, "%s=%s ", a->envs[i].name, a->envs[i].value);
    assert_string_equal(found.p, wanted);
}

/* ---- lists ---- */

static void each_match_is_a_device_in_natural_order(void **state)
{
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /dev/tty*}]}]");
    finds(s, 0, "/dev/tty2 /dev/tty10 /dev/tty1");
    devices_are(s, "/dev/tty1 /dev/tty2 /dev/tty10");
    answer_is(s, "/dev/tty10", "/dev/tty10>/dev/tty10:rwm ");
    finds(s, 0, "");
    devices_are(s, "");
}

static void a_shared_device_is_offered_count_times(void **state)
{
    struct scene *s = *state;

    declare(s, "[{count: 3, paths: [{path: /dev/fuse}]}]");
    finds(s, 0, "/dev/fuse=c10:229");
    devices_are(s, "/dev/fuse /dev/fuse#2 /dev/fuse#3");
    answer_is(s, "/dev/fuse /dev/fuse#3", "/dev/fuse>/dev/fuse:rwm ");
}

static void nodes_of_a_group_form_one_device(void **state)
{
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /dev/snd/pcmC0D0c}, {path: /dev/snd/controlC0}]}]");
    finds(s, 0, "/dev/snd/pcmC0D0c");
    finds(s, 1, "/dev/snd/controlC0");
    devices_are(s, "/dev/snd/pcmC0D0c,/dev/snd/controlC0");
    answer_is(s, "/dev/snd/pcmC0D0c,/dev/snd/controlC0",
              "/dev/snd/pcmC0D0c>/dev/snd/pcmC0D0c:rwm /dev/snd/controlC0>/dev/snd/controlC0:rwm ");
    finds(s, 1, "");
    devices_are(s, "");
}

static void a_limit_lets_one_match_be_in_several_devices(void **state)
{
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /dev/tty*}, {path: /dev/hub, limit: 2}]}]");
    finds(s, 0, "/dev/tty0=c1:0 /dev/tty1=c1:1 /dev/tty2=c1:2");
    finds(s, 1, "/dev/hub=c2:0");
    devices_are(s, "/dev/tty0,/dev/hub /dev/tty1,/dev/hub");
    finds(s, 0, "/dev/tty0=c1:0");
    devices_are(s, "/dev/tty0,/dev/hub");
}

/* Without it, the second modem would get the first one's card reader. */
static void what_was_one_device_stays_together(void **state)
{
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /dev/a*}, {path: /dev/b*}]}]");
    finds(s, 0, "/dev/a1 /dev/a2");
    finds(s, 1, "/dev/b1 /dev/b2");
    devices_are(s, "/dev/a1,/dev/b1 /dev/a2,/dev/b2");
    finds(s, 0, "/dev/a2 /dev/a3");
    devices_are(s, "/dev/a2,/dev/b2 /dev/a3,/dev/b1");
    finds(s, 0, "/dev/a0 /dev/a2");
    finds(s, 1, "/dev/b2");
    devices_are(s, "/dev/a2,/dev/b2");
}

static void an_optional_match_does_not_change_the_id(void **state)
{
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /dev/tty0}, {path: /dev/led, optional: true, env: LED}]}]");
    finds(s, 0, "/dev/tty0");
    finds(s, 1, "");
    devices_are(s, "/dev/tty0");
    answer_is(s, "/dev/tty0", "/dev/tty0>/dev/tty0:rwm ");
    finds(s, 1, "/dev/led");
    devices_are(s, "/dev/tty0");
    answer_is(s, "/dev/tty0", "/dev/tty0>/dev/tty0:rwm /dev/led>/dev/led:rwm LED=/dev/led ");
}

static void a_group_of_options_is_named_by_its_patterns(void **state)
{
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /dev/a, optional: true}, {path: /dev/b, optional: true}]}]");
    finds(s, 0, "");
    finds(s, 1, "/dev/b");
    devices_are(s, "/dev/a,/dev/b");
    answer_is(s, "/dev/a,/dev/b", "/dev/b>/dev/b:rwm ");
    finds(s, 1, "");
    devices_are(s, "");
    declare(s, "[{count: 2, paths: [{path: /dev/a*, optional: true}]}]");
    finds(s, 0, "/dev/a1 /dev/a2");
    devices_are(s, "/dev/a* /dev/a*#2 /dev/a*#3 /dev/a*#4");
}

/* One stick is /dev/ttyUSB0 and a link of udev's. */
static void an_exclusive_node_is_in_one_device(void **state)
{
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /dev/serial/by-id/*}]}, {paths: [{path: /dev/ttyUSB*}]}]");
    finds(s, 0, "/dev/serial/by-id/usb-Acme=c188:0");
    finds(s, 1, "/dev/ttyUSB0=c188:0 /dev/ttyUSB1=c188:1");
    devices_are(s, "/dev/serial/by-id/usb-Acme /dev/ttyUSB1");
    finds(s, 0, "/dev/serial/by-id/usb-Acme=c188:0 /dev/serial/by-id/usb-Late=c188:1");
    devices_are(s, "/dev/serial/by-id/usb-Acme /dev/ttyUSB1"); /* as it was: a pod may hold it */
}

static void what_two_groups_match_is_one_device(void **state)
{
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /dev/tty1, permissions: r}]}, {paths: [{path: /dev/tty*}]}]");
    finds(s, 0, "/dev/tty1");
    finds(s, 1, "/dev/tty1 /dev/tty2");
    devices_are(s, "/dev/tty1 /dev/tty2");
    answer_is(s, "/dev/tty1", "/dev/tty1>/dev/tty1:r ");
}

static void two_of_one_name_are_not_offered(void **state)
{
    struct scene *s = *state;

    declare(s, "[{usb: [{vendor: '1', product: '2'}]}]");
    finds(s, 0, "usb:0001:0002:0001 usb:0001:0002:0001 usb:0001:0002:0007");
    s->matches[0][0].path = "/dev/bus/usb/001/002";
    s->matches[0][1].path = "/dev/bus/usb/001/003";
    s->matches[0][2].path = "/dev/bus/usb/001/004";
    devices_are(s, "usb:0001:0002:0001? usb:0001:0002:0007");
    assert_int_equal(s->list.problems.n, 1);
    assert_string_equal(s->list.problems.v[0],
                        "two devices are usb:0001:0002:0001, so neither is offered; name them by port");
    answer_is(s, "usb:0001:0002:0001", "two devices are usb:0001:0002:0001");
    answer_is(s, "usb:0001:0002:0007", "/dev/bus/usb/001/004>/dev/bus/usb/001/004:rw ");
}

static void numa_nodes_are_those_of_all_nodes(void **state)
{
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /dev/a}, {path: /dev/b}]}]");
    finds(s, 0, "/dev/a");
    finds(s, 1, "/dev/b");
    s->matches[0][0].numa = 1;
    devices_are(s, "/dev/a,/dev/b");
    assert_int_equal(s->list.v[0].n_numa, 1);
    s->matches[1][0].numa = 1;
    devices_are(s, "/dev/a,/dev/b");
    assert_int_equal(s->list.v[0].n_numa, 1);
    s->matches[1][0].numa = 0;
    devices_are(s, "/dev/a,/dev/b");
    assert_int_equal(s->list.v[0].n_numa, 2);
    assert_int_equal(s->list.v[0].numa[0], 0);
}

static void a_list_has_an_end(void **state)
{
    struct scene *s = *state;

    declare(s, "[{count: 1000, paths: [{path: /dev/a*}]}, {count: 1000, paths: [{path: /dev/b*}]}, "
               "{count: 1000, paths: [{path: /dev/c*}]}]");
    finds(s, 0, "/dev/a1 /dev/a2 /dev/a3 /dev/a4 /dev/a5 /dev/a6 /dev/a7 /dev/a8");
    finds(s, 1, "/dev/b1 /dev/b2 /dev/b3 /dev/b4 /dev/b5 /dev/b6 /dev/b7 /dev/b8");
    finds(s, 2, "/dev/c1");
    {
        struct err e = { 0 };
        assert_int_equal(decl_list_make(&s->list, &s->file.v[0], s->found, &(struct decl_list){ 0 }, &e),
                         ERR_OK);
    }
    assert_int_equal(s->list.n, LIST_DEVICES_MAX);
    assert_string_equal(s->list.problems.v[0], "more than 16384 devices; the rest is ignored");
}

/* ---- answers ---- */

static void a_mount_path_names_the_node_in_the_container(void **state)
{
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /dev/serial/*, mountPath: /dev/modem, permissions: rw, env: MODEM}]}]");
    finds(s, 0, "/dev/serial/a /dev/serial/b");
    devices_are(s, "/dev/serial/a /dev/serial/b");
    answer_is(s, "/dev/serial/a", "/dev/serial/a>/dev/modem:rw MODEM=/dev/modem ");
    answer_is(s, "/dev/serial/a /dev/serial/b",
              "/dev/serial/a and /dev/serial/b would both be /dev/modem in the container; a mountPath that "
              "ends with a slash keeps their names");
    declare(s, "[{paths: [{path: /dev/serial/*, mountPath: /dev/, env: MODEM}]}]");
    devices_are(s, "/dev/serial/a /dev/serial/b");
    answer_is(s, "/dev/serial/a /dev/serial/b",
              "/dev/serial/a>/dev/a:rwm /dev/serial/b>/dev/b:rwm MODEM=/dev/a,/dev/b ");
}

static void files_are_mounted(void **state)
{
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /run/x.sock, type: Mount}, {path: /etc/x, mountPath: /conf/, type: Mount, "
               "readOnly: true}]}]");
    finds(s, 0, "/run/x.sock");
    finds(s, 1, "/etc/x");
    devices_are(s, "/run/x.sock,/etc/x");
    answer_is(s, "/run/x.sock,/etc/x", "mount /run/x.sock>/run/x.sock mount /etc/x>/conf/x:ro ");
}

static void a_folder_stands_for_its_nodes(void **state)
{
    static const char *const inside[] = { "controlC0", "sub/pcm" };
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /dev/snd, mountPath: /dev/sound}]}]");
    finds(s, 0, "/dev/snd");
    s->matches[0][0].node = NULL;
    s->matches[0][0].inside = inside;
    s->matches[0][0].n_inside = 2;
    devices_are(s, "/dev/snd");
    answer_is(s, "/dev/snd",
              "/dev/snd/controlC0>/dev/sound/controlC0:rwm /dev/snd/sub/pcm>/dev/sound/sub/pcm:rwm ");
}

static void a_device_that_is_gone_is_not_given(void **state)
{
    struct scene *s = *state;

    declare(s, "[{paths: [{path: /dev/a*}]}]");
    finds(s, 0, "/dev/a1");
    devices_are(s, "/dev/a1");
    answer_is(s, "/dev/a1 /dev/a2", "the device /dev/a2 is gone");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_match_is_a_device_in_natural_order),
        TEST(a_shared_device_is_offered_count_times),
        TEST(nodes_of_a_group_form_one_device),
        TEST(a_limit_lets_one_match_be_in_several_devices),
        TEST(what_was_one_device_stays_together),
        TEST(an_optional_match_does_not_change_the_id),
        TEST(a_group_of_options_is_named_by_its_patterns),
        TEST(an_exclusive_node_is_in_one_device),
        TEST(what_two_groups_match_is_one_device),
        TEST(two_of_one_name_are_not_offered),
        TEST(numa_nodes_are_those_of_all_nodes),
        TEST(a_list_has_an_end),
        TEST(a_mount_path_names_the_node_in_the_container),
        TEST(files_are_mounted),
        TEST(a_folder_stands_for_its_nodes),
        TEST(a_device_that_is_gone_is_not_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
