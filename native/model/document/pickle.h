/* model/document/pickle.h -- a pickle as a document, without running it.
 *
 * Reads what torch.save (weights only) and torch.jit.save write: the opcodes of protocol 2 that
 * PyTorch's own safe loader accepts, and the bytes of protocol 3. Nothing is imported or called.
 */
#ifndef OPSCOPE_MODEL_PICKLE_H
#define OPSCOPE_MODEL_PICKLE_H

#include "model/document/document.h"

/* The globals that a pickle may name; an error names any other. Both lists end with NULL. The
 * module `__builtin__` of old protocols is read as `builtins`. */
struct opscope__pickle_globals {
    const char *const *names;    /* "collections.OrderedDict"; NULL: none */
    const char *const *prefixes; /* "__torch__.": classes of TorchScript; NULL: none */
};

/* 0, or a negative status with the reason and the byte offset in opscope_tensor_error(). The
 * document keeps nothing of `bytes`. */
OPSCOPE_API int opscope__pickle_parse(const void *bytes, size_t size,
                                      const struct opscope__pickle_globals *globals,
                                      struct opscope__document **out);

#endif
