#include "agent/pod/net_stats.h"
#include "agent/pod/usage_text.h"
#include "base/log.h"
#include "cni/links.h"

#include <stddef.h>

struct counter {
    const char *name, *help;
    size_t offset; /* in struct cni_link */
};

static const struct counter counters[] = {
    { "container_network_receive_bytes_total", "Bytes that the pod received.",
      offsetof(struct cni_link, rx_bytes) },
    { "container_network_receive_packets_total", "Packets that the pod received.",
      offsetof(struct cni_link, rx_packets) },
    { "container_network_receive_errors_total", "Errors while receiving.",
      offsetof(struct cni_link, rx_errors) },
    { "container_network_receive_packets_dropped_total", "Packets dropped while receiving.",
      offsetof(struct cni_link, rx_dropped) },
    { "container_network_transmit_bytes_total", "Bytes that the pod sent.",
      offsetof(struct cni_link, tx_bytes) },
    { "container_network_transmit_packets_total", "Packets that the pod sent.",
      offsetof(struct cni_link, tx_packets) },
    { "container_network_transmit_errors_total", "Errors while sending.",
      offsetof(struct cni_link, tx_errors) },
    { "container_network_transmit_packets_dropped_total", "Packets dropped while sending.",
      offsetof(struct cni_link, tx_dropped) },
};

/* Namespaces by pod in the table's order; v[i].n is 0 where there is nothing. */
static void read_all(struct node *n, struct cni_links *v)
{
    struct pod *p, *tmp;
    size_t i = 0;

    HASH_ITER (hh, n->pods, p, tmp) {
        struct cni_links *l = &v[i++];
        str_auto path = str_printf("%s/net", p->netns_dir);
        struct err e = { 0 };

        if (p->net != NET_READY || p->api->spec.host_network || path == NULL)
            continue;
        if (cni_links_read(path, l, &e) != ERR_OK) {
            l->n = 0;
            log_debug("interfaces of a pod cannot be read", F_STR("pod", p->key), F_ERR(&e));
        }
    }
}

void net_stats_metrics(struct node *n, struct buf *out)
{
    struct cni_links *v = calloc(HASH_COUNT(n->pods) + 1, sizeof(*v));
    struct pod *p, *tmp;

    if (v == NULL)
        return;
    read_all(n, v);
    for (size_t k = 0; k < ARRAY_LEN(counters); k++) {
        size_t i = 0;

        buf_addf(out, "# HELP %s %s\n# TYPE %s counter\n", counters[k].name, counters[k].help,
                 counters[k].name);
        HASH_ITER (hh, n->pods, p, tmp) {
            const struct cni_links *l = &v[i++];

            for (size_t j = 0; j < l->n; j++) {
                uint64_t value;

                if (l->v[j].loopback)
                    continue;
                memcpy(&value, (const char *)&l->v[j] + counters[k].offset, sizeof(value));
                buf_addf(out, "%s{", counters[k].name);
                usage_label(out, "interface", l->v[j].name, true);
                usage_label(out, "namespace", p->api->meta.namespace, false);
                usage_label(out, "pod", p->api->meta.name, false);
                buf_addf(out, "} %llu\n", (unsigned long long)value);
            }
        }
    }
    free(v);
}
