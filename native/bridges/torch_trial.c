/* torch_trial.c -- tries out on one operator what is assumed of PyTorch: that callbacks are called
 * in pairs and no more once removed, that contexts come back and are freed, that every field lies
 * where the layout says. The operator is torch.empty(0), run by the caller. */
#include "bridges/torch_trial.h"

#include "bridges/torch_symbols.h"

static const char wanted_name[] = "aten::empty";

/* What was seen; of one trial at a time. Owner: the thread that tries. */
static struct {
    uint64_t handle;
    const struct opscope__torch_function *open; /* the operator, between its start and its end */
    unsigned start_count;
    unsigned end_count;
    unsigned freed_count;
    bool is_judged;
    const char *fault;
} trial;

static _Thread_local bool is_trying;

static void leave_alone(struct opscope__torch_context *context)
{
    (void)context;
}

static void count_free(struct opscope__torch_context *context)
{
    (void)context; /* it is static */
    trial.freed_count++;
}

static const struct opscope__torch_context_type counting_type = {leave_alone, count_free};
static struct opscope__torch_context counting = {&counting_type};

/* Why the fields of `fn`, known to be an operator with a schema, are not as the layout says. */
static const char *fault_in(const struct opscope__torch_function *fn)
{
    const struct opscope__torch_layout *layout = &opscope__torch.layout;
    if (!opscope__torch_has_schema(fn)) {
        return "an operator without a schema";
    }
    const char *schema = opscope__torch_schema(fn);
    if (opscope__torch_text(schema) != opscope__torch.name(fn) ||
        opscope__torch_overload(schema) != opscope__torch.overload_name(fn)) {
        return "names are elsewhere";
    }
    if (opscope__torch_scope(fn) != OPSCOPE_FUNCTION ||
        opscope__torch_is_async(fn) != opscope__torch.is_async(fn)) {
        return "scope or asynchrony is elsewhere";
    }
    if (OPSCOPE__TORCH_FIELD(uint64_t, fn, layout->thread_id) != opscope__torch.thread_id()) {
        return "the thread id is elsewhere";
    }
    /* Of an operator with a schema, num_inputs() counts the arguments that the schema names. */
    const size_t input_count = OPSCOPE__TORCH_FIELD(size_t, fn, layout->input_count);
    if (OPSCOPE__TORCH_FIELD(int64_t, fn, layout->sequence_nr) < -1 ||
        OPSCOPE__TORCH_FIELD(uint64_t, fn, layout->forward_thread_id) != 0 ||
        input_count != opscope__torch.num_inputs(fn)) {
        return "inputs or sequence number are elsewhere";
    }
    return NULL;
}

static struct opscope__torch_context **start(struct opscope__torch_context **context,
                                             const struct opscope__torch_function *fn)
{
    *context = NULL;
    if (!is_trying || strcmp(opscope__torch.name(fn), wanted_name) != 0) {
        return context;
    }
    trial.start_count++;
    trial.open = fn;
    trial.fault = trial.fault != NULL ? trial.fault : fault_in(fn);
    *context = &counting;
    return context;
}

static void end(const struct opscope__torch_function *fn, struct opscope__torch_context *context)
{
    if (!is_trying || fn != trial.open) {
        return;
    }
    trial.end_count += context == &counting;
    trial.open = NULL;
}

void opscope__torch_trial_start(void)
{
    struct opscope__torch_callback callback = {
        .start = start, .end = end, .sampling_prob = 1.0, .needs_inputs = true};
    memset(callback.scopes, true, sizeof callback.scopes);
    memset(&trial, 0, sizeof trial);
    is_trying = true;
    trial.handle = opscope__torch.add_global_callback(callback);
}

const char *opscope__torch_trial_judge(void)
{
    if (trial.is_judged) {
        return trial.fault;
    }
    opscope__torch.remove_callback(trial.handle);
    is_trying = false;
    trial.is_judged = true;
    if (trial.fault == NULL && trial.start_count == 0) {
        trial.fault = "an operator ran and no callback was called";
    } else if (trial.fault == NULL &&
               (trial.start_count != trial.end_count || trial.start_count != trial.freed_count)) {
        trial.fault = "starts and ends of an operator do not pair up";
    }
    return trial.fault;
}
