/* SPDX-License-Identifier: Apache-2.0 */
/*
 * width - how many operations may run at once. Plugins that change rules with iptables (nf_tables) read the
 * whole table first, and begin again whenever another one has changed it meanwhile. With some hundred pods,
 * operations that run together therefore slow each other down without limit, while one alone takes a fraction
 * of a second. So each slow operation halves the width, and operations that are quick again widen it by one
 * at a time. One that was slow although it ran alone widens it, too: a busy machine slows it, and then two
 * side by side get more done. Pure.
 */
#ifndef CNI_WIDTH_H
#define CNI_WIDTH_H
#include <stddef.h>
#include <stdint.h>

#define CNI_WIDTH_QUICK_MS 1000 /* an operation that took less was quick */

struct cni_width {
    size_t now, most;
    size_t quick; /* in a row, since the last change */
};

void cni_width_init(struct cni_width *w, size_t most);
/* An operation still runs after CNI_PLACE_MS. */
void cni_width_slow(struct cni_width *w);
/* An operation that changed something has ended well. */
void cni_width_took(struct cni_width *w, uint64_t ms);
#endif
