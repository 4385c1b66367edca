/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes match, in a made-up /dev and /sys; which folders have to be watched for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/declared/look.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct scene {
    char dir[64], sys[96], dev[96];
    struct decl_file file;
    struct look look;
};

static void in_shell(const struct scene *s, const char *command)
{
    str_auto all = str_printf("cd %s && %s", s->dir, command);

    if (system(all) != 0)
        fail_msg("%s", all);
}

static int setup(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));

    *state = s;
    strcpy(s->dir, "/tmp/test-look.XXXXXX");
    if (mkdtemp(s->dir) == NULL)
        return -1;
    snprintf(s->sys, sizeof(s->sys), "%s/sys", s->dir);
    snprintf(s->dev, sizeof(s->dev), "%s/dev", s->dir);
    in_shell(s, "mkdir -p dev sys/devices sys/dev/char sys/bus/usb/devices");
    return 0;
}

static int teardown(void **state)
{
    struct scene *s = *state;

    in_shell(s, "rm -rf dev sys other");
    rmdir(s->dir);
    decl_done(&s->file);
    look_done(&s->look);
    free(s);
    return 0;
}

/* Members of one group; @ is the scene's folder. */
static void look_for(struct scene *s, const char *key, const char *members)
{
    buf_auto text = BUF_INIT(65536), out = BUF_INIT(1 << 20);
    struct api_problems problems = { 0 };
    struct look_job job = { .sys_dir = s->sys, .dev_dir = s->dev };
    const struct decl_resource *r;
    struct err e = { 0 };

    buf_addf(&text, "devices: [{name: example.com/x, groups: [{%s: ", key);
    for (const char *c = members; *c != '\0'; c++)
        if (*c == '@')
            buf_adds(&text, s->dir);
        else
            buf_addc(&text, *c);
    buf_adds(&text, "}]}]\n");
    decl_done(&s->file);
    look_done(&s->look);
    assert_int_equal(decl_parse("x", text.p, text.n, &s->file, &problems, &e), ERR_OK);
    if (problems.n > 0)
        fail_msg("%s: %s", problems.v[0].field, problems.v[0].message);
    api_problems_done(&problems);
    r = &s->file.v[0];
    job.v = &r;
    job.n = 1;
    assert_int_equal(look_run(&job, &out, &e), ERR_OK);
    assert_int_equal(look_read(out.p, out.n, look_count(&job), &s->look, &e), ERR_OK);
}

/* Without the scene's folder. */
static const char *plain(const struct scene *s, const char *path)
{
    size_t n = strlen(s->dir);

    return strncmp(path, s->dir, n) == 0 ? path + n : path;
}

static void found_is(const struct scene *s, size_t member, const char *wanted)
{
    const struct look_member *m = &s->look.members[member];
    buf_auto found = BUF_INIT(65536);

    if (m->unknown != NULL)
        fail_msg("unknown: %s", m->unknown);
    for (size_t i = 0; i < m->n; i++) {
        buf_addf(&found, "%s%s%s%s", i > 0 ? " " : "", plain(s, m->v[i].path),
                 m->v[i].node != NULL ? "=" : "", m->v[i].node != NULL ? m->v[i].node : "");
        for (size_t k = 0; k < m->v[i].n_inside; k++)
            buf_addf(&found, "+%s", m->v[i].inside[k]);
    }
    assert_string_equal(found.p, wanted);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void watched_is(const struct scene *s, const char *wanted)
{
    buf_auto found = BUF_INIT(65536);
    char *v[64];
    size_t n = 0;

    for (size_t i = 0; i < s->look.n_watch; i++)
        for (size_t k = 0; k < s->look.watch[i].n_names; k++)
            v[n++] = str_printf("%s:%s", plain(s, s->look.watch[i].dir), s->look.watch[i].names[k]);
    qsort(v, n, sizeof(v[0]), by_text);
    for (size_t i = 0; i < n; i++) {
        buf_addf(&found, "%s%s", i > 0 ? " " : "", v[i]);
        free(v[i]);
    }
    assert_string_equal(found.p, wanted);
}

static void problem_is(const struct scene *s, size_t member, const char *wanted)
{
    const struct look_member *m = &s->look.members[member];

    assert_int_equal(m->n_problems, wanted != NULL);
    if (wanted != NULL)
        assert_string_equal(plain(s, m->problems[0]), wanted);
}

/* ---- paths ---- */

static void patterns_match_nodes_and_links_to_them(void **state)
{
    struct scene *s = *state;

    in_shell(s,
             "ln -s /dev/null dev/tty1; ln -s /dev/zero dev/tty10; ln -s /dev/full dev/tty2; ln -s nowhere "
             "dev/tty3; ln -s /dev/null dev/.tty4; ln -s /dev/null dev/other");
    look_for(s, "paths", "[{path: @/dev/tty*}, {path: '@/d?v/tty[12]'}, {path: @/dev/tty2}]");
    found_is(s, 0, "/dev/tty1=c1:3 /dev/tty2=c1:7 /dev/tty10=c1:5");
    found_is(s, 1, "/dev/tty1=c1:3 /dev/tty2=c1:7");
    found_is(s, 2, "/dev/tty2=c1:7");
    watched_is(s, "/dev:tty* /dev:tty2 /dev:tty[12] :d?v");
}

static void the_nearest_folder_of_what_is_missing_is_watched(void **state)
{
    struct scene *s = *state;

    in_shell(s, "mkdir -p dev/serial; touch dev/file");
    look_for(s, "paths", "[{path: @/dev/serial/by-id/*}, {path: @/dev/gpu/card0}, {path: @/dev/file/*}]");
    found_is(s, 0, "");
    found_is(s, 1, "");
    found_is(s, 2, "");
    watched_is(s, "/dev/serial:by-id /dev:file /dev:gpu");
    in_shell(s, "mkdir -p dev/serial/by-id dev/gpu");
    look_for(s, "paths", "[{path: @/dev/serial/by-id/*}, {path: @/dev/gpu/card0}]");
    watched_is(s, "/dev/gpu:card0 /dev/serial/by-id:*");
}

static void only_nodes_are_devices(void **state)
{
    struct scene *s = *state;

    in_shell(s, "touch dev/file; mkdir -p dev/folder/sub; ln -s /dev/null dev/folder/a");
    look_for(s, "paths", "[{path: @/dev/file}, {path: @/dev/fi*, type: Mount}, {path: @/dev/folder}]");
    found_is(s, 0, "");
    problem_is(s, 0, "/dev/file is not a device node; type: Mount binds files");
    found_is(s, 1, "/dev/file");
    found_is(s, 2, "/dev/folder"); /* links in it are no nodes */
    watched_is(s, "/dev/folder/sub:* /dev/folder:* /dev:fi* /dev:file /dev:folder");
}

static void a_folder_is_found_with_its_nodes(void **state)
{
    struct scene *s = *state;

    if (geteuid() != 0) {
        print_message("only root can make nodes\n");
        skip();
    }
    in_shell(s, "mkdir -p dev/snd/by-id && mknod dev/snd/pcm10 c 1 3 && mknod dev/snd/pcm2 b 7 9 && mknod "
                "dev/snd/by-id/x c 1 5");
    look_for(s, "paths", "[{path: @/dev/snd}, {path: @/dev/snd/pcm*}]");
    found_is(s, 0, "/dev/snd+by-id/x+pcm10+pcm2");
    found_is(s, 1, "/dev/snd/pcm2=b7:9 /dev/snd/pcm10=c1:3");
}

static void an_id_is_printable(void **state)
{
    struct scene *s = *state;

    in_shell(s, "ln -s /dev/null 'dev/a b,c#d%e'");
    look_for(s, "paths", "[{path: @/dev/a*}]");
    found_is(s, 0, "/dev/a b,c#d%e=c1:3");
    assert_string_equal(plain(s, s->look.members[0].v[0].id), "/dev/a%20b%2Cc%23d%25e");
}

/* Without a descriptor to spare no folder can be read. */
static void what_cannot_be_looked_at_is_unknown(void **state)
{
    struct scene *s = *state;
    struct rlimit before, none;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ (rlim_t)fd, before.rlim_max };
    close(fd);
    in_shell(s, "ln -s /dev/null dev/tty1");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    look_for(s, "paths", "[{path: @/dev/tty*}, {path: @/dev/tty1}]");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_non_null(s->look.members[0].unknown);
    assert_true(str_ends(s->look.members[0].unknown, "Too many open files"));
    found_is(s, 1, "/dev/tty1=c1:3"); /* needs none */
}

/* ---- sysfs ---- */

/* A serial adapter on a hub, and a graphics card; the nodes are those of null, zero and full. */
#define USB "sys/devices/pci0/usb1/1-1/1-1.2"
#define TTY USB "/1-1.2:1.0/ttyUSB0/tty/ttyUSB0"
#define GPU "sys/devices/pci0/0000:00:02.0"
#define SAYS(file, text) "echo " text " > " file "; "
#define MACHINE                                                                                              \
    "set -e; mkdir -p " TTY " " GPU                                                                          \
    "/drm/renderD128 sys/class/tty sys/class/drm; " SAYS(USB "/idVendor", "0403") SAYS(                      \
        USB "/idProduct",                                                                                    \
        "6001") SAYS(USB "/serial", "A50285BI") SAYS(USB "/busnum",                                          \
                                                     "1") SAYS(USB "/devnum",                                \
                                                               "7") SAYS(USB "/1-1.2:1.0/bInterfaceNumber",  \
                                                                         "00") SAYS(GPU "/vendor", "0x8086") \
        SAYS(GPU "/device", "0x9a49") SAYS(                                                                  \
            "sys/devices/pci0/numa_node",                                                                    \
            "1") "ln -s \"$PWD/sys/class/tty\" " TTY "/subsystem; "                                          \
                 "ln -s \"$PWD/sys/class/drm\" " GPU "/drm/renderD128/subsystem; "                           \
                 "ln -s \"$PWD/" TTY "\" sys/dev/char/1:3; ln -s \"$PWD/" GPU                                \
                 "/drm/renderD128\" sys/dev/char/1:5; "                                                      \
                 "ln -s \"$PWD/" USB "\" sys/bus/usb/devices/1-1.2; mkdir sys/bus/usb/devices/1-1.2:1.0; "   \
                 "ln -s /dev/null dev/ttyUSB0; ln -s /dev/zero dev/renderD128; ln -s /dev/full dev/plain; "  \
                 "mkdir -p dev/bus/usb/001; ln -s /dev/null dev/bus/usb/001/007"

static void matches(struct scene *s, const char *match, const char *wanted)
{
    str_auto members = str_printf("[{path: '@/dev/[tpr]*', match: {%s}}]", match);

    look_for(s, "paths", members);
    found_is(s, 0, wanted);
}

static void nodes_are_matched_by_their_devices(void **state)
{
    struct scene *s = *state;

    in_shell(s, MACHINE);
    matches(s, "", "/dev/plain=c1:7 /dev/renderD128=c1:5 /dev/ttyUSB0=c1:3");
    matches(s, "subsystem: tty", "/dev/ttyUSB0=c1:3");
    matches(s, "subsystem: 't*'", "/dev/ttyUSB0=c1:3");
    matches(s, "subsystem: drm", "/dev/renderD128=c1:5");
    matches(s, "vendor: '0403'", "/dev/ttyUSB0=c1:3");
    matches(s, "vendor: '403', product: '6001', serial: A5*, port: 1-1.2", "/dev/ttyUSB0=c1:3");
    matches(s, "vendor: '0403', product: '6002'", "");
    matches(s, "vendor: '0403', serial: B*", "");
    matches(s, "port: 1-1.3", "");
    matches(s, "vendor: '8086', product: 9A49, port: '0000:00:02.0'", "/dev/renderD128=c1:5");
    matches(s, "attributes: {bInterfaceNumber: '00'}", "/dev/ttyUSB0=c1:3");
    matches(s, "attributes: {bInterfaceNumber: '00', serial: 'A*'}", "/dev/ttyUSB0=c1:3");
    matches(s, "attributes: {bInterfaceNumber: '01'}", "");
    matches(s, "attributes: {nothing: '*'}", "");
    assert_int_equal(s->look.members[0].n, 0);
    matches(s, "subsystem: tty", "/dev/ttyUSB0=c1:3");
    assert_int_equal(s->look.members[0].v[0].numa, 1);
}

static void usb_devices_are_found_by_what_they_are(void **state)
{
    struct scene *s = *state;

    in_shell(s, MACHINE);
    look_for(s, "usb",
             "[{vendor: '0403', product: '6001'}, {vendor: '0403', product: '6001', port: '1-*'}, "
             "{vendor: '0403', product: '6001', serial: B}, {vendor: '0404', product: '6001'}]");
    found_is(s, 0, "/dev/bus/usb/001/007=c1:3");
    assert_string_equal(s->look.members[0].v[0].id, "usb:0403:6001:A50285BI");
    found_is(s, 1, "/dev/bus/usb/001/007=c1:3");
    assert_string_equal(s->look.members[1].v[0].id, "usb:0403:6001@1-1.2");
    found_is(s, 2, "");
    found_is(s, 3, "");
    in_shell(s, "rm " USB "/serial");
    look_for(s, "usb", "[{vendor: '0403', product: '6001'}]");
    assert_string_equal(s->look.members[0].v[0].id, "usb:0403:6001@1-1.2");
    in_shell(s, "rm dev/bus/usb/001/007");
    look_for(s, "usb", "[{vendor: '0403', product: '6001'}]");
    found_is(s, 0, "");
    assert_int_equal(s->look.members[0].n_problems, 1);
}

static void a_machine_without_usb_has_none(void **state)
{
    struct scene *s = *state;

    in_shell(s, "rm -r sys/bus");
    look_for(s, "usb", "[{vendor: '0403', product: '6001'}]");
    found_is(s, 0, "");
}

/* ---- the answer ---- */

static void an_answer_that_is_wrong_is_refused(void **state)
{
    static const char *const answers[] = {
        "",
        "{}",
        "[]",
        "{\"members\": [], \"watch\": {}}",
        "{\"members\": [{}], \"watch\": {}}",
        "{\"members\": [{\"v\": [{}]}], \"watch\": {}}",
        "{\"members\": [{\"v\": [{\"path\": \"/x\"}]}], \"watch\": {}}",
        "{\"members\": [{\"v\": []}], \"watch\": []}",
        "{\"members\": [{\"v\": []}], \"watch\": {\"/dev\": [3]}}",
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct look l = { 0 };
        struct err e = { 0 };
        if (look_read(answers[i], strlen(answers[i]), 1, &l, &e) == ERR_OK)
            fail_msg("accepted: %s", answers[i]);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(patterns_match_nodes_and_links_to_them),
        TEST(the_nearest_folder_of_what_is_missing_is_watched),
        TEST(only_nodes_are_devices),
        TEST(a_folder_is_found_with_its_nodes),
        TEST(an_id_is_printable),
        TEST(what_cannot_be_looked_at_is_unknown),
        TEST(nodes_are_matched_by_their_devices),
        TEST(usb_devices_are_found_by_what_they_are),
        TEST(a_machine_without_usb_has_none),
        cmocka_unit_test(an_answer_that_is_wrong_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
