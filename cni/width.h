/* SPDX-License-Identifier: Apache-2.0 */
/*
 * width - the number of operations that may run at once. Plugins that change rules with iptables (nf_tables)
 * read the whole table first, and start again whenever another process has changed it meanwhile. With some
 * hundred pods, parallel operations therefore slow each other down without limit, while a single operation
 * takes a fraction of a second. So each slow operation halves the width, and quick operations widen it again
 * by one at a time. An operation that is slow although it ran alone widens it, too: then a busy machine is
 * the cause, and two parallel operations achieve more. Pure.
 */
#ifndef CNI_WIDTH_H
#define CNI_WIDTH_H
#include <stddef.h>
#include <stdint.h>

#define CNI_WIDTH_QUICK_MS 1000 /* an operation that took less was quick */

struct cni_width {
    size_t now, most;
    size_t quick; /* quick operations in a row since the last change */
};

void cni_width_init(struct cni_width *w, size_t most);
/* Called when an operation still runs after CNI_PLACE_MS. */
void cni_width_slow(struct cni_width *w);
/* Called when an operation that changed the network has succeeded. */
void cni_width_took(struct cni_width *w, uint64_t ms);
#endif
