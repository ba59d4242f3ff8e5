/* torch/trial.c -- verifies the assumptions about PyTorch with three of its ranges, which the
 * caller runs: an operator with a schema, torch.empty(0, pin_memory=False); a record_function; the
 * backward node of neg(), called by itself. (A backward would start PyTorch's engine, and with it
 * threads on a machine with GPUs; after that, PyTorch refuses to run a backward in a forked child.)
 *
 * PyTorch calls callbacks in pairs, and not after their removal; contexts come back and are freed;
 * every field is at the layout's offset, in each of its states. Each callback has one scope only,
 * so it knows the scope without the layout. */
#include "bridges/torch/trial.h"

#include "bridges/torch/fields.h"
#include "bridges/torch/values.h"

enum kind { OPERATOR, BLOCK, NODE, KINDS };

/* Observations of one trial at a time. Owner: the thread that runs the trial. */
static struct {
    uint64_t handles[KINDS];
    const struct opscope__torch_function *open[KINDS]; /* between its start and its end */
    unsigned seen[KINDS];
    unsigned start_count;
    unsigned end_count;
    unsigned freed_count;
    int64_t sequence_nr; /* of the operator whose node is called */
    bool is_judged;
    const char *fault;        /* in the calls */
    const char *layout_fault; /* in the fields */
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
static struct opscope__torch_context contexts[KINDS] = {
    {&counting_type}, {&counting_type}, {&counting_type}};

/* ---- what PyTorch calls -------------------------------------------------------------------------- */

static bool has_name(const struct opscope__torch_function *fn, const char *name)
{
    return strcmp(opscope__torch.name(fn), name) == 0;
}

static const char *fault_in(enum kind kind, const struct opscope__torch_function *fn)
{
    return kind == OPERATOR ? opscope__torch_operator_fault(fn)
           : kind == BLOCK  ? opscope__torch_block_fault(fn)
                            : opscope__torch_node_fault(fn, trial.sequence_nr);
}

/* Fields are checked once in each kind: the other ranges only count. */
static struct opscope__torch_context **see(enum kind kind, struct opscope__torch_context **context,
                                           const struct opscope__torch_function *fn)
{
    trial.start_count++;
    trial.open[kind] = fn;
    if (trial.seen[kind]++ == 0 && !opscope__torch.is_basic && trial.layout_fault == NULL) {
        trial.layout_fault = fault_in(kind, fn);
        if (kind == OPERATOR && trial.layout_fault == NULL) {
            opscope__torch_try_values(fn);
        }
    }
    *context = &contexts[kind];
    return context;
}

static struct opscope__torch_context **start_operator(struct opscope__torch_context **context,
                                                      const struct opscope__torch_function *fn)
{
    *context = NULL;
    if (!is_trying) {
        return context;
    }
    if (has_name(fn, "aten::neg") && !opscope__torch.is_basic && trial.layout_fault == NULL) {
        trial.sequence_nr = opscope__torch_sequence_nr(fn);
    }
    return has_name(fn, "aten::empty") ? see(OPERATOR, context, fn) : context;
}

static struct opscope__torch_context **start_block(struct opscope__torch_context **context,
                                                   const struct opscope__torch_function *fn)
{
    *context = NULL;
    return is_trying ? see(BLOCK, context, fn) : context;
}

static struct opscope__torch_context **start_node(struct opscope__torch_context **context,
                                                  const struct opscope__torch_function *fn)
{
    *context = NULL;
    return is_trying ? see(NODE, context, fn) : context;
}

OPSCOPE__CXX_ENTRY(start_operator);
OPSCOPE__CXX_ENTRY(start_block);
OPSCOPE__CXX_ENTRY(start_node);

static void end(const struct opscope__torch_function *fn, struct opscope__torch_context *context)
{
    for (int kind = 0; is_trying && kind < KINDS; kind++) {
        if (context == &contexts[kind] && fn == trial.open[kind]) {
            trial.end_count++;
            trial.open[kind] = NULL;
            if (kind == OPERATOR && trial.seen[kind] == 1 && !opscope__torch.is_basic &&
                trial.layout_fault == NULL) {
                trial.layout_fault = opscope__torch_outputs_fault(fn);
            }
        }
    }
}

/* ---- start and end ------------------------------------------------------------------------------- */

void opscope__torch_trial_start(void)
{
    static const struct {
        opscope__cxx_entry start;
        opscope_scope scope;
    } callbacks[KINDS] = {[OPERATOR] = {OPSCOPE__CXX_ENTRY_OF(start_operator), OPSCOPE_FUNCTION},
                          [BLOCK] = {OPSCOPE__CXX_ENTRY_OF(start_block), OPSCOPE_USER_SCOPE},
                          [NODE] = {OPSCOPE__CXX_ENTRY_OF(start_node), OPSCOPE_BACKWARD_FUNCTION}};
    memset(&trial, 0, sizeof trial);
    trial.sequence_nr = -1;
    opscope__torch_fields_begin();
    is_trying = true;
    for (int kind = 0; kind < KINDS; kind++) {
        struct opscope__torch_callback callback = {.start = callbacks[kind].start,
                                                   .end = end,
                                                   .sampling_prob = 1.0,
                                                   .needs_inputs = true,
                                                   .needs_outputs = true};
        callback.scopes[callbacks[kind].scope] = true;
        trial.handles[kind] = opscope__torch.add_global_callback(callback);
    }
}

const char *opscope__torch_trial_judge(void)
{
    if (trial.is_judged) {
        return trial.fault;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        opscope__torch.remove_callback(trial.handles[kind]);
    }
    is_trying = false;
    opscope__torch_fields_end();
    trial.is_judged = true;
    if (trial.seen[OPERATOR] == 0) {
        trial.fault = "PyTorch called no callback for an operator";
    } else if (trial.start_count != trial.end_count || trial.start_count != trial.freed_count) {
        trial.fault = "starts and ends of ranges do not match";
    }
    if (trial.layout_fault == NULL && trial.seen[BLOCK] == 0) {
        trial.layout_fault = "PyTorch called no callback for a record_function";
    }
    if (trial.layout_fault == NULL && trial.seen[NODE] == 0) {
        trial.layout_fault = "PyTorch called no callback for a backward node";
    }
    return trial.fault;
}

const char *opscope__torch_trial_layout(void)
{
    return trial.layout_fault;
}
