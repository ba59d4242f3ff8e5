/* tests/native/bridges/torch/fake_torch.h -- a fake libtorch_cpu: a registry of callbacks and
 * ranges with the layout of PyTorch 2.7 to 2.15, or, with FAKE_OLD_STRINGS, of 2.4 to 2.6, in C, so
 * that the bridge can run under sanitizers. */
#ifndef OPSCOPE_TESTS_FAKE_TORCH_H
#define OPSCOPE_TESTS_FAKE_TORCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE __attribute__((visibility("default")))

enum { FAKE_CALLBACKS = 8 };

/* std::string, c10::FunctionSchema up to its names, at::RecordFunction. */
#ifdef FAKE_OLD_STRINGS
/* Before the text: its length, capacity and count of users. */
struct fake_string {
    const char *text;
};
#else
struct fake_string {
    const char *text;
    uint64_t bytes;
    char local[16];
};
#endif

struct fake_schema {
    struct fake_string name;
    struct fake_string overload_name;
};

/* c10::IValue, with the tags that PyTorch has had since 2.9; a list of them. */
struct fake_value {
    uint64_t payload;
    uint32_t tag;
    uint32_t padding;
};

enum {
    FAKE_NONE = 0,
    FAKE_TENSOR = 1,
    FAKE_INT = 5,
    FAKE_BOOL = 10,
    FAKE_TEXT = 12,
    FAKE_LIST = 14,
    FAKE_ARGUMENTS = 6 /* of aten::empty */
};

struct fake_list {
    const void *functions;
    uint64_t counts;
    const struct fake_value *first;
    const struct fake_value *last;
};

struct fake_function {
    void *type; /* 0x00 */
    uint64_t callback_count;
    void (*ends[FAKE_CALLBACKS])(const struct fake_function *fn, void *context);
    uint64_t unused;    /* 0x50 */
    uint64_t thread_id; /* 0x58 */
    uint8_t scope;      /* 0x60 */
    uint8_t padding[63];
    struct fake_string name; /* 0xa0; or, with a schema, its address */
    uint8_t has_schema;      /* 0xc0; with old strings, all from here on is 0x18 less */
    int64_t sequence_nr;     /* 0xc8 */
    void *inputs;            /* 0xd0 */
    uint64_t input_count;    /* 0xd8 */
    char attributes[0x38];
    void *outputs[3];           /* 0x118 */
    uint64_t forward_thread_id; /* 0x130 */
    uint64_t handle;
    uint8_t is_async; /* 0x140 */
    void *contexts[FAKE_CALLBACKS];
    uint64_t fired;
    char room[128]; /* for trials that look beyond the last field */
};

/* The deviation from PyTorch. */
enum fake_fault {
    FAKE_SOUND,
    FAKE_CALLS_NOBODY,
    FAKE_FORGETS_ENDS,
    FAKE_FORGETS_CONTEXTS,
    FAKE_SCOPE_ELSEWHERE,
    FAKE_OUTPUTS_ELSEWHERE,
    FAKE_FORWARD_ELSEWHERE,
    FAKE_SEQUENCE_ELSEWHERE,
    /* PyTorch's functions read other fields, or more than one. */
    FAKE_NAME_FOLLOWS_POINTERS,
    FAKE_NAME_IS_NO_FIELD,
    FAKE_SCHEMA_MOVED,
    FAKE_INPUTS_MOVED,
    FAKE_OUTPUTS_MOVED,
    FAKE_ASYNC_MOVED,
    FAKE_ASYNC_TWICE,
    FAKE_OVERLOAD_MOVED,
    FAKE_FAULTS, /* so many of ranges; these are of threads' states */
    FAKE_STATE_HAS_MORE,
    FAKE_STATE_ENABLED_MOVED
};
FAKE extern enum fake_fault fake_fault;
/* The c10::IValue array of ranges that open. */
FAKE extern _Thread_local void *fake_inputs;
FAKE extern _Thread_local size_t fake_input_count;

/* Opens a range of an operator with a schema; with only a name if `overload` is NULL. */
FAKE void fake_open(struct fake_function *fn, const char *name, const char *overload,
                    uint8_t scope);
/* The ranges of the trial: an operator with inputs, a record_function, a backward node. */
FAKE void fake_run_trial(const struct fake_value *inputs, size_t count);
FAKE void fake_open_async(struct fake_function *fn, const char *name);
FAKE void fake_close(struct fake_function *fn);
/* Like fake_close, while an exception passes through. */
FAKE void fake_close_by_exception(struct fake_function *fn);
/* The last seed of any thread's sampling. */
FAKE uint64_t fake_last_seed(void);
/* The number of callbacks registered now. */
FAKE uint32_t fake_callback_count(void);

/* at::RecordFunctionTLS, in the object in which PyTorch has it. */
struct fake_state {
    const void *first, *last, *capacity; /* the thread's own callbacks */
    bool is_enabled;
    uint64_t more[2]; /* the version of the callbacks; after a field more with that fault */
};
/* The calling thread's. */
FAKE struct fake_state *fake_state(void);
/* What PyTorch does around each node of a backward: sets the thread's state. */
FAKE void fake_enter_node(const struct fake_state *state);
/* How often PyTorch's function was called by any node of the calling thread. */
FAKE extern _Thread_local uint64_t fake_state_sets;

/* For the files of the fake alone. */
uint64_t fake_version(void);
bool fake_remove_own(uint64_t handle);

#endif
