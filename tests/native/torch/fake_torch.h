/* tests/native/torch/fake_torch.h -- a libtorch_cpu that is none: a registry of callbacks and
 * ranges as PyTorch 2.13.0 has them, in C, so that the bridge can run under sanitizers. */
#ifndef OPSCOPE_TESTS_FAKE_TORCH_H
#define OPSCOPE_TESTS_FAKE_TORCH_H

#include <stdbool.h>
#include <stdint.h>

#define FAKE __attribute__((visibility("default")))

enum { FAKE_CALLBACKS = 8 };

/* std::string, c10::FunctionSchema as far as its names, at::RecordFunction. */
struct fake_string {
    const char *text;
    uint64_t bytes;
    char local[16];
};

struct fake_schema {
    struct fake_string name;
    struct fake_string overload_name;
};

struct fake_function {
    void *type; /* 0x00 */
    uint64_t callback_count;
    void (*ends[FAKE_CALLBACKS])(const struct fake_function *fn, void *context);
    uint64_t unused;    /* 0x50 */
    uint64_t thread_id; /* 0x58 */
    uint8_t scope;      /* 0x60 */
    uint8_t padding[63];
    struct fake_string name; /* 0xa0; or, where there is a schema, its address */
    uint8_t has_schema;      /* 0xc0 */
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
};

/* What of it is wrong. */
enum fake_fault {
    FAKE_SOUND,
    FAKE_CALLS_NOBODY,
    FAKE_FORGETS_ENDS,
    FAKE_FORGETS_CONTEXTS,
    FAKE_NAMES_ELSEWHERE,
    FAKE_THREAD_ELSEWHERE
};
FAKE extern enum fake_fault fake_fault;

/* Opens a range of an operator with a schema; of a name alone where `overload` is NULL. */
FAKE void fake_open(struct fake_function *fn, const char *name, const char *overload,
                    uint8_t scope);
FAKE void fake_open_async(struct fake_function *fn, const char *name);
FAKE void fake_close(struct fake_function *fn);
/* As fake_close, while an exception passes through. */
FAKE void fake_close_by_exception(struct fake_function *fn);
/* What some thread's sampling was last seeded with. */
FAKE uint64_t fake_last_seed(void);
/* How many callbacks are registered now. */
FAKE uint32_t fake_callback_count(void);

#endif
