/* pages.h -- which memory of this process is readable, writable or executable.
 *
 * The kernel gives the answer, so that a bridge can check a pointer before it uses it.
 */
#ifndef OPSCOPE_BRIDGES_PAGES_H
#define OPSCOPE_BRIDGES_PAGES_H

#include <stdbool.h>
#include <stddef.h>

struct opscope__pages {
    struct opscope__page_runs *known;
    int file; /* /proc/self/maps, for addresses not known yet; -1 if all are known */
};

/* OK, ERR_IO or ERR_NO_MEMORY; after OK, release it. */
int opscope__pages_read(struct opscope__pages *out);
void opscope__pages_release(struct opscope__pages *pages);
/* True if all of [address, address + bytes) grants `access`, a combination of PROT_READ and the
 * like. */
bool opscope__pages_grant(const struct opscope__pages *pages, const void *address, size_t bytes,
                          int access);

#endif
