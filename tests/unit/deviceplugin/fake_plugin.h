/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_plugin - for tests of plugins.h: the node's side with an inventory, and plugins that are servers of
 * our own gRPC on real sockets, in the same process and loop.
 */
#ifndef TESTS_UNIT_DEVICEPLUGIN_FAKE_PLUGIN_H
#define TESTS_UNIT_DEVICEPLUGIN_FAKE_PLUGIN_H
#include "base/boot_timer.h"
#include "base/grpc/client.h"
#include "base/grpc/server.h"
#include "base/scope.h"
#include "deviceplugin/plugin/counts.h"
#include "deviceplugin/plugin/plugins.h"
#include "tests/unit/base/helper.h"
#include "tests/unit/deviceplugin/wire_fixtures.h"

#include <stdlib.h>

#define R "example.com/dev"
#define WIRE(name) ((struct grpc_bytes){ wire_##name, wire_##name##_n })
enum { DEADLINE_MS = 20000 };

enum behaviour { ANSWERS, FAILS, HANGS, ANSWERS_GARBAGE, ANSWERS_NOTHING, DIES };

struct fake {
    struct grpc_server *server;
    uv_loop_t *loop;
    char path[128];
    struct grpc_bytes options, info, answer; /* what it answers */
    enum behaviour on_options, on_list, on_call, on_info;
    struct grpc_request *stream; /* ListAndWatch, while it is open */
    struct grpc_request *held;   /* a call that hangs, until it is cancelled */
    unsigned asked_options, asked_list, asked_calls, asked_info, told;
    uint8_t request[4096]; /* of the last call of Allocate and its like, or NotifyRegistrationStatus */
    size_t n_request;
};

struct fixture {
    uv_loop_t loop;
    char dir[96], registry[96];
    char scratch[64];
    struct boot_timers *timers;
    struct dp_inventory *inventory;
    struct dp_plugins *plugins;
    struct dp_plugin_handler handlers[1];
    struct grpc_channel *client; /* of kubelet.sock */
    unsigned changes, problems;
    char problem[600]; /* the last one: "<resource>: <text>" */
    struct err taken;  /* what the handler of another type answers */
    char other[200];   /* what it was told */
    struct entry *offer;
    bool answers_later; /* it leaves the answer to the test */
};

/* ---- waiting ---- */

static inline void fake_on_deadline(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

/* Runs the loop until the condition holds, or fails the test. */
#define WAIT(f, condition)                                                                                   \
    do {                                                                                                     \
        uv_timer_t late_;                                                                                    \
        bool passed_ = false;                                                                                \
        uv_timer_init(&(f)->loop, &late_);                                                                   \
        late_.data = &passed_;                                                                               \
        uv_timer_start(&late_, fake_on_deadline, DEADLINE_MS, 0);                                            \
        while (!(condition) && !passed_)                                                                     \
            uv_run(&(f)->loop, UV_RUN_ONCE);                                                                 \
        uv_close((uv_handle_t *)&late_, NULL);                                                               \
        uv_run(&(f)->loop, UV_RUN_NOWAIT);                                                                   \
        if (passed_)                                                                                         \
            fail_msg("waited in vain for %s; last problem: %s", #condition, (f)->problem);                   \
    } while (0)

/* ---- a plugin ---- */

static inline void fake_die(struct fake *p)
{
    grpc_server_close(p->server);
    p->server = NULL;
    p->stream = p->held = NULL;
}

static inline void fake_on_stream_gone(struct grpc_request *r, void *arg)
{
    struct fake *p = arg;

    if (p->stream == r)
        p->stream = NULL;
    if (p->held == r)
        p->held = NULL;
}

static inline void fake_behave(struct fake *p, struct grpc_request *r, enum behaviour b,
                               struct grpc_bytes answer)
{
    struct grpc_status status = { .code = ERR_INTERNAL, .text = "it does not work" };

    switch (b) {
    case ANSWERS:
        grpc_reply(r, answer);
        return;
    case FAILS:
        grpc_end(r, &status);
        return;
    case HANGS:
        p->held = r;
        grpc_request_on_cancel(r, fake_on_stream_gone, p);
        return;
    case ANSWERS_GARBAGE:
        grpc_reply(r, (struct grpc_bytes){ (const uint8_t *)"\xff\xff\xff", 3 });
        return;
    case ANSWERS_NOTHING:
        grpc_reply(r, (struct grpc_bytes){ 0 });
        return;
    case DIES:
        fake_die(p);
        return;
    }
}

static inline void fake_options(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    struct fake *p = arg;

    (void)message;
    p->asked_options++;
    fake_behave(p, r, p->on_options, p->options);
}

static inline void fake_list(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    struct fake *p = arg;

    (void)message;
    p->asked_list++;
    if (p->on_list == DIES || p->on_list == FAILS) {
        fake_behave(p, r, p->on_list, (struct grpc_bytes){ 0 });
        return;
    }
    p->stream = r;
    grpc_request_on_cancel(r, fake_on_stream_gone, p);
    if (p->on_list == ANSWERS)
        assert_true(grpc_send(r, WIRE(list)));
}

static inline void fake_call(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    struct fake *p = arg;

    p->asked_calls++;
    assert_true(message.n <= sizeof(p->request));
    if (message.n > 0)
        memcpy(p->request, message.p, message.n);
    p->n_request = message.n;
    fake_behave(p, r, p->on_call, p->answer);
}

static inline void fake_info(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    struct fake *p = arg;

    (void)message;
    p->asked_info++;
    fake_behave(p, r, p->on_info, p->info);
}

static inline void fake_told(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    struct fake *p = arg;

    memcpy(p->request, message.p, message.n);
    p->n_request = message.n;
    p->told++;
    grpc_reply(r, (struct grpc_bytes){ 0 });
}

static const struct grpc_method fake_methods[] = {
    { "/v1beta1.DevicePlugin/GetDevicePluginOptions", fake_options },
    { "/v1beta1.DevicePlugin/ListAndWatch", fake_list },
    { "/v1beta1.DevicePlugin/Allocate", fake_call },
    { "/v1beta1.DevicePlugin/GetPreferredAllocation", fake_call },
    { "/v1beta1.DevicePlugin/PreStartContainer", fake_call },
    { "/pluginregistration.Registration/GetInfo", fake_info },
    { "/pluginregistration.Registration/NotifyRegistrationStatus", fake_told },
};

static inline void fake_serve(struct fake *p)
{
    const struct grpc_server_options o = { .loop = p->loop,
                                           .path = p->path,
                                           .mode = 0700,
                                           .methods = fake_methods,
                                           .n_methods = ARRAY_LEN(fake_methods),
                                           .arg = p,
                                           .message_max = 64 * 1024 * 1024 };
    struct err e = { 0 };

    assert_int_equal(grpc_server_open(&p->server, &o, &e), ERR_OK);
}

/* In the registry folder if `watched`. */
static inline void fake_begin(struct fixture *f, struct fake *p, const char *name, bool watched)
{
    *p = (struct fake){ .loop = &f->loop, .answer = WIRE(allocated), .options = WIRE(options_both) };
    snprintf(p->path, sizeof(p->path), "%s/%s", watched ? f->registry : f->dir, name);
    fake_serve(p);
}

/* ---- the node ---- */

static inline void fixture_on_change(const struct dp_resource *r, enum dp_change what, void *arg)
{
    (void)r;
    (void)what;
    ((struct fixture *)arg)->changes++;
}

static inline void fixture_on_problem(const char *resource, const struct err *e, void *arg)
{
    struct fixture *f = arg;

    f->problems++;
    snprintf(f->problem, sizeof(f->problem), "%s: %s", resource != NULL ? resource : "-", e->text);
}

static inline void fixture_on_other(struct entry *offer, const struct dp_plugin_info *info, void *arg)
{
    struct fixture *f = arg;
    struct err e = f->taken;

    snprintf(f->other, sizeof(f->other), "%s %s %s %s", info->type, info->name,
             info->endpoint + strlen(f->scratch), info->n_versions > 0 ? info->versions[0] : "");
    f->offer = offer;
    if (f->answers_later)
        return;
    if (e.code != ERR_OK)
        err_wrap(&e, DP_NOT_REGISTERED);
    dp_offer_answer(offer, &e);
}

static inline void fixture_on_other_gone(struct entry *offer, void *arg)
{
    struct fixture *f = arg;

    assert_ptr_equal(offer, f->offer);
    f->offer = NULL;
    snprintf(f->other, sizeof(f->other), "gone");
}

static inline void fixture_open(struct fixture *f)
{
    const struct dp_plugins_options o = { .loop = &f->loop,
                                          .dir = f->dir,
                                          .registry_dir = f->registry,
                                          .inventory = f->inventory,
                                          .handlers = f->handlers,
                                          .n_handlers = 1,
                                          .problem = fixture_on_problem,
                                          .arg = f };
    struct err e = { 0 };

    assert_int_equal(dp_plugins_open(&f->plugins, &o, &e), ERR_OK);
}

static inline void fixture_close(struct fixture *f)
{
    if (f->plugins == NULL)
        return;
    dp_plugins_cancel(f->plugins);
    WAIT(f, !dp_plugins_busy(f->plugins));
    dp_plugins_close(take_ptr(&f->plugins));
}

static inline int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err e = { 0 };

    if (f == NULL)
        return -1;
    strcpy(f->scratch, "/tmp/coracle-unit-XXXXXX");
    if (mkdtemp(f->scratch) == NULL || uv_loop_init(&f->loop) != 0)
        return -1;
    snprintf(f->dir, sizeof(f->dir), "%s/device-plugins", f->scratch);
    snprintf(f->registry, sizeof(f->registry), "%s/plugins_registry", f->scratch);
    f->handlers[0] = (struct dp_plugin_handler){
        .type = "CSIPlugin", .offered = fixture_on_other, .gone = fixture_on_other_gone, .arg = f
    };
    f->timers = boot_timers_new(&f->loop);
    *state = f;
    return dp_inventory_new(&f->inventory, f->timers, fixture_on_change, f, &e) == ERR_OK ? 0 : -1;
}

/* No live handle, no live operation. */
static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    int bad = 0;

    fixture_close(f);
    grpc_channel_close(f->client);
    dp_inventory_free(f->inventory);
    boot_timers_free(f->timers);
    for (int i = 0; i < 100 && uv_loop_alive(&f->loop); i++)
        uv_run(&f->loop, UV_RUN_NOWAIT);
    if (op_count() != 0 || uv_loop_close(&f->loop) != 0) {
        uv_print_all_handles(&f->loop, stderr);
        bad = 1;
    }
    if (fs_remove_tree(AT_FDCWD, f->scratch, &e) != ERR_OK)
        bad = 1;
    free(f);
    return bad;
}

/* ---- Register ---- */

struct registers {
    struct grpc_call call;
    bool over;
    struct err result;
};

static inline void registers_on_done(struct op *op, const struct err *result)
{
    struct registers *r = op->owner;

    r->over = true;
    r->result = *result;
}

static inline void register_begin(struct fixture *f, struct registers *r, const char *version,
                                  const char *endpoint, const char *resource)
{
    str_auto target = str_printf("unix:%s/kubelet.sock", f->dir);
    const char *const texts[] = { version, endpoint, resource };
    buf_auto b = BUF_INIT(64 * 1024);
    struct err e = { 0 };

    if (f->client == NULL)
        assert_int_equal(
            grpc_channel_open(&f->client,
                              &(struct grpc_channel_options){ .loop = &f->loop, .target = target }, &e),
            ERR_OK);
    for (unsigned i = 0; i < 3; i++) {
        size_t n = strlen(texts[i]);

        buf_addc(&b, (char)((i + 1) << 3 | 2));
        if (n >= 0x80)
            buf_addc(&b, (char)(n & 0x7f) | (char)0x80);
        buf_addc(&b, (char)(n >= 0x80 ? n >> 7 : n));
        buf_adds(&b, texts[i]);
    }
    *r = (struct registers){ 0 };
    grpc_call_start(&r->call, f->client,
                    &(struct grpc_call_options){ .path = "/v1beta1.Registration/Register",
                                                 .request = { (const uint8_t *)b.p, b.n },
                                                 .deadline_ms = DEADLINE_MS },
                    registers_on_done, r);
}

/* The text of the failure; "": success. */
static inline const char *register_now(struct fixture *f, const char *version, const char *endpoint,
                                       const char *resource)
{
    static struct registers r;

    register_begin(f, &r, version, endpoint, resource);
    WAIT(f, r.over);
    return r.result.text;
}

static inline const struct dp_resource *resource_of(struct fixture *f)
{
    return dp_inventory_find(f->inventory, R);
}

static inline int64_t allocatable(struct fixture *f)
{
    const struct dp_resource *r = resource_of(f);

    return r != NULL ? dp_resource_allocatable(r) : -1;
}

static inline bool is_listed(struct fixture *f)
{
    return resource_of(f) != NULL && resource_of(f)->listed;
}

/* Serves, registers, and has been listed. */
static inline void fake_register(struct fixture *f, struct fake *p, const char *name)
{
    fake_begin(f, p, name, false);
    assert_string_equal(register_now(f, "v1beta1", name, R), "");
    WAIT(f, is_listed(f) && p->stream != NULL);
}
#endif
