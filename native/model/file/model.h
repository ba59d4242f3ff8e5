/* model/file/model.h -- an open model, as the files of this folder share it. */
#ifndef OPSCOPE_MODEL_FILE_MODEL_H
#define OPSCOPE_MODEL_FILE_MODEL_H

#include "model/program/program.h"
#include "opscope/model.h"

struct opscope_model {
    opscope_archive *archive;
    char *name; /* the path */
    char *id;
    struct opscope__program *program;
    size_t input_count;
    size_t output_count;
    opscope_model_value *values; /* inputs, then outputs; owned, with their texts */
};

/* Fails with "PATH: entry "ENTRY": REASON". */
int opscope__model_fail(const opscope_model *model, const char *entry, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An item of a caller as a value of that type, and back. Negative: reported; `place` names the
 * input. */
int opscope__item_to_value(struct opscope__heap *heap, const opscope_item *item,
                           const struct opscope__graph_type *type, struct opscope__value *out);
int opscope__item_of_value(const struct opscope__value *value, opscope_item *out);

#endif
