/* torch/memory.c -- sees each allocation of PyTorch's allocator for the CPU.
 *
 * That allocator, c10::DefaultCPUAllocator, calls c10::alloc_cpu of its own library through a slot
 * (torch/replaced.h). PyTorch's own profiler has the same
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
 * Threads: the bridge's lock is held around follow, want and leave; others may allocate meanwhile.
 */
#include "bridges/torch/memory.h"

#include <stddef.h>

#include "bridges/torch/replaced.h"
#include "opscope/memory.h"

static void *allocate(size_t bytes);

static struct opscope__torch_replaced replaced = {.library = "libc10.so",
                                                  .symbol = "_ZN3c109alloc_cpuEm",
                                                  .ours = (opscope__slot_function)allocate};
static bool is_followed;

/* c10::alloc_cpu throws if no memory is left: this file is compiled with -fexceptions, and what
 * was not allocated is not noted. */
static void *allocate(size_t bytes)
{
    void *data = ((void *(*)(size_t bytes))replaced.theirs)(bytes);
    opscope_note_allocation(bytes);
    return data;
}

const char *opscope__torch_follow_memory(void)
{
    const char *reason = opscope__torch_replaced_find(&replaced);
    if (reason != NULL) {
        return reason;
    }
    is_followed =
        !replaced.is_read_only || is_followed || opscope__torch_replaced_lead(&replaced, true);
    return is_followed ? NULL : "the page of the slot cannot be made writable";
}

void opscope__torch_want_memory(bool is_wanted)
{
    if (is_followed && !replaced.is_read_only) {
        (void)opscope__torch_replaced_lead(&replaced, is_wanted);
    }
}

void opscope__torch_leave_memory(void)
{
    if (is_followed) {
        (void)opscope__torch_replaced_lead(&replaced, false);
    }
    is_followed = false;
}
