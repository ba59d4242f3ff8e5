/* tests/native/model/fuzz_model.c -- any bytes as the document and the graph of a model's archive,
 * separated by a NUL: a model that runs within its limits, or a reason that names the file. */
#include "model_zip.h"
#include "run_fuzzed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint8_t *nul = bytes > 0 ? memchr(data, 0, bytes) : NULL;
    size_t first = nul != NULL ? (size_t)(nul - data) : bytes;
    struct model_zip zip = {.at = malloc(bytes + ZIP_HEADERS_BYTES)};
    opscope_model *model;
    opscope_allocator_set_default(&small_tensors);
    CHECK(zip.at != NULL);
    zip_add(&zip, "a/version", "1\n", 2);
    zip_add(&zip, "a/byteorder", "little", 6);
    zip_add(&zip, "a/model.json", data, first);
    zip_add(&zip, "a/graph/forward.ir", data + first + (nul != NULL),
            bytes - first - (nul != NULL));
    zip_add(&zip, "a/tensors/0", "0123456789abcdef0123456789abcdef", 32);
    zip_finish(&zip);
    if (opscope_model_open_memory("fuzz", zip.at, zip.bytes, &model) == OPSCOPE_OK) {
        run_fuzzed(model);
        opscope_model_close(model);
    } else {
        CHECK(strncmp(opscope_tensor_error(), "fuzz: ", 6) == 0);
    }
    free(zip.at);
    return 0;
}
