/* tests/native/model/run_fuzzed.h -- a run of a model of unknown origin, within limits. */
#ifndef OPSCOPE_TESTS_RUN_FUZZED_H
#define OPSCOPE_TESTS_RUN_FUZZED_H

#include <stdlib.h>

#include "../check.h"
#include "opscope/model.h"

enum { TENSOR_BYTES = 1 << 20, HEAP_BYTES = 1 << 20, ROUNDS = 100, INPUTS = 8, OUTPUTS = 64 };

static inline void *allocate(void *user, size_t bytes)
{
    (void)user;
    return bytes <= TENSOR_BYTES ? aligned_alloc(64, (bytes + 63) / 64 * 64 + 64) : NULL;
}

static inline void release(void *user, void *data, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(data);
}

static const opscope_allocator small_tensors = {"small", allocate, release, NULL};

/* All its inputs are 3, or four zeros; the default allocator is `small_tensors`. */
static inline void run_fuzzed(opscope_model *model)
{
    const opscope_model_options options = {.rounds_limit = ROUNDS, .heap_bytes_limit = HEAP_BYTES};
    size_t count = opscope_model_input_count(model);
    opscope_item inputs[INPUTS], outputs[OUTPUTS];
    opscope_tensor *tensor;
    opscope_model_value value;
    CHECK(opscope_model_input_at(model, count, &value) == OPSCOPE_ERR_NOT_FOUND);
    if (count > INPUTS || opscope_model_output_count(model) > OUTPUTS) {
        return;
    }
    CHECK_EQUAL(opscope_tensor_empty(1, (const int64_t[]){4}, OPSCOPE_FLOAT32, NULL, &tensor), 0);
    memset(opscope_tensor_data(tensor), 0, 16);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQUAL(opscope_model_input_at(model, i, &value), OPSCOPE_OK);
        CHECK(value.name[0] != '\0' && value.type[0] != '\0');
        inputs[i] = strcmp(value.type, "int") == 0
                        ? (opscope_item){.kind = OPSCOPE_ITEM_INT, .as.integer = 3}
                        : (opscope_item){.kind = OPSCOPE_ITEM_TENSOR, .as.tensor = tensor};
    }
    if (opscope_model_run(model, inputs, count, &options, outputs) == OPSCOPE_OK) {
        for (size_t i = 0; i < opscope_model_output_count(model); i++) {
            opscope_item_release(&outputs[i]);
        }
    }
    opscope_tensor_release(tensor);
}

#endif
