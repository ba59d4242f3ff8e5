/* tests/native/model/fuzz_json.c -- any bytes as JSON: a document that keeps its promises, or a
 * reason. */
#include "tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct opscope__document *document = NULL;
    int status = opscope__json_parse(data, bytes, &document);
    CHECK((status == OPSCOPE_OK) == (document != NULL));
    if (status != OPSCOPE_OK) {
        CHECK_EQUAL(status, OPSCOPE_ERR_INVALID);
        CHECK(strncmp(opscope_tensor_error(), "byte ", 5) == 0);
        return 0;
    }
    CHECK_EQUAL(opscope__document_end(document), bytes);
    tree_check(opscope__document_root(document));
    tree_check_memory(document, bytes);
    free(tree_text(document));
    opscope__document_release(document);
    return 0;
}
