/* torch/memory.c -- sees each allocation of PyTorch's allocator for the CPU.
 *
 * That allocator, c10::DefaultCPUAllocator, calls c10::alloc_cpu of its own library through a slot,
 * because the function is exported. The slot is replaced as private/blas.h describes: only if the
 * library's tables name the function and the slot leads to it. PyTorch's own profiler has the same
 * allocations (ProfiledCPUMemoryReporter::New); it would need an object of a C++ class in each
 * thread's debug info, in the place that torch.profiler takes for its own.
 *
 * The slot leads here only while a callback wants operators: a step of training allocates a hundred
 * times. If the loader has made its page read-only, it leads here all the time, because two changes
 * of the page's protection for each window would cost more.
 *
 * Memory of other devices, pinned memory, and what a program allocates by an allocator of its own
 * (c10::SetCPUAllocator) is not seen.
 *
 * Threads: the bridge's lock is held around follow, want and leave; others may allocate meanwhile,
 * and a call in flight finishes normally. Forks: nothing to do, slots are per process.
 */
#define _GNU_SOURCE
#include "bridges/torch/memory.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/atomics.h"
#include "bridges/slot.h"
#include "bridges/torch/symbols.h"
#include "opscope/memory.h"

static const char name_of_function[] = "_ZN3c109alloc_cpuEm";

/* Found once; constant before the slot is first replaced. */
static void *(*original)(size_t bytes);
static opscope__slot_function *slot;
static bool is_read_only;
static bool is_followed;

/* c10::alloc_cpu throws if no memory is left: this file is compiled with -fexceptions, and what
 * was not allocated is not noted. */
static void *allocate(size_t bytes)
{
    void *data = original(bytes);
    opscope_note_allocation(bytes);
    return data;
}

static bool find_slot(void *context, opscope__slot_function *found, const char *name)
{
    (void)context;
    if (strcmp(name, name_of_function) != 0) {
        return true;
    }
    slot = found;
    return false;
}

static const char *find_in(void *library)
{
    struct link_map *map = NULL;
    struct opscope__pages pages;
    if (!opscope__torch_symbol(library, name_of_function, &original, sizeof original)) {
        return "libc10 does not export c10::alloc_cpu";
    }
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || opscope__pages_read(&pages) != OPSCOPE_OK) {
        return "the process's memory map cannot be read";
    }
    if (opscope__slots_visit(map, &pages, find_slot, NULL) == OPSCOPE_OK && slot != NULL) {
        is_read_only = !opscope__pages_grant(&pages, slot, sizeof *slot, PROT_READ | PROT_WRITE);
    }
    opscope__pages_release(&pages);
    return slot != NULL ? NULL : "libc10 does not call c10::alloc_cpu through the loader";
}

static const char *find(void)
{
    if (slot != NULL) {
        return NULL;
    }
    void *library = opscope__torch_library("libc10.so");
    if (library == NULL) {
        return "libc10 is not loaded";
    }
    const char *reason = find_in(library);
    dlclose(library); /* PyTorch itself keeps it loaded */
    return reason;
}

static bool lead_here(bool is_here)
{
    const opscope__slot_function ours = (opscope__slot_function)allocate;
    const opscope__slot_function theirs = (opscope__slot_function)original;
    return opscope__slot_replace(slot, is_read_only, is_here ? theirs : ours,
                                 is_here ? ours : theirs);
}

const char *opscope__torch_follow_memory(void)
{
    const char *reason = find();
    if (reason != NULL) {
        return reason;
    }
    const opscope__slot_function present = opscope__load_relaxed(slot);
    if (present == (opscope__slot_function)original) {
        is_followed = !is_read_only || lead_here(true);
        return is_followed ? NULL : "the page of libc10's slot cannot be made writable";
    }
    is_followed = present == (opscope__slot_function)allocate;
    return is_followed ? NULL : "libc10 calls another function in place of c10::alloc_cpu";
}

void opscope__torch_want_memory(bool is_wanted)
{
    if (is_followed && !is_read_only) {
        (void)lead_here(is_wanted);
    }
}

void opscope__torch_leave_memory(void)
{
    if (is_followed) {
        (void)lead_here(false);
    }
    is_followed = false;
}
