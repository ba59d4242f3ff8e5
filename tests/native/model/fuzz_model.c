/* tests/native/model/fuzz_model.c -- any bytes as the document and the graph of a model's archive,
 * separated by a NUL: a model that runs within its limits, or a reason that names the file. */
#include <stdlib.h>

#include "../check.h"
#include "model_zip.h"
#include "opscope/model.h"

enum { TENSOR_BYTES = 1 << 20, HEAP_BYTES = 1 << 20, ROUNDS = 100, INPUTS = 8, OUTPUTS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* ---- a run ----------------------------------------------------------------------------------------- */

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    return bytes <= TENSOR_BYTES ? aligned_alloc(64, (bytes + 63) / 64 * 64 + 64) : NULL;
}

static void release(void *user, void *data, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(data);
}

static const opscope_allocator small = {"small", allocate, release, NULL};

static void run(opscope_model *model)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint8_t *nul = bytes > 0 ? memchr(data, 0, bytes) : NULL;
    size_t first = nul != NULL ? (size_t)(nul - data) : bytes;
    struct model_zip zip = {.at = malloc(bytes + ZIP_HEADERS_BYTES)};
    opscope_model *model;
    opscope_allocator_set_default(&small);
    CHECK(zip.at != NULL);
    zip_add(&zip, "a/version", "1\n", 2);
    zip_add(&zip, "a/byteorder", "little", 6);
    zip_add(&zip, "a/model.json", data, first);
    zip_add(&zip, "a/graph/forward.ir", data + first + (nul != NULL),
            bytes - first - (nul != NULL));
    zip_add(&zip, "a/tensors/0", "0123456789abcdef0123456789abcdef", 32);
    zip_finish(&zip);
    if (opscope_model_open_memory("fuzz", zip.at, zip.bytes, &model) == OPSCOPE_OK) {
        run(model);
        opscope_model_close(model);
    } else {
        CHECK(strncmp(opscope_tensor_error(), "fuzz: ", 6) == 0);
    }
    free(zip.at);
    return 0;
}
