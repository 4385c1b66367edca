/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cni/rootns.h"

#include "cni/host/netns.h"

static const char *why_not;

static int setup(void **state)
{
    if (place_make(state) != 0)
        return -1;
    if (why_not == NULL)
        mount_shared(*state);
    return 0;
}

#define NEED_ROOT                                                                                            \
    do {                                                                                                     \
        if (why_not != NULL)                                                                                 \
            SKIP(why_not);                                                                                   \
    } while (0)

static enum presence_answer pinned(const char *dir, const char *which)
{
    struct err e = { 0 };

    return presence_of(netns_look_pinned(dir, which, &e));
}

static struct err create(struct place *p, const struct netns_spec *spec)
{
    struct ended d = { 0 };
    struct proc_call call;

    netns_create_start(&call, spec, -1, NULL, &p->loop, on_ended, &d);
    run_until_ended(p, &d);
    return d.result;
}

static ino_t inode(const char *dir, const char *which)
{
    str_auto path = str_printf("%s/%s", dir, which);
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_ino;
}

/* What a shell says inside the three namespaces. */
static char *inside(const char *dir, const char *script)
{
    str_auto command =
        str_printf("nsenter --net=%s/net --ipc=%s/ipc --uts=%s/uts sh -c '%s'", dir, dir, dir, script);

    return sh(command);
}

static void a_user_namespace_owns_the_others(void **state)
{
    struct place *p = *state;
    static const struct netns_sysctl sysctls[] = { { "net.ipv4.ip_unprivileged_port_start", "80" },
                                                   { "kernel.shm_rmid_forced", "1" } };
    struct netns_spec spec = { .net = true,
                               .ipc = true,
                               .uts = true,
                               .hostname = "web-0",
                               .first_id = 327680,
                               .n_ids = 65536,
                               .sysctls = sysctls,
                               .n_sysctls = ARRAY_LEN(sysctls) };
    const char *dir = in_place(p, "ns/users");
    str_auto maps = NULL;
    str_auto values = NULL;
    struct err e;

    NEED_ROOT;
    spec.dir = dir;
    e = create(p, &spec);
    assert_string_equal(e.text, "");
    {
        str_auto command =
            str_printf("nsenter --user=%s/user sh -c 'cat /proc/self/uid_map /proc/self/gid_map' | "
                       "tr -s \" \\n\" \" \"",
                       dir);
        maps = sh(command);
    }
    assert_string_equal(maps, " 0 327680 65536 0 327680 65536 ");
    {
        str_auto command =
            str_printf("nsenter --user=%s/user --net=%s/net --ipc=%s/ipc --uts=%s/uts sh -c "
                       "'hostname; cat /proc/sys/net/ipv4/ip_unprivileged_port_start "
                       "/proc/sys/kernel/shm_rmid_forced; ip link set lo down && hostname x && "
                       "echo owned'",
                       dir, dir, dir, dir);
        values = sh(command);
    }
    assert_string_equal(values, "web-0\n80\n1\nowned\n");
    e = create(p, &spec); /* all is there */
    assert_int_equal(e.code, ERR_OK);
    if (netns_remove(dir, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_not_equal(access(dir, F_OK), 0);
}

static void namespaces_are_made_set_up_and_pinned(void **state)
{
    struct place *p = *state;
    static const struct netns_sysctl sysctls[] = { { "net.ipv4.ip_unprivileged_port_start", "80" },
                                                   { "net/ipv4/conf/lo/forwarding", "1" },
                                                   { "kernel.shm_rmid_forced", "1" },
                                                   { "fs.mqueue.msg_max", "9" } };
    struct netns_spec spec = { .net = true,
                               .ipc = true,
                               .uts = true,
                               .hostname = "web-0",
                               .sysctls = sysctls,
                               .n_sysctls = ARRAY_LEN(sysctls) };
    str_auto host = NULL;
    str_auto said = NULL;
    struct stat st;
    struct err e;

    NEED_ROOT;
    host = sh("hostname; cat /proc/sys/kernel/shm_rmid_forced");
    spec.dir = in_place(p, "ns/pod1");
    e = create(p, &spec);
    if (e.code != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(stat(spec.dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(pinned(spec.dir, "net"), PRESENCE_PRESENT);
    assert_int_equal(pinned(spec.dir, "ipc"), PRESENCE_PRESENT);
    assert_int_equal(pinned(spec.dir, "uts"), PRESENCE_PRESENT);
    said = inside(
        spec.dir,
        "hostname; cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/net/ipv4/conf/lo/forwarding "
        "/proc/sys/kernel/shm_rmid_forced /proc/sys/fs/mqueue/msg_max; ip -o link show up | wc -l");
    assert_string_equal(said, "web-0\n80\n1\n1\n9\n1\n");
    free(take_ptr(&said));
    said = sh("hostname; cat /proc/sys/kernel/shm_rmid_forced");
    assert_string_equal(said, host); /* ours is what it was */

    assert_int_equal(netns_remove(spec.dir, &e), ERR_OK);
    assert_false(exists(p, "ns/pod1"));
    assert_int_equal(netns_remove(spec.dir, &e), ERR_OK);
}

static void what_is_pinned_stays_and_a_part_of_it_is_made_anew(void **state)
{
    struct place *p = *state;
    struct netns_spec spec = { .net = true, .ipc = true, .uts = true };
    ino_t net;
    struct err e = { 0 };

    NEED_ROOT;
    spec.dir = in_place(p, "ns/pod2");
    assert_int_equal(create(p, &spec).code, ERR_OK);
    net = inode(spec.dir, "net");
    assert_int_equal(create(p, &spec).code, ERR_OK);
    assert_int_equal(inode(spec.dir, "net"), net);

    assert_int_equal(umount2(in_place(p, "ns/pod2/uts"), MNT_DETACH), 0);
    assert_int_equal(pinned(spec.dir, "uts"), PRESENCE_ABSENT);
    assert_int_equal(create(p, &spec).code, ERR_OK);
    assert_int_equal(pinned(spec.dir, "net"), PRESENCE_PRESENT);
    assert_int_equal(pinned(spec.dir, "uts"), PRESENCE_PRESENT);
    assert_int_equal(netns_remove(spec.dir, &e), ERR_OK);
}

static void only_what_is_asked_for_is_made(void **state)
{
    struct place *p = *state;
    struct netns_spec spec = { .ipc = true };
    struct err e = { 0 };

    NEED_ROOT;
    spec.dir = in_place(p, "ns/pod3");
    assert_int_equal(create(p, &spec).code, ERR_OK);
    assert_int_equal(pinned(spec.dir, "ipc"), PRESENCE_PRESENT);
    assert_int_equal(pinned(spec.dir, "net"), PRESENCE_ABSENT);
    assert_int_equal(count(p, "ns/pod3"), 1);
    assert_int_equal(netns_remove(spec.dir, &e), ERR_OK);
}

static void sysctls_of_the_host_are_refused(void **state)
{
    struct place *p = *state;
    static const struct {
        const char *name, *message;
        bool net, ipc;
    } bad[] = {
        { "vm.swappiness",
          "create pod namespaces: sysctl \"vm.swappiness\": not namespaced, it would change the host", true,
          true },
        { "kernel.hostname",
          "create pod namespaces: sysctl \"kernel.hostname\": not namespaced, it would change the host", true,
          true },
        { "net/../vm/swappiness", "create pod namespaces: sysctl \"net/../vm/swappiness\": not a name", true,
          true },
        { "net.//.vm.swappiness", "create pod namespaces: sysctl \"net.//.vm.swappiness\": not a name", true,
          true },
        { "/net/ipv4/ip_forward", "create pod namespaces: sysctl \"/net/ipv4/ip_forward\": not a name", true,
          true },
        { "", "create pod namespaces: sysctl \"\": not a name", true, true },
        { "net.ipv4.ip_forward",
          "create pod namespaces: sysctl \"net.ipv4.ip_forward\": the pod has no network namespace of its "
          "own",
          false, true },
        { "kernel.sem",
          "create pod namespaces: sysctl \"kernel.sem\": the pod has no IPC namespace of its own", true,
          false },
        { "net.ipv4.no_such_thing",
          "create pod namespaces: sysctl net.ipv4.no_such_thing: write net/ipv4/no_such_thing: No such file "
          "or directory",
          true, true },
    };

    NEED_ROOT;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct netns_sysctl sysctl = { bad[i].name, "1" };
        struct netns_spec spec = { .dir = in_place(p, "ns/pod4"),
                                   .net = bad[i].net,
                                   .ipc = bad[i].ipc,
                                   .sysctls = &sysctl,
                                   .n_sysctls = 1 };
        struct err e = create(p, &spec);

        assert_int_not_equal(e.code, ERR_OK);
        assert_string_equal(e.text, bad[i].message);
        assert_int_equal(count(p, "ns/pod4"), 0);
    }
}

static void sysctls_of_an_interface_wait_until_it_is_there(void **state)
{
    struct place *p = *state;
    static const struct netns_sysctl sysctls[] = { { "net.ipv4.conf.eth0.tag", "7" },
                                                   { "net.ipv4.conf.eth0/7.tag", "7" },
                                                   { "net.ipv4.conf.all.arp_notify", "1" } };
    struct netns_spec spec = {
        .net = true, .ipc = true, .uts = true, .sysctls = sysctls, .n_sysctls = ARRAY_LEN(sysctls)
    };
    struct netns_spec without = spec;
    struct ended d = { 0 };
    struct proc_call call;
    str_auto said = NULL;
    struct err e = { 0 };

    NEED_ROOT;
    spec.dir = in_place(p, "ns/pod5");
    without.n_sysctls = 0;
    assert_true(netns_has_interface_sysctls(&spec));
    assert_false(netns_has_interface_sysctls(&without));
    assert_int_equal(create(p, &spec).code, ERR_OK);

    netns_interface_sysctls_start(&call, &spec, &p->loop, on_ended, &d);
    run_until_ended(p, &d);
    assert_int_equal(d.result.code, ERR_NOT_FOUND);
    assert_string_equal(d.result.text, "write interface sysctls: sysctl net.ipv4.conf.eth0.tag: write "
                                       "net/ipv4/conf/eth0/tag: No such file or directory");

    free(
        inside(spec.dir,
               "ip link add eth0 type veth peer name other; ip link add eth0.7 type veth peer name another"));
    d.calls = 0;
    netns_interface_sysctls_start(&call, &spec, &p->loop, on_ended, &d);
    run_until_ended(p, &d);
    assert_int_equal(d.result.code, ERR_OK);
    said = inside(spec.dir, "cat /proc/sys/net/ipv4/conf/eth0/tag /proc/sys/net/ipv4/conf/eth0.7/tag "
                            "/proc/sys/net/ipv4/conf/other/tag");
    assert_string_equal(said, "7\n7\n0\n");
    assert_int_equal(netns_remove(spec.dir, &e), ERR_OK);
}

static void removing_a_folder_that_is_none_is_a_success(void **state)
{
    struct place *p = *state;
    struct err e = { 0 };

    assert_int_equal(netns_remove(in_place(p, "never/was"), &e), ERR_OK);
    assert_int_equal(pinned(in_place(p, "never"), "net"), PRESENCE_ABSENT);
    put(p, "plain/net", "a file");
    assert_int_equal(pinned(in_place(p, "plain"), "net"), PRESENCE_ABSENT);
    NEED_ROOT;
    assert_int_equal(netns_remove(in_place(p, "plain"), &e), ERR_OK);
    assert_false(exists(p, "plain"));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(namespaces_are_made_set_up_and_pinned),
        TEST(a_user_namespace_owns_the_others),
        TEST(what_is_pinned_stays_and_a_part_of_it_is_made_anew),
        TEST(only_what_is_asked_for_is_made),
        TEST(sysctls_of_the_host_are_refused),
        TEST(sysctls_of_an_interface_wait_until_it_is_there),
        TEST(removing_a_folder_that_is_none_is_a_success),
    };

    why_not = rootns_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
