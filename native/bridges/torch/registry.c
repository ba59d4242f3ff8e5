/* torch/registry.c -- finds the lock of PyTorch's global callbacks by its data.
 *
 * PyTorch holds the lock while it adds, removes or copies callbacks. A fork at such a moment would
 * leave the lock held in the child for ever, so the bridge takes it during a fork. The lock has no
 * symbol. It follows the vector of callbacks in a static object of libtorch_cpu: so the bridge adds
 * a callback without a scope, which PyTorch never calls, and looks in the library's writable data
 * for the vector that holds it. Before it uses the lock, it verifies that holding the lock blocks a
 * thread in at::hasGlobalCallbacks.
 *
 * Other threads may write to that data meanwhile. Each word is read once, and what it says is
 * checked before it is followed: a vector that another thread changes just then looks wrong, and
 * the search fails. It works in all releases from 2.4 to 2.15, on x86-64 and aarch64.
 */
#define _GNU_SOURCE
#include "bridges/torch/registry.h"

#include <link.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomics.h"
#include "bridges/pages.h"
#include "bridges/torch/empty.h"

/* Reads memory of another library, word by word: no business of the sanitizers. */
#define RAW __attribute__((no_sanitize("address", "thread", "undefined")))

enum { LOCKED_AND_WAITED_FOR = 2, MOST_ENTRIES = 64 };

/* at::RecordFunctionCallbacksEntry. */
struct entry {
    struct opscope__torch_callback callback;
    uint64_t is_enabled; /* one byte */
    uint64_t handle;
};

struct registry {
    struct entry *first;
    struct entry *last;     /* past the last */
    struct entry *capacity; /* past the room */
    pthread_mutex_t mutex;
};

static bool knows_handles; /* written while attaching: entries have theirs where they are known to
                              be */

/* ---- the lock ------------------------------------------------------------------------------- */

static void *ask(void *is_done)
{
    (void)opscope__torch.has_global_callbacks();
    opscope__store_release((bool *)is_done, true); /* partner: the load in keeps_threads_out */
    return NULL;
}

/* True if a thread that asks PyTorch for its callbacks waits for `mutex`. */
static bool keeps_threads_out(pthread_mutex_t *mutex)
{
    bool is_done = false;
    pthread_t thread;
    pthread_mutex_lock(mutex);
    if (pthread_create(&thread, NULL, ask, &is_done) != 0) {
        pthread_mutex_unlock(mutex);
        return false;
    }
    while (!opscope__load_acquire(&is_done) &&
           opscope__load_relaxed(&mutex->__data.__lock) != LOCKED_AND_WAITED_FOR) {
        sched_yield();
    }
    const bool was_kept_out = !opscope__load_acquire(&is_done);
    pthread_mutex_unlock(mutex);
    pthread_join(thread, NULL);
    return was_kept_out;
}

/* True if the memory has the form of a normal pthread mutex; only reads it. */
static RAW bool has_form_of_mutex(const pthread_mutex_t *mutex)
{
    return (uintptr_t)mutex % _Alignof(pthread_mutex_t) == 0 &&
           mutex->__data.__kind == PTHREAD_MUTEX_NORMAL &&
           (unsigned)mutex->__data.__lock <= LOCKED_AND_WAITED_FOR;
}

/* ---- the search ------------------------------------------------------------------------------- */

struct search {
    struct opscope__torch_callback callback; /* the one to find */
    const void *inside;                      /* an address in libtorch_cpu */
    struct opscope__pages pages;
    struct registry *found;
    unsigned count;
    uint64_t handle; /* of `found`'s entry */
};

static RAW bool is_registry(struct search *search, const volatile uintptr_t *words)
{
    const uintptr_t first = words[0], last = words[1], capacity = words[2];
    if (first == 0 || first % _Alignof(struct entry) != 0 || last <= first || capacity < last ||
        last - first > MOST_ENTRIES * sizeof(struct entry) ||
        (last - first) % sizeof(struct entry) != 0 ||
        (capacity - first) % sizeof(struct entry) != 0) {
        return false;
    }
    const struct entry *entries = (const struct entry *)first;
    if (!opscope__pages_grant(&search->pages, entries, last - first, PROT_READ | PROT_WRITE)) {
        return false;
    }
    for (size_t i = 0; i < (last - first) / sizeof *entries; i++) {
        if (entries[i].callback.start == search->callback.start &&
            entries[i].callback.end == search->callback.end) {
            search->handle = entries[i].handle;
            return has_form_of_mutex(&((const struct registry *)(uintptr_t)words)->mutex);
        }
    }
    return false;
}

static RAW void search_words(struct search *search, uintptr_t start, uintptr_t end)
{
    if (!opscope__pages_grant(&search->pages, (const void *)start, end - start,
                              PROT_READ | PROT_WRITE)) {
        return;
    }
    for (uintptr_t at = start; at + sizeof(struct registry) <= end; at += sizeof at) {
        if (is_registry(search, (const uintptr_t *)at)) {
            search->found = (struct registry *)at;
            search->count++;
        }
    }
}

/* A writable segment of libtorch_cpu, but what the loader has made read-only again: its start. */
static void search_segment(struct search *search, uintptr_t base, const ElfW(Phdr) * segment,
                           uintptr_t relro_end)
{
    const uintptr_t align = sizeof(uintptr_t) - 1;
    uintptr_t start = (base + segment->p_vaddr + align) & ~align;
    const uintptr_t end = base + segment->p_vaddr + segment->p_memsz;
    if (start < relro_end && relro_end < end) {
        start = relro_end;
    }
    /* The part from the file and the zeroed part are two mappings. */
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t file_end =
        (base + segment->p_vaddr + segment->p_filesz + page - 1) & ~(page - 1);
    if (start < file_end && file_end < end) {
        search_words(search, start, file_end);
        start = file_end;
    }
    search_words(search, start, end);
}

static int search_library(struct dl_phdr_info *info, size_t bytes, void *data)
{
    struct search *search = data;
    const uintptr_t base = info->dlpi_addr, inside = (uintptr_t)search->inside;
    uintptr_t relro_end = 0;
    bool is_ours = false;
    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && inside - (base + segment->p_vaddr) < segment->p_memsz) {
            is_ours = true;
        }
        if (segment->p_type == PT_GNU_RELRO) {
            relro_end = base + segment->p_vaddr + segment->p_memsz;
        }
    }
    for (int i = 0; is_ours && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0) {
            search_segment(search, base, segment, relro_end);
        }
    }
    return is_ours;
}

pthread_mutex_t *opscope__torch_find_registry(void)
{
    struct search search = {.callback = opscope__torch_empty_callback()};
    memcpy(&search.inside, &opscope__torch.add_global_callback, sizeof search.inside);
    const uint64_t handle = opscope__torch.add_global_callback(search.callback);
    /* After PyTorch has allocated the vector. */
    if (opscope__pages_read(&search.pages) == OPSCOPE_OK) {
        (void)dl_iterate_phdr(search_library, &search);
        opscope__pages_release(&search.pages);
    }
    opscope__torch.remove_callback(handle);
    knows_handles = search.count == 1 && search.handle == handle;
    return search.count == 1 && keeps_threads_out(&search.found->mutex) ? &search.found->mutex
                                                                        : NULL;
}

RAW bool opscope__torch_registry_has(uint64_t handle)
{
    pthread_mutex_t *mutex = opscope__torch.registry;
    if (mutex == NULL || !knows_handles) {
        return opscope__torch.has_global_callbacks();
    }
    const struct registry *registry =
        (const struct registry *)((const char *)mutex - offsetof(struct registry, mutex));
    bool has = false;
    pthread_mutex_lock(mutex);
    for (const struct entry *entry = registry->first; entry != registry->last && !has; entry++) {
        has = entry->handle == handle;
    }
    pthread_mutex_unlock(mutex);
    return has;
}
