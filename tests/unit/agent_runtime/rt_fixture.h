/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime object without processes behind it, and a configuration with everything that is always given. */
#ifndef TESTS_RT_FIXTURE_H
#define TESTS_RT_FIXTURE_H
#include "agent/runtime/container_internal.h"
#include "agent/runtime/spec/internal.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define FIXTURE_ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct fixture {
    char dir[64]; /* stands for the root file system, the run folder, ... */
    int fd;
    struct rt rt;
    struct img_image image;
    struct api_security security;
    struct api_pod_security pod_security;
    struct rt_handler crun;
    struct rt_config config;
};

static inline struct fixture *fixture_new(void)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->dir, sizeof(f->dir), "/tmp/coracle-rt-unit-XXXXXX");
    if (mkdtemp(f->dir) == NULL)
        abort();
    f->fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f->crun = (struct rt_handler){ .name = (char *)"",
                                   .program = (char *)"/usr/bin/crun",
                                   .features = { .runtime_name = "crun", .runtime_version = "1.8.1" } };
    f->rt = (struct rt){ .run_dir = f->dir,
                         .state_dir = f->dir,
                         .conmon_path = (char *)"/usr/bin/conmon",
                         .handlers = &f->crun,
                         .host.seccomp_profile = (char *)"/nonexistent/seccomp.json",
                         .host.features = { .runtime_name = "crun", .runtime_version = "1.8.1" },
                         .host.own_caps = UINT64_C(0x1fffeffffff) };
    f->image = (struct img_image){ .refs = 1, .id = (char *)"sha256:00" };
    f->config = (struct rt_config){
        .id = FIXTURE_ID,
        .pod_uid = "u-1",
        .pod_namespace = "default",
        .pod_name = "web",
        .container_name = "main",
        .image = &f->image,
        .security = &f->security,
        .pod_security = &f->pod_security,
        .cgroup_path = "/kubepods/podu-1/" FIXTURE_ID,
        .cpu_shares = -1,
        .cpu_quota_us = -1,
        .memory_limit = -1,
        .log_path = "/var/log/pods/x/0.log",
    };
    return f;
}

static inline int fixture_set_up(void **state)
{
    *state = fixture_new();
    return 0;
}

static inline int fixture_tear_down(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    close(f->fd);
    if (fs_remove_tree(AT_FDCWD, f->dir, &e) != ERR_OK)
        print_message("%s\n", e.text);
    free(f);
    return 0;
}

static inline void fixture_write(struct fixture *f, const char *path, const char *text)
{
    char full[512], *slash;
    struct err e = { 0 };

    snprintf(full, sizeof(full), "%s/%s", f->dir, path);
    slash = strrchr(full, '/');
    *slash = '\0';
    assert_int_equal(fs_mkdirs(full, 0755, &e), ERR_OK);
    *slash = '/';
    assert_int_equal(fs_replace_at(AT_FDCWD, full, text, strlen(text), 0644, false, &e), ERR_OK);
}

#define fixture_test(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)
#endif
