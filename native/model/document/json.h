/* model/document/json.h -- JSON text as a document.
 *
 * Strict RFC 8259 in UTF-8. Integers that fit 64 bits are INT, other numbers FLOAT; objects are
 * MAP, arrays LIST. Refused: a name twice in one object, numbers beyond a double, invalid UTF-8,
 * halves of surrogate pairs, a byte order mark, anything after the value but white space.
 */
#ifndef OPSCOPE_MODEL_JSON_H
#define OPSCOPE_MODEL_JSON_H

#include "model/document/document.h"

/* 0, or a negative status with the reason and the byte offset in opscope_tensor_error(). The
 * document keeps nothing of `bytes`. */
OPSCOPE_API int opscope__json_parse(const void *bytes, size_t size, struct opscope__document **out);

#endif
