/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of probes, lifecycle hooks and their handlers. */
#include "agent/api/schema/schema.h"

static const struct api_row exec[] = {
    ROW("command", API_STRINGS, SLOT(api_handler, command), .flags = API_REQUIRED),
    { 0 },
};
static const struct api_schema exec_schema = SCHEMA("ExecAction", exec);

static const struct api_row header[] = {
    ROW("name", API_STRING, SLOT(api_kv, key), .flags = API_REQUIRED, .format = API_FMT_HEADER_NAME),
    ROW("value", API_STRING, SLOT(api_kv, value), .flags = API_EMPTY_TEXT),
    { 0 },
};
static const struct api_schema header_schema = SCHEMA("HTTPHeader", header, .size = sizeof(struct api_kv));

static const struct api_value schemes[] = { { "HTTP", 0 }, { "HTTPS", 1 }, { NULL, 0 } };
static const struct api_row http_get[] = {
    ROW("path", API_STRING, SLOT(api_handler, path), .otherwise = "/"),
    ROW("port", API_INT_OR_STRING, SLOT(api_handler, port), .flags = API_REQUIRED, RANGE(1, 65535),
        .format = API_FMT_PORT_NAME),
    ROW("host", API_STRING, SLOT(api_handler, host)),
    ROW("scheme", API_STRING, SLOT(api_handler, scheme), .values = schemes, .otherwise = "HTTP"),
    ROW("httpHeaders", API_LIST, SLOTS(api_handler, headers), .nested = &header_schema),
    { 0 },
};
static const struct api_schema http_get_schema = SCHEMA("HTTPGetAction", http_get);

static const struct api_row tcp_socket[] = {
    ROW("port", API_INT_OR_STRING, SLOT(api_handler, port), .flags = API_REQUIRED, RANGE(1, 65535),
        .format = API_FMT_PORT_NAME),
    ROW("host", API_STRING, SLOT(api_handler, host)),
    { 0 },
};
static const struct api_schema tcp_socket_schema = SCHEMA("TCPSocketAction", tcp_socket);

static const struct api_row grpc[] = {
    ROW("port", API_INT32, SLOT(api_handler, port), .flags = API_REQUIRED | API_AS_TEXT, RANGE(1, 65535)),
    ROW("service", API_STRING, SLOT(api_handler, grpc_service), .flags = API_KEEP_EMPTY | API_EMPTY_TEXT,
        .otherwise = ""),
    { 0 },
};
static const struct api_schema grpc_schema = SCHEMA("GRPCAction", grpc);

static const struct api_row sleep_action[] = {
    ROW("seconds", API_INT64, SLOT(api_handler, sleep_seconds)),
    { 0 },
};
static const struct api_schema sleep_schema = SCHEMA("SleepAction", sleep_action);

/* A probe's handlers are fields of the probe itself, whose first member is the handler. */
static const struct api_row probe[] = {
    ROW("exec", API_OBJECT, SLOT(api_probe, handler), TAG(AT(api_probe, handler.kind), API_HANDLER_EXEC),
        .nested = &exec_schema),
    ROW("httpGet", API_OBJECT, SLOT(api_probe, handler), TAG(AT(api_probe, handler.kind), API_HANDLER_HTTP),
        .nested = &http_get_schema),
    ROW("tcpSocket", API_OBJECT, SLOT(api_probe, handler), TAG(AT(api_probe, handler.kind), API_HANDLER_TCP),
        .nested = &tcp_socket_schema),
    ROW("grpc", API_OBJECT, SLOT(api_probe, handler), TAG(AT(api_probe, handler.kind), API_HANDLER_GRPC),
        .nested = &grpc_schema),
    ROW("initialDelaySeconds", API_INT32, SLOT(api_probe, initial_delay_seconds), .flags = API_ZERO_ABSENT,
        RANGE(0, INT32_MAX)),
    ROW("timeoutSeconds", API_INT32, SLOT(api_probe, timeout_seconds), .flags = API_ZERO_ABSENT,
        RANGE(1, INT32_MAX), .otherwise = "1"),
    ROW("periodSeconds", API_INT32, SLOT(api_probe, period_seconds), .flags = API_ZERO_ABSENT,
        RANGE(1, INT32_MAX), .otherwise = "10"),
    ROW("successThreshold", API_INT32, SLOT(api_probe, success_threshold), .flags = API_ZERO_ABSENT,
        RANGE(1, INT32_MAX), .otherwise = "1"),
    ROW("failureThreshold", API_INT32, SLOT(api_probe, failure_threshold), .flags = API_ZERO_ABSENT,
        RANGE(1, INT32_MAX), .otherwise = "3"),
    ROW("terminationGracePeriodSeconds", API_INT64, SLOT(api_probe, termination_grace_seconds),
        .has = AT(api_probe, has_termination_grace), RANGE(1, INT64_MAX)),
    { 0 },
};
const struct api_schema api_schema_probe =
    SCHEMA("Probe", probe, .size = sizeof(struct api_probe),
           .one_of = "only one of exec, httpGet, tcpSocket and grpc is allowed",
           .one_of_none = "one of exec, httpGet, tcpSocket and grpc is required", .one_of_first = "exec",
           .one_of_last = "grpc");

static const struct api_row hook[] = {
    ROW("exec", API_OBJECT, .slot = HERE, TAG(AT(api_handler, kind), API_HANDLER_EXEC),
        .nested = &exec_schema),
    ROW("httpGet", API_OBJECT, .slot = HERE, TAG(AT(api_handler, kind), API_HANDLER_HTTP),
        .nested = &http_get_schema),
    ROW("tcpSocket", API_OBJECT, .slot = HERE, TAG(AT(api_handler, kind), API_HANDLER_TCP),
        .nested = &tcp_socket_schema),
    ROW("sleep", API_OBJECT, .slot = HERE, TAG(AT(api_handler, kind), API_HANDLER_SLEEP),
        .nested = &sleep_schema),
    { 0 },
};
static const struct api_schema hook_schema =
    SCHEMA("LifecycleHandler", hook, .size = sizeof(struct api_handler),
           .one_of = "only one of exec, httpGet, tcpSocket and sleep is allowed",
           .one_of_none = "one of exec, httpGet, tcpSocket and sleep is required");

/* Linux signals; RTMIN+n and RTMAX-n as the API spells them. */
static const struct api_value signals[] = {
    { "SIGABRT", 0 },     { "SIGALRM", 0 },     { "SIGBUS", 0 },      { "SIGCHLD", 0 },
    { "SIGCLD", 0 },      { "SIGCONT", 0 },     { "SIGFPE", 0 },      { "SIGHUP", 0 },
    { "SIGILL", 0 },      { "SIGINT", 0 },      { "SIGIO", 0 },       { "SIGIOT", 0 },
    { "SIGKILL", 0 },     { "SIGPIPE", 0 },     { "SIGPOLL", 0 },     { "SIGPROF", 0 },
    { "SIGPWR", 0 },      { "SIGQUIT", 0 },     { "SIGSEGV", 0 },     { "SIGSTKFLT", 0 },
    { "SIGSTOP", 0 },     { "SIGSYS", 0 },      { "SIGTERM", 0 },     { "SIGTRAP", 0 },
    { "SIGTSTP", 0 },     { "SIGTTIN", 0 },     { "SIGTTOU", 0 },     { "SIGURG", 0 },
    { "SIGUSR1", 0 },     { "SIGUSR2", 0 },     { "SIGVTALRM", 0 },   { "SIGWINCH", 0 },
    { "SIGXCPU", 0 },     { "SIGXFSZ", 0 },     { "SIGRTMIN", 0 },    { "SIGRTMIN+1", 0 },
    { "SIGRTMIN+2", 0 },  { "SIGRTMIN+3", 0 },  { "SIGRTMIN+4", 0 },  { "SIGRTMIN+5", 0 },
    { "SIGRTMIN+6", 0 },  { "SIGRTMIN+7", 0 },  { "SIGRTMIN+8", 0 },  { "SIGRTMIN+9", 0 },
    { "SIGRTMIN+10", 0 }, { "SIGRTMIN+11", 0 }, { "SIGRTMIN+12", 0 }, { "SIGRTMIN+13", 0 },
    { "SIGRTMIN+14", 0 }, { "SIGRTMIN+15", 0 }, { "SIGRTMAX-14", 0 }, { "SIGRTMAX-13", 0 },
    { "SIGRTMAX-12", 0 }, { "SIGRTMAX-11", 0 }, { "SIGRTMAX-10", 0 }, { "SIGRTMAX-9", 0 },
    { "SIGRTMAX-8", 0 },  { "SIGRTMAX-7", 0 },  { "SIGRTMAX-6", 0 },  { "SIGRTMAX-5", 0 },
    { "SIGRTMAX-4", 0 },  { "SIGRTMAX-3", 0 },  { "SIGRTMAX-2", 0 },  { "SIGRTMAX-1", 0 },
    { "SIGRTMAX", 0 },    { NULL, 0 },
};

static const struct api_row lifecycle[] = {
    ROW("postStart", API_OBJECT, SLOT(api_container, post_start), .flags = API_POINTER,
        .nested = &hook_schema),
    ROW("preStop", API_OBJECT, SLOT(api_container, pre_stop), .flags = API_POINTER, .nested = &hook_schema),
    ROW("stopSignal", API_STRING, SLOT(api_container, stop_signal), .flags = API_KEEP_EMPTY,
        .values = signals),
    { 0 },
};
const struct api_schema api_schema_lifecycle = SCHEMA("Lifecycle", lifecycle);
