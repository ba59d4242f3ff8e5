/* tests/native/model/pickles.h -- pickles for tests: the globals that PyTorch's archives name, what
 * a pickle has to become, and why it is to be refused. */
#ifndef OPSCOPE_TESTS_PICKLES_H
#define OPSCOPE_TESTS_PICKLES_H

#include "tree.h"

static const char *const pickle_names[] = {"collections.OrderedDict",
                                           "collections.Counter",
                                           "builtins.set",
                                           "builtins.complex",
                                           "builtins.bytearray",
                                           "builtins.bytes",
                                           "_codecs.encode",
                                           "torch.Size",
                                           "torch.device",
                                           "torch.float32",
                                           "torch.FloatStorage",
                                           "torch.LongStorage",
                                           "torch._utils._rebuild_tensor_v2",
                                           "torch._utils._rebuild_parameter",
                                           "torch.jit._pickle.build_intlist",
                                           "torch.jit._pickle.restore_type_tag",
                                           NULL};
static const char *const pickle_prefixes[] = {"__torch__.", NULL};
static const struct opscope__pickle_globals pickle_globals = {pickle_names, pickle_prefixes};

/* Bytes in a string literal, which may contain NUL. */
#define PICKLE(text) (text), sizeof(text) - 1

static inline int try_parse(const char *bytes, size_t size, struct opscope__document **out)
{
    /* A copy without a NUL behind it, so that the sanitizers see what is read beyond its end. */
    char *exact = malloc(size > 0 ? size : 1);
    CHECK(exact != NULL);
    memcpy(exact, bytes, size);
    int status = opscope__pickle_parse(exact, size, &pickle_globals, out);
    free(exact);
    return status;
}

static inline struct opscope__document *parse(const char *bytes, size_t size)
{
    struct opscope__document *document = NULL;
    int status = try_parse(bytes, size, &document);
    if (status != OPSCOPE_OK) {
        fprintf(stderr, "%s\n", opscope_tensor_error());
    }
    CHECK_EQUAL(status, OPSCOPE_OK);
    tree_check(opscope__document_root(document));
    tree_check_memory(document, size);
    return document;
}

static inline void becomes(const char *bytes, size_t size, const char *wanted)
{
    struct opscope__document *document = parse(bytes, size);
    char *text = tree_text(document);
    CHECK_TEXT(text, wanted);
    free(text);
    opscope__document_release(document);
}

static inline void refuse(const char *bytes, size_t size, const char *reason)
{
    struct opscope__document *document = NULL;
    CHECK_EQUAL(try_parse(bytes, size, &document), OPSCOPE_ERR_INVALID);
    CHECK_TEXT(opscope_tensor_error(), reason);
    CHECK(document == NULL);
}

#endif
