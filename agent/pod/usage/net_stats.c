/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/usage/net_stats.h"
#include "agent/pod/core/usage_text.h"
#include "agent/pod/sandbox/sandbox.h"
#include "base/array.h"
#include "base/log.h"
#include "cni/links.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LABELS_MAX (64u << 20)

struct counter {
    const char *name, *help;
    size_t offset; /* in struct cni_link */
};

static const struct counter counters[] = {
    { "container_network_receive_bytes_total", "Bytes received by the pod.",
      offsetof(struct cni_link, rx_bytes) },
    { "container_network_receive_packets_total", "Packets received by the pod.",
      offsetof(struct cni_link, rx_packets) },
    { "container_network_receive_errors_total", "Errors while receiving.",
      offsetof(struct cni_link, rx_errors) },
    { "container_network_receive_packets_dropped_total", "Packets dropped while receiving.",
      offsetof(struct cni_link, rx_dropped) },
    { "container_network_transmit_bytes_total", "Bytes sent by the pod.",
      offsetof(struct cni_link, tx_bytes) },
    { "container_network_transmit_packets_total", "Packets sent by the pod.",
      offsetof(struct cni_link, tx_packets) },
    { "container_network_transmit_errors_total", "Errors while sending.",
      offsetof(struct cni_link, tx_errors) },
    { "container_network_transmit_packets_dropped_total", "Packets dropped while sending.",
      offsetof(struct cni_link, tx_dropped) },
};

_Static_assert(ARRAY_LEN(counters) == NET_STATS_NAMES, "a value for each counter");

struct net_line {  /* an interface */
    size_t labels; /* their position in the text, NUL-terminated */
    uint64_t values[NET_STATS_NAMES];
};

void net_stats_init(struct net_stats *s)
{
    *s = (struct net_stats){ .text = BUF_INIT(LABELS_MAX) };
}

void net_stats_done(struct net_stats *s)
{
    free(s->v);
    buf_done(&s->text);
}

static void net_stats_add(struct net_stats *s, const struct pod *p, const struct cni_link *link)
{
    struct net_line *to;

    if (!array_room(s->v, s->n)) {
        s->failed = true;
        return;
    }
    to = &s->v[s->n++];
    to->labels = s->text.n;
    for (size_t k = 0; k < ARRAY_LEN(counters); k++)
        memcpy(&to->values[k], (const char *)link + counters[k].offset, sizeof(to->values[k]));
    usage_label(&s->text, "interface", link->name, true);
    usage_label(&s->text, "namespace", p->api->meta.namespace, false);
    usage_label(&s->text, "pod", p->api->meta.name, false);
    buf_addc(&s->text, '\0');
}

void net_stats_read(struct net_stats *s, const struct pod *p)
{
    str_auto path = str_printf("%s/net", sandbox_pins(p));
    struct cni_links l = { 0 };
    struct err e = { 0 };

    if (sandbox_net(p) != NET_READY || p->api->spec.host_network || path == NULL)
        return;
    if (cni_links_read_bare(path, &l, &e) != ERR_OK) {
        log_debug("cannot read the interfaces of a pod", F_STR("pod", p->key), F_ERR(&e));
        return;
    }
    for (size_t i = 0; i < l.n; i++)
        if (!l.v[i].loopback)
            net_stats_add(s, p, &l.v[i]);
}

void net_stats_write(const struct net_stats *s, size_t name, struct buf *out)
{
    const struct counter *c = &counters[name];

    if (s->failed || s->text.failed) {
        out->failed = true;
        return;
    }
    buf_addf(out, "# HELP %s %s\n# TYPE %s counter\n", c->name, c->help, c->name);
    for (size_t i = 0; i < s->n; i++) {
        buf_adds(out, c->name);
        buf_addc(out, '{');
        buf_adds(out, s->text.p + s->v[i].labels);
        buf_adds(out, "} ");
        usage_value(out, s->v[i].values[name], UNIT_ONE);
        buf_addc(out, '\n');
    }
}
