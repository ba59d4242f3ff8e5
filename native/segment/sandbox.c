/* segment/sandbox.c -- see segment/sandbox.h. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "segment/sandbox.h"

#include <link.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/atomics.h"

struct sandbox {
    bool has_filter, has_no_new_privileges;
};

static struct sandbox at_start; /* written under the settings lock, only when the recorder starts */

static uint32_t has_library,
    had_library;                 /* relaxed; libseccomp: now, and at the recorder's start */
static uint64_t seen_count;      /* release; libraries ever loaded, when it was last looked for */
static uint32_t is_forked_child; /* relaxed */

static struct sandbox now(void)
{
    return (struct sandbox){
        .has_filter = prctl(PR_GET_SECCOMP, 0L, 0L, 0L, 0L) == SECCOMP_MODE_FILTER,
        .has_no_new_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0L, 0L, 0L, 0L) == 1};
}

static int find_library(struct dl_phdr_info *library, size_t bytes, void *unused)
{
    (void)unused;
    const bool has_count =
        bytes >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof library->dlpi_adds;
    /* Partner: the store in look, after what that found. */
    if (has_count && library->dlpi_adds == opscope__load_acquire(&seen_count)) {
        return 1; /* none has been loaded since */
    }
    if (library->dlpi_name != NULL && strstr(library->dlpi_name, "libseccomp") != NULL) {
        opscope__store_relaxed(&has_library, 1);
    }
    return 0;
}

static int count_libraries(struct dl_phdr_info *library, size_t bytes, void *count)
{
    const bool has_count =
        bytes >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof library->dlpi_adds;
    *(uint64_t *)count = has_count ? library->dlpi_adds : 0;
    return 1;
}

/* One that another thread loads meanwhile is found the next time. */
static void look(void)
{
    uint64_t count = 0;
    (void)dl_iterate_phdr(count_libraries, &count);
    (void)dl_iterate_phdr(find_library, NULL);
    opscope__store_release(&seen_count, count); /* partner: find_library */
}

void opscope__sandbox_note(void)
{
    at_start = now();
    look();
    opscope__store_relaxed(&had_library, opscope__load_relaxed(&has_library));
}

bool opscope__sandbox_is_likely(void)
{
    if (opscope__load_relaxed(&is_forked_child) == 0) {
        look();
    }
    return opscope__load_relaxed(&has_library) != opscope__load_relaxed(&had_library);
}

bool opscope__sandbox_is_new(void)
{
    if (opscope__sandbox_is_likely()) {
        return true;
    }
    const struct sandbox found = now();
    return found.has_filter && (!at_start.has_filter ||
                                (found.has_no_new_privileges && !at_start.has_no_new_privileges));
}

void opscope__sandbox_fork_prepare(void)
{
    (void)opscope__sandbox_is_likely();
}

void opscope__sandbox_fork_child(void)
{
    opscope__store_relaxed(&is_forked_child, 1);
}
