/* SPDX-License-Identifier: Apache-2.0 */
/* What a container finds inside: rights, mounts, terminal, namespaces. */
#include "real.h"

static void process_has_containerds_capabilities_user_and_groups(void **state)
{
    int64_t groups[] = { 20, 10 };

    (void)state;
    BOX(b, "sh", "-c",
        "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp:)' /proc/self/status; stat -c %a-%u / /tmp; echo "
        "$HOME");
    run_to_end(&b);
    str_auto root = output(&b);
    assert_string_equal(root,
                        "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0 \nCapInh:\t0000000000000000\n"
                        "CapPrm:\t00000000a80425fb\nCapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb\n"
                        "CapAmb:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n755-0\n1777-0\n/\n");
    delete (&b);

    BOX(c, "sh", "-c",
        "grep -E '^(Uid|Gid|Groups|CapEff|CapBnd|NoNewPrivs|Seccomp:)' /proc/self/status; echo $HOME");
    host.image.user = (char *)"alice:nosuchgroup";
    c.security.has_allow_privilege_escalation = true;
    c.security.seccomp.type = API_SECCOMP_RUNTIME_DEFAULT;
    c.pod_security.supplemental_groups = groups;
    c.pod_security.n_supplemental_groups = 2;
    c.pod_security.has_fs_group = true;
    c.pod_security.fs_group = 4000;
    run_to_end(&c);
    host.image.user = NULL;
    str_auto alice = output(&c);
    assert_string_equal(
        alice, "Uid:\t1234\t1234\t1234\t1234\nGid:\t4321\t4321\t4321\t4321\nGroups:\t10 20 50 4000 4321 \n"
               "CapEff:\t0000000000000000\nCapBnd:\t00000000a80425fb\nNoNewPrivs:\t1\nSeccomp:\t2\n/data\n");
    delete (&c);
}

static void privileged_container_has_the_hosts_devices_and_no_masks(void **state)
{
    (void)state;
    BOX(b, "sh", "-c",
        "grep CapEff /proc/self/status; grep -c ' /proc/\\| /sys/firmware' /proc/self/mounts; ls -d "
        "/dev/kmsg /dev/null; "
        "grep ' /sys sysfs' /proc/self/mounts | grep -c '[ ,]ro,'; ls -l /dev/ptmx | grep -c 'pts/ptmx'");
    b.security.has_privileged = b.security.privileged = true;
    b.security.seccomp.type = API_SECCOMP_RUNTIME_DEFAULT;
    run_to_end(&b);
    str_auto text = output(&b);
    assert_non_null(strstr(text, "\n0\n"));
    assert_non_null(strstr(text, "/dev/kmsg\n/dev/null\n0\n1\n"));
    delete (&b);

    BOX(c, "sh", "-c",
        "cat /proc/keys /proc/timer_list; echo x > /proc/sys/kernel/domainname; echo y > /sys/y; ls /dev");
    run_to_end(&c);
    str_auto plain = output(&c);
    assert_non_null(strstr(plain, "Read-only file system"));
    assert_null(strstr(plain, "kmsg"));
    delete (&c);
}

static void mounts_root_and_working_directory_are_as_asked(void **state)
{
    const struct rt_mount mounts[] = {
        { .source = host.seccomp_dir, .destination = "/vol/ro", .read_only = true },
        { .source = host.root, .destination = "/vol", .propagation = "rslave" },
    };

    (void)state;
    BOX(b, "sh", "-c",
        "exec 2>&1; pwd; touch /x; touch /vol/volume/x && echo written; touch /vol/ro/x; echo $0 $HOSTNAME "
        "$A; touch "
        "/dev/shm/f");
    b.config.mounts = mounts;
    b.config.n_mounts = 2;
    b.config.working_dir = "/not/there/yet";
    b.config.env = (const char *const[]){ "A=b c", NULL };
    run_to_end(&b);
    str_auto text = output(&b);
    assert_string_equal(text,
                        "/not/there/yet\nwritten\ntouch: /vol/ro/x: Read-only file system\nsh pod b c\n");
    delete (&b);
    unlink("/dev/shm/f");

    BOX(c, "sh", "-c", "exec 2>&1; touch /x; echo $?");
    c.security.has_read_only_root_filesystem = c.security.read_only_root_filesystem = true;
    run_to_end(&c);
    str_auto readonly = output(&c);
    assert_string_equal(readonly, "touch: /x: Read-only file system\n1\n");
    delete (&c);

    BOX(d, "pwd");
    d.config.working_dir = "tmp";
    assert_int_equal(create(&d), ERR_UNKNOWN);
    assert_string_equal(d.result.text, "Cwd must be an absolute path");
    delete (&d);
}

static void image_of_a_hundred_and_twenty_layers_is_mounted(void **state)
{
    size_t i, n = 120;

    (void)state;
    BOX(b, "sh", "-c", "cat /f /g");
    for (i = 1; i < n; i++) {
        host.layers[i] = str_printf("%s/layers/%064zx", host.root, i);
        shell("mkdir -p -m 755 %s && echo %zu > %s/f", host.layers[i], i, host.layers[i]);
    }
    shell("echo only below > %s/g", host.layers[3]);
    host.image.layer_dirs.n = n;
    run_to_end(&b);
    host.image.layer_dirs.n = 1;
    str_auto text = output(&b);
    assert_string_equal(text, "119\nonly below\n");
    delete (&b);
    assert_no_trace(&b);
    for (i = 1; i < n; i++)
        free(host.layers[i]);
}

static void terminal_and_standard_input_are_given_when_asked(void **state)
{
    (void)state;
    BOX(b, "sh", "-c", "[ -t 1 ] && [ -t 0 ] && echo terminal $TERM");
    b.config.tty = true;
    run_to_end(&b);
    str_auto text = output(&b);
    assert_non_null(strstr(text, "terminal xterm"));
    delete (&b);
    assert_no_trace(&b);

    BOX(c, "sh", "-c", "cat; echo eof");
    run_to_end(&c);
    str_auto closed = output(&c);
    assert_string_equal(closed, "eof\n");
    delete (&c);

    BOX(d, "cat");
    d.config.stdin_open = true;
    run(&d);
    assert_int_equal(state_of(&d).phase, RT_RUNNING);
    delete (&d);
    assert_no_trace(&d);
}

/* A process in namespaces of its own, as the pod's pinned ones; its hostname is "pinned". */
static pid_t start_holder(void)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD, NULL,
                         NULL, NULL, NULL);
    if (pid == 0) {
        if (sethostname("pinned", 6) != 0 || write(ready[1], "1", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void namespaces_of_the_pod_are_joined(void **state)
{
    char net[64], ipc[64], uts[64], pidns[64];
    pid_t holder = start_holder();
    int status;

    (void)state;
    snprintf(net, sizeof(net), "/proc/%d/ns/net", (int)holder);
    snprintf(ipc, sizeof(ipc), "/proc/%d/ns/ipc", (int)holder);
    snprintf(uts, sizeof(uts), "/proc/%d/ns/uts", (int)holder);
    snprintf(pidns, sizeof(pidns), "/proc/%d/ns/pid", (int)holder);
    BOX(b, "sh", "-c",
        "cat /proc/sys/kernel/hostname; cat /proc/net/dev | grep -c :; grep -c mqueue /proc/self/mounts; "
        "[ $$ = 1 ] || echo shared; grep -c test_container /proc/1/comm");
    b.config.netns = net;
    b.config.ipcns = ipc;
    b.config.utsns = uts;
    b.config.pidns = pidns;
    run_to_end(&b);
    str_auto shared = output(&b);
    assert_string_equal(shared, "pinned\n1\n1\nshared\n1\n");
    delete (&b);
    assert_no_trace(&b);

    BOX(c, "sh", "-c", "cat /proc/sys/kernel/hostname; [ $$ = 1 ] && echo alone");
    c.config.netns = net;
    c.config.ipcns = ipc;
    c.config.utsns = uts;
    run_to_end(&c);
    str_auto alone = output(&c);
    assert_string_equal(alone, "pinned\nalone\n");
    delete (&c);

    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(waitpid(holder, &status, 0), holder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_has_containerds_capabilities_user_and_groups),
        cmocka_unit_test(privileged_container_has_the_hosts_devices_and_no_masks),
        cmocka_unit_test(mounts_root_and_working_directory_are_as_asked),
        cmocka_unit_test(image_of_a_hundred_and_twenty_layers_is_mounted),
        cmocka_unit_test(terminal_and_standard_input_are_given_when_asked),
        cmocka_unit_test(namespaces_of_the_pod_are_joined),
    };

    return run_with_each_runtime(tests, ARRAY_LEN(tests), set_up, tear_down);
}
