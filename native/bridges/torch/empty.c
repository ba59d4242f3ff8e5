/* torch/empty.c -- see torch/empty.h. Added to PyTorch for all scopes, the pair is the baseline for
 * measurements of the bridge (agent/opscope/bench/torch.py). */
#include "bridges/torch/empty.h"

#include "private/torch.h"

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

struct opscope__torch_callback opscope__torch_empty_callback(void)
{
    return (struct opscope__torch_callback){
        .start = OPSCOPE__CXX_ENTRY_OF(start), .end = end, .sampling_prob = 1.0};
}

int opscope_torch_add_empty_pair(void)
{
    struct opscope__torch_callback callback = opscope__torch_empty_callback();
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
