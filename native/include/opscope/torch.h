/* opscope/torch.h -- the PyTorch bridge: PyTorch's operators, backward nodes and record_function
 * blocks as ranges.
 *
 * The idea: PyTorch calls whoever registers with at::addGlobalCallback around each of its ranges.
 * The bridge finds that function and its few companions in the libtorch_cpu that the process has
 * loaded, and registers only while a callback of this library wants ranges: while a window is open,
 * most of all. What is assumed of PyTorch's memory layout belongs to a version, stands in a table
 * of them (native/bridges/torch_symbols.c), and is tried out on one operator before it is believed.
 *
 * Threads: attaching and detaching from one thread at a time; ranges and windows from all. Forks:
 * the child is attached as its parent was.
 */
#ifndef OPSCOPE_TORCH_H
#define OPSCOPE_TORCH_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

/* Attaching takes three steps: begin the trial, run `torch.empty(0)` on the same thread, end it.
 * Both return NULL, or in a few words why the bridge must stand down; then nothing of PyTorch is
 * changed. `version` is torch.__version__. After an end that returned NULL the bridge is attached.
 */
OPSCOPE_API const char *opscope_torch_trial_begin(const char *version);
OPSCOPE_API const char *opscope_torch_trial_end(void);
enum { OPSCOPE_TORCH_COST_CALLS = 4 };
/* Before the end, to find out what recording a range of PyTorch's costs here: true as long as it
 * wants OPSCOPE_TORCH_COST_CALLS more calls of `torch.empty(0)`, for a millisecond at most. Without
 * it a usual cost is taken. The first time that the process attaches decides. */
OPSCOPE_API bool opscope_torch_cost_round(void);
/* PyTorch calls the bridge no more, but for the ends of ranges that are open. */
OPSCOPE_API void opscope_torch_detach(void);

/* Has PyTorch's API-usage events logged as this library's own (opscope/usage.h), and its metadata
 * told to the handler for metadata; `libc10` is the path of its library, which may not be loaded
 * yet. False where the version is not known or the library not as expected. Handlers are told when
 * the interpreter gets to it. */
OPSCOPE_API bool opscope_torch_log_usage(const char *version, const char *libc10);

/* Has PyTorch add a file to every TorchScript archive the process saves from now on, unless whoever
 * saves gives one of that name; a later content replaces an earlier one. ERR_UNSUPPORTED where the
 * version is not known or PyTorch not as expected, ERR_FULL beyond 16 files. */
OPSCOPE_API int opscope_torch_add_file(const char *version, const char *name, const char *content);
OPSCOPE_API void opscope_torch_clear_files(void);

/* Whether PyTorch calls the bridge now: somebody wants ranges. */
OPSCOPE_API bool opscope_torch_is_called(void);
/* How often the bridge has been added to PyTorch's callbacks. */
OPSCOPE_API uint64_t opscope_torch_added_count(void);

/* What callbacks may know of a tensor. */
typedef struct opscope_torch_tensor {
    int64_t dim;
    const int64_t *sizes; /* `dim` of them; the tensor's own */
    int32_t dtype;        /* c10::ScalarType */
    int32_t device_type;  /* c10::DeviceType */
} opscope_torch_tensor;

/* Of a value of type "torch.tensor", during the callback. ERR_NOT_FOUND for an undefined tensor,
 * ERR_UNSUPPORTED where PyTorch does not tell (a nested tensor has no sizes). */
OPSCOPE_API int opscope_torch_tensor_read(const void *tensor, opscope_torch_tensor *out);

/* For measuring, from one thread at a time: adds to PyTorch's callbacks a pair that does nothing.
 * ERR_NOT_FOUND where the bridge was never attached. */
OPSCOPE_API int opscope_torch_add_empty_pair(void);
OPSCOPE_API void opscope_torch_remove_empty_pair(void);

OPSCOPE_END_DECLS

#endif
