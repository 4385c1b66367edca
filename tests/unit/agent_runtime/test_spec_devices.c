/* SPDX-License-Identifier: Apache-2.0 */
/* What the devices of plugins and the edits of CDI put into a specification. */
#include "rt_fixture.h"

#include "agent/runtime/mount/device_nodes.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static char *argv_sh[] = { (char *)"sh" };
static const struct api_strs sh = { .v = argv_sh, .n = 1 };

static enum err_code try_build(struct fixture *f, json_t **ret, struct err *e)
{
    struct arena arena = { 0 };
    struct rt_config edited;
    enum err_code code = rt_edits_add_mounts(&f->config, &arena, &edited, e);

    edited.command = &sh;
    if (code == ERR_OK)
        code = rt_spec_build(&f->rt.host, &edited, f->fd, ret, e);
    arena_done(&arena);
    return code;
}

static json_t *build(struct fixture *f)
{
    json_t *spec = NULL;
    struct err e = { 0 };

    if (try_build(f, &spec, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return spec;
}

static void refused(struct fixture *f, const char *text)
{
    json_t *spec = NULL;
    struct err e = { 0 };

    assert_int_not_equal(try_build(f, &spec, &e), ERR_OK);
    assert_string_equal(e.text, text);
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

#define DENIED "{\"allow\":false,\"access\":\"rwm\"},"
#define RULE(type, major, minor, access)                                                                     \
    "{\"allow\":true,\"type\":\"" type "\",\"major\":" #major ",\"minor\":" #minor ",\"access\":\"" access   \
    "\"}"

/* ---- devices of plugins ---- */

static void the_manifests_environment_wins_over_devices_and_these_over_the_images(void **state)
{
    struct fixture *f = *state;
    char *image_env[] = { (char *)"A=image", (char *)"B=image", (char *)"C=image" };
    const char *device_env[] = { "B=device", "C=device", "D=device", NULL };
    const char *env[] = { "C=pod", "E=pod", NULL };
    const char *edit_env[] = { "E=cdi", "F=cdi" };
    const struct rt_edits edits = { .env = edit_env, .n_env = ARRAY_LEN(edit_env) };

    f->image.env = (struct img_strs){ .v = image_env, .n = ARRAY_LEN(image_env) };
    f->config.device_env = device_env;
    f->config.env = env;
    f->config.edits = &edits;
    json_auto_t *s = build(f);
    expect(s, "process.env",
           "[\"A=image\",\"B=device\",\"C=pod\",\"D=device\",\"E=cdi\",\"F=cdi\","
           "\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\",\"HOME=/\"]");
}

static void a_link_is_followed_and_an_empty_target_is_the_hosts_path(void **state)
{
    struct fixture *f = *state;
    char link[128];
    struct rt_device device = { .host_path = link, .container_path = "/dev/gpu0", .permissions = "mr" };

    snprintf(link, sizeof(link), "%s/link", f->dir);
    assert_int_equal(symlink("/dev/zero", link), 0);
    f->config.devices = &device;
    f->config.n_devices = 1;
    json_auto_t *s = build(f);
    expect(s, "linux.devices",
           "[{\"path\":\"/dev/gpu0\",\"type\":\"c\",\"major\":1,\"minor\":5,\"fileMode\":438,\"uid\":0,"
           "\"gid\":0}]");
    expect(s, "linux.resources.devices", "[" DENIED RULE("c", 1, 5, "mr") "]");
    device = (struct rt_device){ "/dev/null", "", "r" };
    json_auto_t *same = build(f);
    expect(same, "linux.devices",
           "[{\"path\":\"/dev/null\",\"type\":\"c\",\"major\":1,\"minor\":3,\"fileMode\":438,\"uid\":0,"
           "\"gid\":0}]");
}

static void every_node_below_a_folder_is_added(void **state)
{
    struct fixture *f = *state;
    const struct rt_device device = { "/dev/net/..", "/dev/all", "rw" };
    const json_t *node;
    size_t i, found = 0;

    f->config.devices = &device;
    f->config.n_devices = 1;
    json_auto_t *s = build(f);
    json_array_foreach (at(s, "linux.devices"), i, node)
        found += strcmp(json_string_value(json_object_get(node, "path")), "/dev/all/null") == 0;
    assert_int_equal(found, 1);
    assert_int_equal(json_array_size(at(s, "linux.devices")) + 1,
                     json_array_size(at(s, "linux.resources.devices")));
}

static void errors_name_the_device(void **state)
{
    struct fixture *f = *state;
    struct rt_device device = { "/dev/no-such", "/dev/gpu0", "rw" };

    f->config.devices = &device;
    f->config.n_devices = 1;
    refused(f, "device /dev/gpu0: lstat /dev/no-such: no such file or directory");
    device.permissions = "";
    refused(f, "device /dev/no-such: permissions \"\" are not of r, w and m");
    device = (struct rt_device){ "/dev/null", "gpu0", "rw" };
    refused(f, "device \"gpu0\": its path in the container is not absolute");
    device = (struct rt_device){ "/dev/null", "/dev/\xff", "rw" };
    refused(f, "device \"/dev/\xff\": its path in the container is not UTF-8");
}

static void of_two_devices_at_one_path_the_later_one_is_made(void **state)
{
    struct fixture *f = *state;
    const struct rt_device devices[] = { { "/dev/null", "/dev/x", "r" }, { "/dev/zero", "/dev/x", "rw" } };

    f->config.devices = devices;
    f->config.n_devices = 2;
    json_auto_t *s = build(f);
    expect(
        s, "linux.devices",
        "[{\"path\":\"/dev/x\",\"type\":\"c\",\"major\":1,\"minor\":5,\"fileMode\":438,\"uid\":0,\"gid\":0}"
        "]");
    expect(s, "linux.resources.devices", "[" DENIED RULE("c", 1, 5, "rw") "]");
}

static void a_privileged_container_has_each_path_once(void **state)
{
    struct fixture *f = *state;
    const struct rt_device devices[] = { { "/dev/zero", "/dev/null", "r" }, { "/dev/zero", "/dev/x", "r" } };
    const json_t *node;
    size_t i, found = 0;

    f->security.has_privileged = f->security.privileged = true;
    f->config.devices = devices;
    f->config.n_devices = 2;
    json_auto_t *s = build(f);
    json_array_foreach (at(s, "linux.devices"), i, node) {
        const char *path = json_string_value(json_object_get(node, "path"));

        if (strcmp(path, "/dev/null") == 0 || strcmp(path, "/dev/x") == 0) {
            found++;
            assert_int_equal(json_integer_value(json_object_get(node, "minor")), 5);
        }
    }
    assert_int_equal(found, 2);
    expect(s, "linux.resources.devices", "[{\"allow\":true,\"access\":\"rwm\"}]");
}

static void annotations_are_passed_on_and_the_first_of_a_name_is_used(void **state)
{
    struct fixture *f = *state;
    const struct rt_annotation annotations[] = { { "example.com/a", "1" },
                                                 { "example.com/b", "2" },
                                                 { "example.com/a", "3" } };

    f->config.annotations = annotations;
    f->config.n_annotations = ARRAY_LEN(annotations);
    json_auto_t *s = build(f);
    expect(s, "annotations", "{\"example.com/a\":\"1\",\"example.com/b\":\"2\"}");
}

/* ---- CDI ---- */

static void nodes_of_cdi_are_as_on_the_host_where_they_do_not_say(void **state)
{
    struct fixture *f = *state;
    const struct rt_device device = { "/dev/null", "/dev/a", "r" };
    const struct rt_edit_node nodes[] = {
        { .path = "/dev/a", .host_path = "/dev/zero" },
        { .path = "/dev/b", .host_path = "/dev/no-such", .type = 'b', .major = 8, .minor = 1 },
        { .path = "/dev/c",
          .host_path = "/dev/no-such",
          .type = 'u',
          .major = 10,
          .permissions = "",
          .has_file_mode = true,
          .file_mode = 0600,
          .has_uid = true,
          .uid = 7,
          .has_gid = true },
        { .path = "/dev/p", .host_path = "/dev/no-such", .type = 'p' },
    };
    const struct rt_edits edits = { .nodes = nodes, .n_nodes = ARRAY_LEN(nodes) };

    f->config.devices = &device;
    f->config.n_devices = 1;
    f->config.edits = &edits;
    json_auto_t *s = build(f);
    expect(
        s, "linux.devices",
        "[{\"path\":\"/dev/a\",\"type\":\"c\",\"major\":1,\"minor\":5,\"fileMode\":438},"
        "{\"path\":\"/dev/b\",\"type\":\"b\",\"major\":8,\"minor\":1},"
        "{\"path\":\"/dev/c\",\"type\":\"c\",\"major\":10,\"minor\":0,\"fileMode\":384,\"uid\":7,\"gid\":0},"
        "{\"path\":\"/dev/p\",\"type\":\"p\"}]");
    expect(s, "linux.resources.devices", "[" DENIED RULE("c", 1, 5, "rwm") "," RULE("b", 8, 1, "rwm") "]");
    f->security.has_run_as_user = true;
    f->security.run_as_user = 12;
    json_auto_t *user = build(f);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(at(user, "linux.devices"), 0), "uid")),
                     12);
}

static void nodes_of_cdi_that_are_not_there_are_named(void **state)
{
    struct fixture *f = *state;
    struct rt_edit_node node = { .path = "/dev/a", .host_path = "/dev/no-such" };
    const struct rt_edits edits = { .nodes = &node, .n_nodes = 1 };

    f->config.edits = &edits;
    refused(f, "failed to stat CDI host device \"/dev/no-such\": no such file or directory");
    node.host_path = "/proc/self/status";
    refused(f, "failed to stat CDI host device \"/proc/self/status\": not a device node");
    node = (struct rt_edit_node){ .path = "/dev/zero", .type = 'b' };
    refused(f, "CDI device (\"/dev/zero\", \"/dev/zero\"), host type mismatch (b, c)");
}

static void mounts_of_cdi_replace_others_at_their_place(void **state)
{
    struct fixture *f = *state;
    const struct rt_mount volumes[] = {
        { .volume = "v", .source = "/a", .destination = "/mnt//x/", .propagation = "rprivate" },
        { .volume = "w", .source = "/b", .destination = "/mnt/x/y", .propagation = "rprivate" },
    };
    const char *const options[] = { "ro", "nosuid" }, *const bind[] = { "bind", "ro" };
    const struct rt_edit_mount mounts[] = {
        { .source = "/c", .destination = "/mnt/x", .options = options, .n_options = 2 },
        { .source = "tmpfs", .destination = "/t", .type = "tmpfs", .options = options, .n_options = 1 },
        { .source = "/d", .destination = "/d", .type = "none", .options = bind, .n_options = 2 },
    };
    const struct rt_edits edits = { .mounts = mounts, .n_mounts = ARRAY_LEN(mounts) };
    const json_t *m;
    size_t i;
    str_auto got = strdup("");

    f->config.mounts = volumes;
    f->config.n_mounts = 2;
    f->config.edits = &edits;
    json_auto_t *s = build(f);
    json_array_foreach (at(s, "mounts"), i, m)
        if (!str_starts(json_string_value(json_object_get(m, "destination")), "/dev") &&
            !str_starts(json_string_value(json_object_get(m, "destination")), "/sys") &&
            !str_starts(json_string_value(json_object_get(m, "destination")), "/proc")) {
            str_auto one = json_dumps(m, JSON_COMPACT);
            char *more = str_printf("%s%s\n", got, one);

            free(got);
            got = more;
        }
    assert_string_equal(
        got, "{\"destination\":\"/t\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"ro\"]}\n"
             "{\"destination\":\"/d\",\"type\":\"bind\",\"source\":\"/d\",\"options\":[\"bind\",\"ro\"]}\n"
             "{\"destination\":\"/mnt/x\",\"type\":\"bind\",\"source\":\"/c\",\"options\":[\"rbind\",\"ro\","
             "\"nosuid\"]}\n"
             "{\"destination\":\"/mnt/x/y\",\"type\":\"bind\",\"source\":\"/"
             "b\",\"options\":[\"rbind\",\"rprivate\","
             "\"rw\"]}\n");
}

static void hooks_of_all_kinds_and_groups_are_added(void **state)
{
    struct fixture *f = *state;
    const char *const args[] = { "tool", "--yes" }, *const env[] = { "K=V" };
    struct rt_edit_hook hooks[RT_HOOK_KINDS + 1];
    const uint32_t gids[] = { 44, 0, 109, 44 };
    const struct rt_edits edits = {
        .hooks = hooks, .n_hooks = ARRAY_LEN(hooks), .gids = gids, .n_gids = ARRAY_LEN(gids)
    };

    for (size_t i = 0; i < RT_HOOK_KINDS; i++)
        hooks[i] = (struct rt_edit_hook){ .kind = (enum rt_hook_kind)i, .path = "/bin/tool" };
    hooks[RT_HOOK_KINDS] = (struct rt_edit_hook){ .kind = RT_HOOK_CREATE_CONTAINER,
                                                  .path = "/bin/other",
                                                  .args = args,
                                                  .n_args = 2,
                                                  .env = env,
                                                  .n_env = 1,
                                                  .timeout_s = 3 };
    f->config.edits = &edits;
    json_auto_t *s = build(f);
    expect(s, "hooks",
           "{\"prestart\":[{\"path\":\"/bin/tool\"}],\"createRuntime\":[{\"path\":\"/bin/tool\"}],"
           "\"createContainer\":[{\"path\":\"/bin/tool\"},{\"path\":\"/bin/"
           "other\",\"args\":[\"tool\",\"--yes\"],"
           "\"env\":[\"K=V\"],\"timeout\":3}],\"startContainer\":[{\"path\":\"/bin/tool\"}],"
           "\"poststart\":[{\"path\":\"/bin/tool\"}],\"poststop\":[{\"path\":\"/bin/tool\"}]}");
    expect(s, "process.user.additionalGids", "[0,44,109]");
    f->config.userns = "/run/user";
    f->config.n_ids = 65536;
    const uint32_t far = 65536;
    const struct rt_edits beyond = { .gids = &far, .n_gids = 1 };
    f->config.edits = &beyond;
    refused(f, "user or group 65536: with hostUsers: false a pod has users and groups 0 to 65535");
}

static void a_runtime_that_would_ignore_an_edit_is_not_given_it(void **state)
{
    struct fixture *f = *state;
    const struct rt_edit_net_device net = { "eth7", "data0" };
    const char *const schemata[] = { "L3:0=f" };
    struct rt_edit_rdt rdt = { .clos_id = "gold", .l3_cache_schema = "L3:0=f", .mem_bw_schema = "MB:0=50" };
    struct rt_edits edits = { .net_devices = &net, .n_net_devices = 1 };

    f->config.edits = &edits;
    refused(f, "CDI network device \"eth7\": crun 1.8.1 cannot move network devices into a container");
    f->rt.host.features.net_devices = true;
    edits.rdt = &rdt;
    json_auto_t *s = build(f);
    expect(s, "linux.netDevices", "{\"eth7\":{\"name\":\"data0\"}}");
    expect(s, "linux.intelRdt",
           "{\"closID\":\"gold\",\"l3CacheSchema\":\"L3:0=f\",\"memBwSchema\":\"MB:0=50\"}");
    rdt = (struct rt_edit_rdt){ .enable_monitoring = true };
    refused(f, "CDI edit intelRdt.enableMonitoring: crun 1.8.1 does not have it");
    rdt = (struct rt_edit_rdt){ .schemata = schemata, .n_schemata = 1, .enable_monitoring = true };
    refused(f, "CDI edit intelRdt.schemata: crun 1.8.1 does not have it");
    f->rt.host.features.rdt_schemata = true;
    json_auto_t *newer = build(f);
    expect(newer, "linux.intelRdt", "{\"schemata\":[\"L3:0=f\"],\"enableMonitoring\":true}");
}

/* ---- hostUsers: false ---- */

static void nodes_of_their_own_belong_to_the_pods_users(void **state)
{
    struct fixture *f = *state;
    const struct rt_device device = { "/dev/zero", "/dev/x", "rw" };
    const struct rt_edit_node node = { .path = "/dev/y",
                                       .host_path = "/dev/null",
                                       .has_gid = true,
                                       .gid = 44,
                                       .has_file_mode = true,
                                       .file_mode = 0660 };
    const struct rt_edits edits = { .nodes = &node, .n_nodes = 1 };
    struct arena arena = { 0 };
    struct rt_config made;
    struct err e = { 0 };
    struct stat x, y;
    char path[128];

    if (geteuid() != 0)
        skip();
    f->config.devices = &device;
    f->config.n_devices = 1;
    f->config.edits = &edits;
    f->config.userns = "/run/user";
    f->config.first_id = 131072;
    f->config.n_ids = 65536;
    if (device_nodes_make(&f->config, f->fd, f->dir, &arena, &made, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(made.n_mounts, 2);
    assert_string_equal(made.mounts[1].destination, "/dev/y");
    assert_int_equal(stat(made.mounts[0].source, &x) + stat(made.mounts[1].source, &y), 0);
    made.command = &sh;
    json_t *spec = NULL;
    assert_int_equal(rt_spec_build(&f->rt.host, &made, f->fd, &spec, &e), ERR_OK);
    expect(spec, "linux.devices", "[]");
    expect(spec, "linux.resources.devices", "[" DENIED RULE("c", 1, 5, "rw") "," RULE("c", 1, 3, "rwm") "]");
    json_decref(spec);
    arena_done(&arena);
    snprintf(path, sizeof(path), "%s/dev", f->dir);
    assert_int_equal(umount2(path, MNT_DETACH), 0);
    assert_true(S_ISCHR(x.st_mode) && x.st_rdev == makedev(1, 5) && y.st_rdev == makedev(1, 3));
    assert_int_equal(x.st_mode & 0777, 0666);
    assert_int_equal(y.st_mode & 0777, 0660);
    assert_int_equal(x.st_uid, 131072);
    assert_int_equal(y.st_gid, 131072 + 44);
}

/* ---- every allocation of the JSON library fails once ---- */

static size_t allowed;

static void *failing_malloc(size_t n)
{
    return allowed > 0 && allowed-- > 0 ? malloc(n) : NULL;
}

static void any_allocation_may_fail_without_a_leak(void **state)
{
    struct fixture *f = *state;
    const struct rt_device device = { "/dev/null", "/dev/x", "rwm" };
    const struct rt_edit_node node = { .path = "/dev/y", .host_path = "/dev/null" };
    const char *const texts[] = { "K=V" };
    const struct rt_edit_mount mount = {
        .source = "/a", .destination = "/a", .options = texts, .n_options = 1
    };
    const struct rt_edit_hook hook = {
        .path = "/h", .args = texts, .n_args = 1, .env = texts, .n_env = 1, .timeout_s = 1
    };
    const struct rt_edit_net_device net = { "a", "b" };
    const struct rt_edit_rdt rdt = { "a", "b", "c", texts, 1, true };
    const uint32_t gid = 5;
    const struct rt_annotation annotation = { "a", "b" };
    const struct rt_edits edits = { .env = texts,
                                    .nodes = &node,
                                    .mounts = &mount,
                                    .hooks = &hook,
                                    .net_devices = &net,
                                    .gids = &gid,
                                    .n_env = 1,
                                    .n_nodes = 1,
                                    .n_mounts = 1,
                                    .n_hooks = 1,
                                    .n_net_devices = 1,
                                    .n_gids = 1,
                                    .rdt = &rdt };
    json_t *spec = NULL;
    size_t n;

    f->rt.host.features.net_devices = f->rt.host.features.rdt_schemata = true;
    f->config.devices = &device;
    f->config.n_devices = 1;
    f->config.annotations = &annotation;
    f->config.n_annotations = 1;
    f->config.edits = &edits;
    for (n = 0; spec == NULL; n++) {
        struct err e = { 0 };

        assert_true(n < 100000);
        allowed = n;
        json_set_alloc_funcs(failing_malloc, free);
        enum err_code code = try_build(f, &spec, &e);
        json_set_alloc_funcs(malloc, free);
        assert_int_equal(code, e.code);
        assert_true((code == ERR_OK) == (spec != NULL));
    }
    assert_true(n > 100);
    json_decref(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(the_manifests_environment_wins_over_devices_and_these_over_the_images),
        fixture_test(a_link_is_followed_and_an_empty_target_is_the_hosts_path),
        fixture_test(every_node_below_a_folder_is_added),
        fixture_test(errors_name_the_device),
        fixture_test(of_two_devices_at_one_path_the_later_one_is_made),
        fixture_test(a_privileged_container_has_each_path_once),
        fixture_test(annotations_are_passed_on_and_the_first_of_a_name_is_used),
        fixture_test(nodes_of_cdi_are_as_on_the_host_where_they_do_not_say),
        fixture_test(nodes_of_cdi_that_are_not_there_are_named),
        fixture_test(mounts_of_cdi_replace_others_at_their_place),
        fixture_test(hooks_of_all_kinds_and_groups_are_added),
        fixture_test(a_runtime_that_would_ignore_an_edit_is_not_given_it),
        fixture_test(nodes_of_their_own_belong_to_the_pods_users),
        fixture_test(any_allocation_may_fail_without_a_leak),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
