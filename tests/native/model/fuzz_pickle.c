/* tests/native/model/fuzz_pickle.c -- any bytes as a pickle: a document that keeps its promises, or
 * a reason. */
#include "pickles.h"

/* A tree that refers to its items many times takes long to walk, and shows nothing new. */
enum { WALKED_LIMIT = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct opscope__document *document = NULL;
    int status = opscope__pickle_parse(data, bytes, &pickle_globals, &document);
    CHECK((status == OPSCOPE_OK) == (document != NULL));
    if (status != OPSCOPE_OK) {
        CHECK_EQUAL(status, OPSCOPE_ERR_INVALID);
        CHECK(strncmp(opscope_tensor_error(), "byte ", 5) == 0);
        return 0;
    }
    const struct opscope__item *root = opscope__document_root(document);
    CHECK(opscope__document_end(document) <= bytes);
    CHECK(root->expanded >= 1 && root->expanded <= OPSCOPE__EXPANDED_LIMIT);
    tree_check_memory(document, bytes);
    if (root->expanded <= WALKED_LIMIT) {
        tree_check(root);
        free(tree_text(document));
    }
    opscope__document_release(document);
    return 0;
}
