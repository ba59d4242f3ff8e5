/* tests/native/bridges/torch/fake_state.c -- the states of threads of the fake PyTorch. */
#include "fake_torch.h"

static _Thread_local struct fake_state own = {.is_enabled = true};
_Thread_local uint64_t fake_state_sets;

static const uint64_t handle_of_own = UINT64_MAX;
static const char callbacks[1];

struct fake_state *fake_state(void)
{
    return &own;
}

FAKE const struct fake_state *fake_get_state(void) __asm__("_ZN2at24get_record_function_tls_Ev");
const struct fake_state *fake_get_state(void)
{
    return &own;
}

/* Not inlined: nodes call it through the loader's slot, as in PyTorch. */
FAKE void fake_set_state(const struct fake_state *state) __asm__(
    "_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE") __attribute__((noinline));
void fake_set_state(const struct fake_state *state)
{
    own.first = state->first;
    own.last = state->last;
    own.capacity = state->capacity;
    own.is_enabled = state->is_enabled;
    own.more[fake_fault == FAKE_STATE_HAS_MORE] = fake_version();
    fake_state_sets++;
}

void fake_enter_node(const struct fake_state *state)
{
    fake_set_state(state);
}

static bool *enabled(void)
{
    return fake_fault == FAKE_STATE_ENABLED_MOVED ? &own.is_enabled + 1 : &own.is_enabled;
}

FAKE void fake_enable(bool is_enabled) __asm__("_ZN2at20enableRecordFunctionEb");
void fake_enable(bool is_enabled)
{
    *enabled() = is_enabled;
}

FAKE bool fake_is_enabled(void) __asm__("_ZN2at23isRecordFunctionEnabledEv");
bool fake_is_enabled(void)
{
    return *enabled();
}

struct callback {
    char bytes[48];
};

FAKE uint64_t fake_add_own(struct callback by_value) __asm__(
    "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE");
uint64_t fake_add_own(struct callback by_value)
{
    (void)by_value;
    own.first = callbacks;
    own.last = own.capacity = callbacks + sizeof callbacks;
    return handle_of_own;
}

bool fake_remove_own(uint64_t handle)
{
    if (handle == handle_of_own) {
        own.last = own.first;
    }
    return handle == handle_of_own;
}
