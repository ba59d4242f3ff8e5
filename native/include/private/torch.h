/* private/torch.h -- the PyTorch bridge: PyTorch's operators, backward nodes and record_function
 * blocks as ranges.
 *
 * The idea: PyTorch calls each callback of at::addGlobalCallback around each of its ranges. The
 * bridge finds that function and a few related ones in the loaded libtorch_cpu. It registers only
 * while a callback of this library needs ranges: mostly, while a window is open. The layout of
 * PyTorch's objects depends on the version and the build: the bridge finds it by asking PyTorch's
 * own functions (native/bridges/torch/layout.c), and verifies it with three ranges before use. Each
 * part of the bridge is probed by itself; one that differs from what is known stays off.
 *
 * Threads: attach and detach from one thread at a time; ranges and windows from all. Forks: the
 * child is attached if its parent was.
 */
#ifndef OPSCOPE_PRIVATE_TORCH_H
#define OPSCOPE_PRIVATE_TORCH_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

/* Attaching takes three steps: begin the trial; on the same thread run `torch.empty(0,
 * pin_memory=False)`, a record_function and, by itself, the backward node of `neg`; end the trial.
 * Both functions return NULL, or a short reason why the bridge cannot attach; PyTorch is then
 * unchanged. `header` is the path of this PyTorch's ATen/record_function.h, which may not exist.
 * After an end that returned NULL the bridge is attached. */
OPSCOPE_API const char *opscope_torch_trial_begin(const char *header);
OPSCOPE_API const char *opscope_torch_trial_end(void);

/* The parts of the bridge that may not work with this PyTorch. */
typedef enum opscope_torch_part {
    OPSCOPE_TORCH_FIELDS,  /* what ranges have beyond names, counts and times */
    OPSCOPE_TORCH_VALUES,  /* lists, texts and Bools among inputs and outputs */
    OPSCOPE_TORCH_TENSORS, /* shape and type of tensors */
    OPSCOPE_TORCH_LABELS,  /* labels in tasks of torch.jit.fork and on the threads of a backward */
    OPSCOPE_TORCH_MEMORY,  /* the bytes that operators allocate in the CPU's memory */
    OPSCOPE_TORCH_STATES,  /* threads' states that are not set again (torch/thread_state.h) */
    OPSCOPE_TORCH_COUNT,   /* ranges counted without a callback (torch/count.h) */
    OPSCOPE_TORCH_ARCHIVES /* files added to archives */
} opscope_torch_part;
/* After attaching: NULL, or a short reason why the part does not work. */
OPSCOPE_API const char *opscope_torch_fault(opscope_torch_part part);

enum { OPSCOPE_TORCH_COST_CALLS = 4 };
/* Measures, before the end of the trial, the cost of recording a range of PyTorch. Returns true as
 * long as it needs OPSCOPE_TORCH_COST_CALLS more calls of `torch.empty(0)`, for a millisecond of
 * CPU time at most. Without these calls the bridge assumes a typical cost. The process's first
 * attach fixes the value. */
OPSCOPE_API bool opscope_torch_cost_round(void);
/* Removes the bridge's callbacks from PyTorch; only the ends of open ranges still call it. */
OPSCOPE_API void opscope_torch_detach(void);

/* record_function blocks without a callback of PyTorch's, which would make each node of a backward
 * slower. Replaces the function that an operator object of Python calls (its attribute `_op`), by
 * one that calls it and follows the blocks that it begins or ends. `operator_id` is the object's
 * address. Returns the new function's address, which stays valid, or 0 with the object unchanged.
 * The functions act once opscope_torch_follow_blocks says so. */
OPSCOPE_API uintptr_t opscope_torch_hook_block(uintptr_t operator_id, bool is_end);
OPSCOPE_API void opscope_torch_unhook_block(uintptr_t operator_id);
/* True if the beginning and the end of a block were seen. */
OPSCOPE_API bool opscope_torch_sees_blocks(void);
OPSCOPE_API void opscope_torch_follow_blocks(bool is_possible);

/* Logs PyTorch's API-usage events as this library's own (opscope/usage.h), and passes PyTorch's
 * metadata to the metadata handler. `libc10` is the path of PyTorch's library, which may not be
 * loaded yet. NULL, or a short reason why it cannot. Handlers run later, when the interpreter makes
 * its pending calls. */
OPSCOPE_API const char *opscope_torch_log_usage(const char *libc10);

/* True while PyTorch calls the bridge, because a callback needs ranges. */
OPSCOPE_API bool opscope_torch_is_called(void);
/* How often the bridge has been added to PyTorch's callbacks. */
OPSCOPE_API uint64_t opscope_torch_added_count(void);

/* The properties of a tensor that callbacks can read. */
typedef struct opscope_torch_tensor {
    int64_t dim;
    const int64_t *sizes; /* `dim` of them; the tensor owns them */
    int32_t dtype;        /* c10::ScalarType */
    int32_t device_type;  /* c10::DeviceType */
} opscope_torch_tensor;

/* Reads a value of type "torch.tensor", during the callback. ERR_NOT_FOUND for an undefined tensor,
 * ERR_UNSUPPORTED if PyTorch has no answer (a nested tensor has no sizes). */
OPSCOPE_API int opscope_torch_tensor_read(const void *tensor, opscope_torch_tensor *out);

/* For measurements, from one thread at a time: adds a pair that does nothing to PyTorch's
 * callbacks. ERR_NOT_FOUND if the bridge was never attached. */
OPSCOPE_API int opscope_torch_add_empty_pair(void);
OPSCOPE_API void opscope_torch_remove_empty_pair(void);

OPSCOPE_END_DECLS

#endif
