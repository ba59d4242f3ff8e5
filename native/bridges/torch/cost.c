/* torch/cost.c -- see torch/cost.h. The caller runs a cheap operator OPSCOPE_TORCH_COST_CALLS times
 * a round. Groups of rounds with the bridge's callbacks registered alternate with groups without
 * callbacks, as outside of windows. The difference is the cost of PyTorch's machinery, the bridge,
 * and the path to the recorder. After each change PyTorch rebuilds its cache once on each thread,
 * so the first round of a group does not count.
 *
 * Only the measuring thread is observed. Operators of other threads are not recorded, because they
 * have no cost yet.
 */
#include "bridges/torch/cost.h"

#include "bridges/torch/op.h"
#include "bridges/torch/range.h"
#include "private/torch.h"
#include "recorder/cost.h"
#include "recorder/cost_trial.h"

enum { TURNS = 8, ROUNDS_OF_A_TURN = 7 };
/* Used if the measurement fails: a typical value of the machines measured so far. */
static const uint64_t USUAL_EXTRA_PS = 130000;

/* Owner: the thread that runs the trial; there is one at a time. */
static opscope__cost_trial trial;
static uint32_t round_count; /* rounds begun; 0: not measuring */
static uint64_t handle;      /* PyTorch's; 0: not added */
static bool is_known;

static _Thread_local bool is_measuring;

/* ---- what PyTorch calls meanwhile ------------------------------------------------------------- */

static void leave_alone(struct opscope__torch_context *context)
{
    (void)context;
}

static const struct opscope__torch_context_type passed_type = {leave_alone, leave_alone};
static struct opscope__torch_context passed = {&passed_type};

static struct opscope__torch_context **start(struct opscope__torch_context **context,
                                             const struct opscope__torch_function *fn)
{
    if (!is_measuring) {
        *context = &passed;
        return context;
    }
    return opscope__torch.is_basic ? opscope__torch_range_start_basic(context, fn, OPSCOPE_FUNCTION)
                                   : opscope__torch_range_start(context, fn);
}
OPSCOPE__CXX_ENTRY(start);

static void end(const struct opscope__torch_function *fn, struct opscope__torch_context *context)
{
    if (context != &passed) {
        opscope__torch_range_end(fn, context);
    }
}

static void set_seen(bool is_seen)
{
    if (handle != 0) {
        opscope__torch.remove_callback(handle);
        handle = 0;
    }
    if (is_seen) {
        struct opscope__torch_callback callback = {
            .start = OPSCOPE__CXX_ENTRY_OF(start), .end = end, .sampling_prob = 1.0};
        callback.scopes[OPSCOPE_FUNCTION] = true;
        handle = opscope__torch.add_global_callback(callback);
    }
    opscope__cost_trial_set(&trial, is_seen);
}

/* ---- rounds ----------------------------------------------------------------------------------- */

static bool begin(void)
{
    if (is_known || !opscope__cost_trial_begin(&trial)) {
        return false;
    }
    is_measuring = true;
    opscope__cost_probe_loop(true);
    return true;
}

bool opscope__torch_cost_round(void)
{
    const uint32_t place = round_count % ROUNDS_OF_A_TURN; /* of the next round in its group */
    if (round_count == 0 && !begin()) {
        return false;
    }
    if (round_count % ROUNDS_OF_A_TURN != 1 && round_count != 0) {
        opscope__cost_trial_stop(&trial);
    }
    if (round_count == TURNS * ROUNDS_OF_A_TURN) {
        return false;
    }
    if (place == 0) {
        set_seen(round_count / ROUNDS_OF_A_TURN % 2 != 0);
    }
    round_count++;
    return opscope__cost_trial_start(&trial);
}

void opscope__torch_cost_end(bool is_attached)
{
    uint64_t extra_ps = 0;
    if (round_count != 0) {
        set_seen(false);
        is_measuring = false;
        opscope__cost_probe_loop(false);
        extra_ps = opscope__cost_trial_end(&trial, OPSCOPE_TORCH_COST_CALLS);
        round_count = 0;
    }
    if (is_attached && !is_known) {
        opscope__torch_ops_cost(extra_ps != 0 ? extra_ps : USUAL_EXTRA_PS);
        is_known = true;
    }
}
