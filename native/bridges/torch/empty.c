/* torch/empty.c -- adds a callback pair that does nothing to PyTorch: the baseline for measurements
 * of the bridge (agent/opscope/bench/torch.py). */
#include "private/torch.h"

#include "bridges/torch/symbols.h"

static uint64_t handle; /* 0: not added */

static struct opscope__torch_context **start(struct opscope__torch_context **context,
                                             const struct opscope__torch_function *fn)
{
    (void)fn;
    *context = NULL;
    return context;
}
OPSCOPE__CXX_ENTRY(start);

static void end(const struct opscope__torch_function *fn, struct opscope__torch_context *context)
{
    (void)fn;
    (void)context;
}

int opscope_torch_add_empty_pair(void)
{
    struct opscope__torch_callback callback = {
        .start = OPSCOPE__CXX_ENTRY_OF(start), .end = end, .sampling_prob = 1.0};
    memset(callback.scopes, true, sizeof callback.scopes);
    if (opscope__torch.registry == NULL) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    if (handle != 0) {
        return OPSCOPE_ERR_BUSY;
    }
    handle = opscope__torch.add_global_callback(callback);
    return OPSCOPE_OK;
}

void opscope_torch_remove_empty_pair(void)
{
    if (handle != 0) {
        opscope__torch.remove_callback(handle);
        handle = 0;
    }
}
