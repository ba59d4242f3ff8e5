/* pages.h -- which memory of this process may be read, written or executed.
 *
 * As the kernel says it, so that a bridge asks before it touches a pointer it found.
 */
#ifndef OPSCOPE_BRIDGES_PAGES_H
#define OPSCOPE_BRIDGES_PAGES_H

#include <stdbool.h>
#include <stddef.h>

struct opscope__pages {
    struct opscope__page_runs *known;
    int file; /* /proc/self/maps, for what is not known yet; -1 where all is */
};

/* OK, ERR_IO or ERR_NO_MEMORY; then release it. */
int opscope__pages_read(struct opscope__pages *out);
void opscope__pages_release(struct opscope__pages *pages);
/* Whether all of [address, address + bytes) grants `access`, a sum of PROT_READ and the like. */
bool opscope__pages_grant(const struct opscope__pages *pages, const void *address, size_t bytes,
                          int access);

#endif
