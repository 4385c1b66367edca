/* SPDX-License-Identifier: Apache-2.0 */
#include "rt_fixture.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char *argv_sh[] = { (char *)"sh" };
static const struct api_strs sh = { .v = argv_sh, .n = 1 };

static json_t *build(struct fixture *f)
{
    json_t *spec = NULL;
    struct err e = { 0 };

    f->config.command = &sh;
    if (rt_spec_build(&f->rt.host, &f->config, f->fd, &spec, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return spec;
}

static const json_t *at(const json_t *v, const char *path)
{
    char key[64];

    while (v != NULL && *path != '\0') {
        size_t n = strcspn(path, ".");

        snprintf(key, sizeof(key), "%.*s", (int)n, path);
        v = json_object_get(v, key);
        path += path[n] == '.' ? n + 1 : n;
    }
    return v;
}

static void expect(const json_t *spec, const char *path, const char *text)
{
    const json_t *v = at(spec, path);
    str_auto got = v != NULL ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("absent");

    if (strcmp(got, text) != 0)
        fail_msg("%s is %s, not %s", path, got, text);
}

#define CAPS                                                                                                 \
    "[\"CAP_CHOWN\",\"CAP_DAC_OVERRIDE\",\"CAP_FOWNER\",\"CAP_FSETID\",\"CAP_KILL\",\"CAP_SETGID\",\"CAP_"   \
    "SETUID\","                                                                                              \
    "\"CAP_SETPCAP\",\"CAP_NET_BIND_SERVICE\",\"CAP_NET_RAW\",\"CAP_SYS_CHROOT\",\"CAP_MKNOD\",\"CAP_AUDIT_" \
    "WRITE\","                                                                                               \
    "\"CAP_SETFCAP\"]"

static void a_user_namespace_is_joined_and_its_users_are_told(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    json_t *none = NULL;
    struct api_security security = { .has_run_as_user = true, .run_as_user = 65536 };

    f->config.userns = "/run/user";
    f->config.first_id = 131072;
    f->config.n_ids = 65536;
    json_auto_t *s = build(f);
    expect(s, "linux.uidMappings", "[{\"containerID\":0,\"hostID\":131072,\"size\":65536}]");
    expect(s, "linux.gidMappings", "[{\"containerID\":0,\"hostID\":131072,\"size\":65536}]");
    {
        str_auto list = json_dumps(at(s, "linux.namespaces"), JSON_COMPACT);
        assert_non_null(strstr(list, "{\"type\":\"user\",\"path\":\"/run/user\"}"));
    }
    f->config.security = &security;
    assert_int_equal(rt_spec_build(&f->rt.host, &f->config, f->fd, &none, &e), ERR_INVALID);
    assert_string_equal(e.text,
                        "user or group 65536: with hostUsers: false a pod has users and groups 0 to 65535");
}

static void plain_container_looks_as_under_containerd(void **state)
{
    struct fixture *f = *state;

    f->config.netns = "/run/n";
    f->config.ipcns = "/run/i";
    f->config.utsns = "/run/u";
    f->config.cpu_shares = 2;
    f->config.oom_score_adj = 1000;
    json_auto_t *s = build(f);
    expect(s, "root", "{\"path\":\"rootfs\",\"readonly\":false}");
    expect(s, "hostname", "absent");
    expect(s, "annotations", "absent");
    expect(s, "hooks", "absent");
    expect(s, "process.args", "[\"sh\"]");
    expect(s, "process.cwd", "\"/\"");
    expect(s, "process.user", "{\"uid\":0,\"gid\":0,\"additionalGids\":[0]}");
    expect(s, "process.oomScoreAdj", "1000");
    expect(s, "process.noNewPrivileges", "false");
    expect(s, "process.capabilities",
           "{\"bounding\":" CAPS ",\"effective\":" CAPS ",\"permitted\":" CAPS "}");
    expect(s, "linux.namespaces",
           "[{\"type\":\"mount\"},{\"type\":\"pid\"},{\"type\":\"network\",\"path\":\"/run/n\"},"
           "{\"type\":\"ipc\",\"path\":\"/run/i\"},{\"type\":\"uts\",\"path\":\"/run/u\"}]");
    expect(s, "linux.resources.devices", "[{\"allow\":false,\"access\":\"rwm\"}]");
    expect(s, "linux.resources.cpu", "{\"shares\":2}");
    expect(s, "linux.resources.memory", "{}");
    expect(s, "linux.resources.unified", "absent");
    expect(s, "linux.devices", "[]");
    expect(s, "linux.seccomp", "absent");
    expect(s, "linux.rootfsPropagation", "absent");
    expect(s, "linux.cgroupsPath", "\"/kubepods/podu-1/" FIXTURE_ID "\"");
    expect(s, "linux.readonlyPaths",
           "[\"/proc/bus\",\"/proc/fs\",\"/proc/irq\",\"/proc/sys\",\"/proc/sysrq-trigger\"]");
    assert_true(json_array_size(at(s, "linux.maskedPaths")) >= 12);
}

static void limits_differ_between_v1_and_v2(void **state)
{
    struct fixture *f = *state;
    const struct rt_hugepages huge[] = { { .size = "2MB", .limit = 0 } };

    f->config.cpu_shares = 1024;
    f->config.cpu_quota_us = 50000;
    f->config.memory_limit = 64 << 20;
    f->config.hugepages = huge;
    f->config.n_hugepages = 1;
    f->rt.host.swap_accounting = true;
    json_auto_t *v1 = build(f);
    expect(v1, "linux.resources.cpu", "{\"shares\":1024,\"quota\":50000,\"period\":100000}");
    expect(v1, "linux.resources.memory", "{\"limit\":67108864,\"swap\":67108864}");
    expect(v1, "linux.resources.hugepageLimits", "[{\"pageSize\":\"2MB\",\"limit\":0}]");

    f->rt.host.swap_accounting = false;
    f->rt.host.cgroup_v2 = true;
    f->config.oom_group = true;
    json_auto_t *v2 = build(f);
    expect(v2, "linux.resources.cpu", "{\"quota\":50000,\"period\":100000}");
    expect(v2, "linux.resources.memory", "{\"limit\":67108864}");
    expect(v2, "linux.resources.unified", "{\"cpu.weight\":\"100\",\"memory.oom.group\":\"1\"}");
    expect(v2, "linux.namespaces", "[{\"type\":\"mount\"},{\"type\":\"pid\"},{\"type\":\"cgroup\"}]");
}

static void protection_swap_and_processors_are_the_kernels_own_words(void **state)
{
    struct fixture *f = *state;

    f->rt.host.cgroup_v2 = f->rt.host.swap_accounting = true;
    f->config.cpu_shares = f->config.cpu_quota_us = f->config.memory_limit = -1;
    json_auto_t *none = build(f);
    expect(none, "linux.resources.unified", "{\"memory.swap.max\":\"0\"}"); /* no limit is no swap, either */
    f->config.memory_min = 1 << 20;
    f->config.memory_low = 2 << 20;
    f->config.memory_high = 3 << 20;
    f->config.swap_max = 4 << 20;
    const struct rt_hugepages huge[] = { { "2MB", 8 << 20, true }, { "1GB", 0, false } };
    f->config.hugepages = huge;
    f->config.n_hugepages = ARRAY_LEN(huge);
    f->config.cpus = "2-3";
    f->config.mems = "0";
    json_auto_t *all = build(f);
    expect(all, "linux.resources.unified",
           "{\"memory.min\":\"1048576\",\"memory.low\":\"2097152\",\"memory.high\":\"3145728\","
           "\"hugetlb.2MB.rsvd.max\":\"8388608\",\"memory.swap.max\":\"4194304\"}");
    expect(all, "linux.resources.cpu", "{\"cpus\":\"2-3\",\"mems\":\"0\"}");
}

static void host_and_shared_pid_namespaces(void **state)
{
    struct fixture *f = *state;

    f->config.host_pid = true;
    json_auto_t *host = build(f);
    expect(host, "linux.namespaces", "[{\"type\":\"mount\"}]");
    f->config.host_pid = false;
    f->config.pidns = "/proc/7/ns/pid";
    json_auto_t *shared = build(f);
    expect(shared, "linux.namespaces",
           "[{\"type\":\"mount\"},{\"type\":\"pid\",\"path\":\"/proc/7/ns/pid\"}]");
}

static void oom_score_is_raised_to_ours_where_it_cannot_be_lowered(void **state)
{
    struct fixture *f = *state;

    f->config.oom_score_adj = -997;
    f->rt.host.features.own_oom_score_adj = -5;
    json_auto_t *raised = build(f);
    expect(raised, "process.oomScoreAdj", "-5");
    f->rt.host.features.lower_oom_score = true;
    json_auto_t *kept = build(f);
    expect(kept, "process.oomScoreAdj", "-997");
}

static void security_switches(void **state)
{
    struct fixture *f = *state;

    f->security.has_allow_privilege_escalation = true;
    f->security.has_read_only_root_filesystem = f->security.read_only_root_filesystem = true;
    f->security.proc_mount = (char *)"Unmasked";
    json_auto_t *s = build(f);
    expect(s, "process.noNewPrivileges", "true");
    expect(s, "root.readonly", "true");
    expect(s, "linux.maskedPaths", "[]");
    expect(s, "linux.readonlyPaths", "[]");
}

static void privileged_has_everything_but_a_cgroup_namespace(void **state)
{
    struct fixture *f = *state;
    const json_t *d;
    size_t i, null_devices = 0;

    f->rt.host.cgroup_v2 = true;
    f->security.has_privileged = f->security.privileged = true;
    json_auto_t *s = build(f);
    expect(s, "linux.maskedPaths", "[]");
    expect(s, "linux.readonlyPaths", "[]");
    expect(s, "linux.resources.devices", "[{\"allow\":true,\"access\":\"rwm\"}]");
    expect(s, "linux.namespaces", "[{\"type\":\"mount\"},{\"type\":\"pid\"}]");
    assert_int_equal(json_array_size(at(s, "process.capabilities.bounding")), 40);
    json_array_foreach (at(s, "linux.devices"), i, d)
        null_devices += strcmp(json_string_value(json_object_get(d, "path")), "/dev/null") == 0;
    assert_int_equal(null_devices, 1);
}

static void devices_of_plugins_get_a_node_and_a_rule_each(void **state)
{
    struct fixture *f = *state;
    struct rt_device device = { .host_path = "/dev/null",
                                .container_path = "/dev/gpu0",
                                .permissions = "rw" };
    json_t *spec = NULL;
    struct err e = { 0 };

    f->config.devices = &device;
    f->config.n_devices = 1;
    json_auto_t *s = build(f);
    expect(s, "linux.devices",
           "[{\"path\":\"/dev/"
           "gpu0\",\"type\":\"c\",\"major\":1,\"minor\":3,\"fileMode\":438,\"uid\":0,\"gid\":0}]");
    expect(s, "linux.resources.devices",
           "[{\"allow\":false,\"access\":\"rwm\"},"
           "{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":3,\"access\":\"rw\"}]");
    device.permissions = "rx";
    assert_int_equal(rt_spec_build(&f->rt.host, &f->config, f->fd, &spec, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "device /dev/null: permissions \"rx\" are not of r, w and m");
    device.permissions = "r";
    device.host_path = "/proc/self/status";
    assert_int_equal(rt_spec_build(&f->rt.host, &f->config, f->fd, &spec, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "device /proc/self/status: not a device node");
}

static void working_directory_is_the_manifests_or_the_images_and_absolute(void **state)
{
    struct fixture *f = *state;
    json_t *spec = NULL;
    struct err e = { 0 };

    f->image.working_dir = (char *)"/srv";
    f->config.working_dir = "";
    json_auto_t *image = build(f);
    expect(image, "process.cwd", "\"/srv\"");
    f->config.working_dir = "/data";
    json_auto_t *manifest = build(f);
    expect(manifest, "process.cwd", "\"/data\"");
    f->config.working_dir = "tmp";
    assert_int_equal(rt_spec_build(&f->rt.host, &f->config, f->fd, &spec, &e), ERR_UNKNOWN);
    assert_string_equal(e.text, "Cwd must be an absolute path");
}

/* ---- every allocation of the JSON library fails once ----------------------------------------- */

static size_t allowed;

static void *failing_malloc(size_t n)
{
    return allowed > 0 && allowed-- > 0 ? malloc(n) : NULL;
}

static void any_allocation_may_fail_without_a_leak(void **state)
{
    struct fixture *f = *state;
    const struct rt_mount mount = { .source = "/a", .destination = "/a", .propagation = "rslave" };
    const struct rt_device device = { .host_path = "/dev/null",
                                      .container_path = "/dev/x",
                                      .permissions = "rwm" };
    json_t *spec = NULL;
    size_t n;

    f->config.command = &sh;
    f->config.hostname = "h";
    f->config.mounts = &mount;
    f->config.n_mounts = 1;
    f->config.devices = &device;
    f->config.n_devices = 1;
    f->rt.host.cgroup_v2 = true;
    for (n = 0; spec == NULL; n++) {
        struct err e = { 0 };

        assert_true(n < 100000);
        allowed = n;
        json_set_alloc_funcs(failing_malloc, free);
        enum err_code code = rt_spec_build(&f->rt.host, &f->config, f->fd, &spec, &e);
        json_set_alloc_funcs(malloc, free);
        assert_int_equal(code, e.code);
        assert_true((code == ERR_OK) == (spec != NULL));
    }
    assert_true(n > 100);
    json_decref(spec);
}

static void limits_are_the_same_everywhere_and_never_above_the_agents(void **state)
{
    struct rlimit before, locked, low;
    str_auto own = NULL;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before) + getrlimit(RLIMIT_MEMLOCK, &locked), 0);
    locked.rlim_max = locked.rlim_max < 8388608 ? locked.rlim_max : 8388608;
    json_auto_t *usual = build(*state);
    own = str_printf("[{\"type\":\"RLIMIT_NOFILE\",\"soft\":1024,\"hard\":%llu},"
                     "{\"type\":\"RLIMIT_MEMLOCK\",\"soft\":%llu,\"hard\":%llu}]",
                     before.rlim_max < 524288 ? (unsigned long long)before.rlim_max : 524288ULL,
                     (unsigned long long)locked.rlim_max, (unsigned long long)locked.rlim_max);
    expect(usual, "process.rlimits", own);
    if (fork() == 0) { /* lowering the hard limit cannot be undone */
        low = (struct rlimit){ 512, 512 };
        setrlimit(RLIMIT_NOFILE, &low);
        json_auto_t *list = rt_limits_build();
        const json_t *files = json_array_get(list, 0);
        _exit(json_integer_value(json_object_get(files, "soft")) == 512 &&
                      json_integer_value(json_object_get(files, "hard")) == 512
                  ? 0
                  : 1);
    }
    int status = 1;
    wait(&status);
    assert_int_equal(status, 0);
}

static void what_containers_inherit_is_set_as_near_as_it_goes(void **state)
{
    (void)state;
    if (fork() == 0) {
        struct rlimit core = { 0, 4096 }, few = { 100, 4096 }, now;
        bool raised;

        setrlimit(RLIMIT_CORE, &core);
        setrlimit(RLIMIT_NPROC, &few);
        rt_limits_own();
        if (getrlimit(RLIMIT_CORE, &now) != 0 || now.rlim_cur != 0 ||
            (now.rlim_max != 4096 && now.rlim_max != RLIM_INFINITY))
            _exit(1);
        getrlimit(RLIMIT_NPROC, &now); /* a hard limit can be raised with CAP_SYS_RESOURCE only */
        raised = now.rlim_cur == RLIM_INFINITY && now.rlim_max == RLIM_INFINITY;
        if (!raised && (now.rlim_cur != 4096 || now.rlim_max != 4096))
            _exit(2);
        getrlimit(RLIMIT_NOFILE, &now); /* its soft limit is the agent's own affair */
        _exit(now.rlim_cur <= now.rlim_max ? 0 : 3);
    }
    int status = 1;
    wait(&status);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(plain_container_looks_as_under_containerd),
        fixture_test(what_containers_inherit_is_set_as_near_as_it_goes),
        fixture_test(a_user_namespace_is_joined_and_its_users_are_told),
        fixture_test(limits_are_the_same_everywhere_and_never_above_the_agents),
        fixture_test(limits_differ_between_v1_and_v2),
        fixture_test(protection_swap_and_processors_are_the_kernels_own_words),
        fixture_test(host_and_shared_pid_namespaces),
        fixture_test(oom_score_is_raised_to_ours_where_it_cannot_be_lowered),
        fixture_test(security_switches),
        fixture_test(privileged_has_everything_but_a_cgroup_namespace),
        fixture_test(devices_of_plugins_get_a_node_and_a_rule_each),
        fixture_test(working_directory_is_the_manifests_or_the_images_and_absolute),
        fixture_test(any_allocation_may_fail_without_a_leak),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
