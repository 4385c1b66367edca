/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image store with the real coracle-unpack, skopeo and a registry (Debian's docker-registry) on this
 * machine's loopback, in a network namespace of its own.  Needs root.
 */
#include "tests/unit/agent_image/image_helper.h"

#include "base/netlink.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

struct real {
    struct world w;
    char unpack[300], conf[300], arch[80], id[80];
    pid_t registries[2];
    const char *missing; /* why nothing can be tested */
};

static struct real real;

__attribute__((format(printf, 2, 3))) static int shell(bool must, const char *fmt, ...)
{
    char command[4000];
    va_list ap;
    int status;

    va_start(ap, fmt);
    vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    status = system(command);
    if (must && status != 0)
        fail_msg("%s: status %d", command, status);
    return status;
}

/* Output's last word of a command. */
__attribute__((format(printf, 2, 3))) static void word(char ret[80], const char *fmt, ...)
{
    char command[1000];
    va_list ap;
    FILE *f;

    va_start(ap, fmt);
    vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    f = popen(command, "r");
    assert_non_null(f);
    ret[0] = '\0';
    while (fscanf(f, "%79s", ret) == 1)
        ;
    assert_int_equal(pclose(f), 0);
}

static void wait_listening(uint16_t port)
{
    const struct sockaddr_in to = { .sin_family = AF_INET,
                                    .sin_port = htons(port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    for (int tries = 0; tries < 2000; tries++) {
        fd_auto fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
            return;
        usleep(10000);
    }
    fail_msg("nobody listens on port %d", port);
}

static void start_registry(int n, const char *auth)
{
    const char *const names[] = { "open", "closed" };

    shell(true, "mkdir %s/%s", real.w.dir, names[n]);
    write_file(&real.w, n == 0 ? "open.yml" : "closed.yml", 0600,
               "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: "
               "{rootdirectory: %s/%s}}\n"
               "http: {addr: \"127.0.0.1:%d\"}\n%s",
               real.w.dir, names[n], 5000 + n, auth);
    real.registries[n] = fork();
    assert_true(real.registries[n] >= 0);
    if (real.registries[n] == 0) {
        char config[300], log[300];

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        snprintf(config, sizeof(config), "%s/%s.yml", real.w.dir, names[n]);
        snprintf(log, sizeof(log), "%s/%s.log", real.w.dir, names[n]);
        if (freopen(log, "w", stderr) != NULL && freopen(log, "w", stdout) != NULL)
            execl("/usr/bin/docker-registry", "docker-registry", "serve", config, NULL);
        _exit(1);
    }
    wait_listening((uint16_t)(5000 + n));
}

/* An index for two platforms, made of the image in `layout`. */
static const char two_platforms[] =
    "set -e; cd %s/layout\n"
    "put() { d=$(sha256sum < $1); d=${d%%%% *}; s=$(wc -c < $1); mv $1 blobs/sha256/$d; }\n"
    "m=$(sed 's/.*\"digest\":\"sha256:\\([0-9a-f]*\\)\".*/\\1/' index.json); ms=$(wc -c < blobs/sha256/$m)\n"
    "c=$(sed 's/.*\"config\":{[^}]*sha256:\\([0-9a-f]*\\).*/\\1/' blobs/sha256/$m); cs=$(wc -c < "
    "blobs/sha256/$c)\n"
    "sed 's/\"architecture\":\"[a-z0-9]*\"/\"architecture\":\"mips\"/' blobs/sha256/$c > c2; put c2; c2=$d; "
    "c2s=$s\n"
    "sed \"s/$c/$c2/; s/\\\"size\\\":$cs}/\\\"size\\\":$c2s}/\" blobs/sha256/$m > m2; put m2; m2=$d; m2s=$s\n"
    "t=application/vnd.oci.image.manifest.v1+json\n"
    "printf '{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.index.v1+json\",\"manifests\":["
    "{\"mediaType\":\"%%s\",\"digest\":\"sha256:%%s\",\"size\":%%d,\"platform\":{\"os\":\"linux\","
    "\"architecture\":\"mips\"}},"
    "{\"mediaType\":\"%%s\",\"digest\":\"sha256:%%s\",\"size\":%%d,\"platform\":{\"os\":\"linux\","
    "\"architecture\":\"%s\"}}]}' "
    "$t $m2 $m2s $t $m $ms > i2; put i2\n"
    "printf "
    "'{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"application/"
    "vnd.oci.image.index.v1+json\",\"digest\":\"sha256:%%s\","
    "\"size\":%%d,\"annotations\":{\"org.opencontainers.image.ref.name\":\"two\"}}]}' $d $s > index.json\n";

static int set_up(void **state)
{
    static const char *const programs[] = { "skopeo", "docker-registry", "busybox" };
    struct world *w = &real.w;
    struct err e = { 0 };
    char path[300];
    ssize_t n;

    (void)state;
    if (scratch_make((void **)&w->dir) != 0 || uv_loop_init(&w->loop) != 0)
        return -1;
    n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    assert_true(n > 0);
    path[n] = '\0';
    for (int i = 0; i < 4; i++) /* <build>/tests/unit/agent_image/test_image_real */
        *strrchr(path, '/') = '\0';
    snprintf(real.unpack, sizeof(real.unpack), "%.270s/coracle-unpack", path);

    if (geteuid() != 0)
        real.missing = "needs root";
    else if (access(real.unpack, X_OK) != 0)
        real.missing = "coracle-unpack is not built";
    else if (access("examples/mkimage", X_OK) != 0)
        real.missing = "not started in the top folder";
    for (size_t i = 0; i < ARRAY_LEN(programs); i++)
        if (real.missing == NULL && shell(false, "command -v %s > /dev/null", programs[i]) != 0)
            real.missing = programs[i];
    if (real.missing == NULL && unshare(CLONE_NEWNET) != 0)
        real.missing = "no network namespaces";
    if (real.missing != NULL)
        return 0;

    if (nl_link_up("lo", &e) != ERR_OK)
        fail_msg("%s", e.text);
    write_file(w, "registries.conf", 0600,
               "[[registry]]\nlocation = \"127.0.0.1:5000\"\ninsecure = true\n"
               "[[registry]]\nlocation = \"127.0.0.1:5001\"\ninsecure = true\n");
    snprintf(real.conf, sizeof(real.conf), "%s/registries.conf", w->dir);
    shell(true, "examples/mkimage %s/busybox.tar localhost/busybox:1 > %s/made", w->dir, w->dir);
    word(real.id, "cat %s/made", w->dir);
    shell(true, "mkdir %s/layout && tar -C %s/layout -xf %s/busybox.tar", w->dir, w->dir, w->dir);
    word(real.arch, "sed 's/.*\"architecture\":\"\\([a-z0-9]*\\)\".*/\\1/' %s/layout/index.json", w->dir);
    write_file(w, "users", 0600, "user:$2b$04$GMHPsjJIEiWqWhh0zdsWouQcgM/13iinwIwXXkqS9DcYSHejGDy62\n");
    start_registry(0, "");
    write_file(w, "auth", 0600, "auth: {htpasswd: {realm: test, path: %s/users}}\n", w->dir);
    {
        char *auth = read_file(w, "auth");

        start_registry(1, auth);
        free(auth);
    }
    shell(true,
          "skopeo --registries-conf %s copy -q --insecure-policy oci-archive:%s/busybox.tar "
          "docker://127.0.0.1:5000/oci:1",
          real.conf, w->dir);
    shell(true,
          "skopeo --registries-conf %s copy -q --insecure-policy -f v2s2 oci-archive:%s/busybox.tar "
          "docker://127.0.0.1:5000/v2s2:1",
          real.conf, w->dir);
    shell(true,
          "skopeo --registries-conf %s copy -q --insecure-policy --dest-creds user:geheim "
          "oci-archive:%s/busybox.tar docker://127.0.0.1:5001/secret:1",
          real.conf, w->dir);
    write_file(w, "two.sh", 0700, two_platforms, w->dir, real.arch);
    shell(true,
          "sh %s/two.sh && skopeo --registries-conf %s copy -q --insecure-policy --all oci:%s/layout:two "
          "docker://127.0.0.1:5000/two:1",
          w->dir, real.conf, w->dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        if (real.registries[i] > 0) {
            kill(real.registries[i], SIGKILL);
            waitpid(real.registries[i], NULL, 0);
        }
    uv_loop_close(&real.w.loop);
    return scratch_remove((void **)&real.w.dir);
}

static int open_real(void **state)
{
    struct world *w = &real.w;
    const struct img_store_options o = { .loop = &w->loop,
                                         .dir = w->store_dir,
                                         .unpack_path = real.unpack,
                                         .skopeo_path = "/usr/bin/skopeo",
                                         .tmpfs_dir = w->dir,
                                         .ops_cgroup_fd = -1,
                                         .registries_conf = real.conf };
    struct err e = { 0 };

    *state = w;
    w->added[0] = '\0';
    snprintf(w->store_dir, sizeof(w->store_dir), "%s/images", w->dir);
    if (img_store_open(&w->store, &o, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return 0;
}

static int close_real(void **state)
{
    struct err e = { 0 };

    (void)state;
    close_store(&real.w);
    return fs_remove_tree(AT_FDCWD, real.w.store_dir, &e) == ERR_OK ? 0 : -1;
}

#define NEED_ALL()                                                                                           \
    do {                                                                                                     \
        if (real.missing != NULL)                                                                            \
            SKIP(real.missing);                                                                              \
    } while (0)

static void check_image(struct world *w, const char *name)
{
    struct img_image *i = img_lookup(w->store, name);
    char path[500];
    struct stat st;

    if (i == NULL)
        fail_msg("%s is not here", name);
    assert_string_equal(i->id, real.id);
    assert_int_equal(i->layer_dirs.n, 1);
    snprintf(path, sizeof(path), "%s/bin/busybox", i->layer_dirs.v[0]);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    snprintf(path, sizeof(path), "%s/tmp", i->layer_dirs.v[0]);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 01777);
    assert_string_equal(i->env.v[0], "PATH=/bin");
    assert_string_equal(i->cmd.v[0], "/bin/sh");
    assert_null(i->user);
    img_unref(i);
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void the_archive_of_mkimage_is_imported(void **state)
{
    struct world *w = *state;
    char path[400];

    NEED_ALL();
    snprintf(path, sizeof(path), "%s/busybox.tar", w->dir);
    bring(w, path, NULL);
    check_image(w, "localhost/busybox:1");
    bring(w, path, "again");
    check_image(w, "docker.io/library/again:latest");
    assert_int_equal(count_entries(w, "layers"), 1);
}

static void pulls_keep_ids_and_digests(void **state)
{
    static const char *const repositories[] = { "oci", "v2s2", "two" };
    struct world *w = *state;

    NEED_ALL();
    for (size_t i = 0; i < ARRAY_LEN(repositories); i++) {
        char name[200], digest[80];

        snprintf(name, sizeof(name), "docker://127.0.0.1:5000/%s:1", repositories[i]);
        bring(w, name, NULL);
        check_image(w, name + strlen("docker://"));
        word(digest, "skopeo --registries-conf %s inspect --raw %s | sha256sum | cut -c1-64", real.conf,
             name);
        snprintf(name, sizeof(name), "127.0.0.1:5000/%s@sha256:%s", repositories[i], digest);
        check_image(w, name); /* the registry's digest, of the index for two platforms */
    }
    assert_int_equal(count_entries(w, "layers"), 1);
}

static void several_pulls_at_once_share_what_they_fetch(void **state)
{
    struct world *w = *state;
    struct bring t[4];

    NEED_ALL();
    start(w, &t[0], "docker://127.0.0.1:5000/oci:1", NULL);
    start(w, &t[1], "docker://127.0.0.1:5000/v2s2:1", NULL);
    start(w, &t[2], "docker://127.0.0.1:5000/two:1", NULL);
    start(w, &t[3], "docker://127.0.0.1:5000/oci:1", NULL);
    for (int i = 0; i < 4; i++) {
        wait_for(w, &t[i]);
        if (t[i].result.code != ERR_OK)
            fail_msg("%s", t[i].result.text);
        img_unref(t[i].image);
    }
    check_image(w, "127.0.0.1:5000/two:1");
    assert_int_equal(count_entries(w, "refs"), 3);
}

static void a_pull_by_digest_needs_no_tag(void **state)
{
    struct world *w = *state;
    char name[200], digest[80];

    NEED_ALL();
    word(digest,
         "skopeo --registries-conf %s inspect --raw docker://127.0.0.1:5000/oci:1 | sha256sum | cut -c1-64",
         real.conf);
    snprintf(name, sizeof(name), "docker://127.0.0.1:5000/oci@sha256:%s", digest);
    bring(w, name, NULL);
    check_image(w, name + strlen("docker://"));
}

static void what_the_registry_lacks_is_not_found(void **state)
{
    struct world *w = *state;
    struct bring t;

    NEED_ALL();
    start(w, &t, "docker://127.0.0.1:5000/oci:2", NULL);
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_NOT_FOUND);
    assert_true(str_starts(t.result.text, "pull 127.0.0.1:5000/oci:2: "));
    assert_non_null(strstr(t.result.text, "manifest unknown"));
    start(w, &t, "docker://127.0.0.1:5002/oci:2", NULL);
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_UNAVAILABLE);
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void credentials_open_a_closed_registry(void **state)
{
    struct world *w = *state;
    struct bring t = { 0 };

    NEED_ALL();
    start(w, &t, "docker://127.0.0.1:5001/secret:1", NULL);
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_UNAUTHENTICATED);
    t = (struct bring){ 0 };
    img_bring_start_auth(&t.b, w->store, "docker://127.0.0.1:5001/secret:1", NULL,
                         "{\"auths\":{\"127.0.0.1:5001\":{\"auth\":\"dXNlcjpnZWhlaW0=\"}}}", on_brought, &t);
    wait_for(w, &t);
    if (t.result.code != ERR_OK)
        fail_msg("%s", t.result.text);
    img_unref(t.image);
    check_image(w, "127.0.0.1:5001/secret:1");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_real, close_real)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_archive_of_mkimage_is_imported),          TEST(pulls_keep_ids_and_digests),
        TEST(several_pulls_at_once_share_what_they_fetch), TEST(a_pull_by_digest_needs_no_tag),
        TEST(what_the_registry_lacks_is_not_found),        TEST(credentials_open_a_closed_registry),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
