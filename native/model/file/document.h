/* model/file/document.h -- what model.json says. */
#ifndef OPSCOPE_MODEL_FILE_DOCUMENT_H
#define OPSCOPE_MODEL_FILE_DOCUMENT_H

#include "model/document/document.h"
#include "model/file/model.h"

#define OPSCOPE__MODEL_DOCUMENT "model.json"

/* Fields of objects, each of one kind. NULL: reported. */
const struct opscope__item *opscope__field(const opscope_model *model,
                                           const struct opscope__item *object, const char *key,
                                           enum opscope__item_kind kind);
/* A text without a NUL in it. NULL: reported. */
const char *opscope__field_text(const opscope_model *model, const struct opscope__item *text);

/* The tensors that `described` lists, one for each, as references of the caller's, who frees the
 * array too. */
int opscope__file_tensors(const opscope_model *model, const struct opscope__item *described,
                          opscope_tensor ***out);
void opscope__file_tensors_release(opscope_tensor **tensors, size_t count);

#endif
