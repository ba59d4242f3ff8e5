/* opscope/model.h -- models that were compiled in Python (opscope.tensor.jit), run without it.
 *
 * The idea: an archive holds the functions of a model as graphs, and its tensors. Opening it makes
 * one program of them, with each node checked; a run is a call of that program with items: tensors,
 * numbers, texts, lists and tuples. Each operator that runs is a range, labelled with the model's
 * id
 * (`model_id`).
 *
 * The archive is mapped: its tensors take no memory of their own until they are written. They do
 * not require grad. Nothing of the file is trusted: a wrong one is an error that names file, entry
 * and reason, and no graph reads out of bounds. What a graph computes may still take long, or much
 * memory; `opscope_model_options` bounds a run.
 *
 * Functions fail with a negative opscope_status; opscope_tensor_error() has the text.
 * Threads: any number of threads may run one open model at once.
 *
 *     opscope_model *model;
 *     opscope_item input = {.kind = OPSCOPE_ITEM_TENSOR, .as.tensor = image}, output;
 *     if (opscope_model_open("net.pt", &model) == OPSCOPE_OK &&
 *         opscope_model_run(model, &input, 1, NULL, &output) == OPSCOPE_OK) ...
 *
 * With the headers and libraries of an installed package in the folder P (the parent of
 * opscope.get_include()), a program is built by one line:
 *
 *     cc run.c -I$P/include $P/libopscope_tensor.so $P/libopscope.so -Wl,-rpath,$P -o run
 */
#ifndef OPSCOPE_MODEL_H
#define OPSCOPE_MODEL_H

#include "opscope/archive.h"

OPSCOPE_BEGIN_DECLS

typedef enum opscope_item_kind {
    OPSCOPE_ITEM_NONE = 0,
    OPSCOPE_ITEM_BOOL = 1, /* as.integer: 0 or 1 */
    OPSCOPE_ITEM_INT = 2,
    OPSCOPE_ITEM_FLOAT = 3,
    OPSCOPE_ITEM_DTYPE = 4, /* as.integer: opscope_dtype */
    OPSCOPE_ITEM_TENSOR = 5,
    OPSCOPE_ITEM_TEXT = 6, /* as.text: `count` bytes of UTF-8; of a result, a NUL follows */
    OPSCOPE_ITEM_LIST = 7, /* as.items, `count` */
    OPSCOPE_ITEM_TUPLE = 8
} opscope_item_kind;

typedef struct opscope_item {
    opscope_item_kind kind;
    size_t count;
    union {
        int64_t integer;
        double real;
        opscope_tensor *tensor;
        const char *text;
        const struct opscope_item *items;
    } as;
} opscope_item;

/* Releases the tensors of a result, and frees its texts and lists. */
OPSCOPE_API void opscope_item_release(opscope_item *item);

/* ---- open models ---------------------------------------------------------------------------- */

typedef struct opscope_model opscope_model;

OPSCOPE_API int opscope_model_open(const char *path, opscope_model **out);
/* The same over memory of the caller, which must stay until the model and all tensors of its
 * results are gone. Error texts have `name` in place of a path. */
OPSCOPE_API int opscope_model_open_memory(const char *name, void *data, size_t bytes,
                                          opscope_model **out);
/* NULL is allowed. No run may be going on. Results stay valid. */
OPSCOPE_API void opscope_model_close(opscope_model *model);

OPSCOPE_API const char *opscope_model_id(const opscope_model *model);
/* Its archive, for the other entries. It stays the model's. */
OPSCOPE_API opscope_archive *opscope_model_archive(const opscope_model *model);
/* An extra file; its content is valid while the model is open. */
OPSCOPE_API int opscope_model_extra_file(const opscope_model *model, const char *name,
                                         const void **data, size_t *bytes);

/* An input or output: valid while the model is open. */
typedef struct opscope_model_value {
    const char *name;
    const char *type; /* "Tensor", "int", "List[Tensor]", "Optional[float]", "Tuple[str, bool]" */
} opscope_model_value;

OPSCOPE_API size_t opscope_model_input_count(const opscope_model *model);
OPSCOPE_API size_t opscope_model_output_count(const opscope_model *model);
/* OPSCOPE_ERR_NOT_FOUND past the last. */
OPSCOPE_API int opscope_model_input_at(const opscope_model *model, size_t index,
                                       opscope_model_value *out);
OPSCOPE_API int opscope_model_output_at(const opscope_model *model, size_t index,
                                        opscope_model_value *out);

/* ---- runs ------------------------------------------------------------------------------------ */

/* Zero is a run without bounds. */
typedef struct opscope_model_options {
    const char *model_id;    /* NULL: the label that the thread has, else the model's own id */
    const uint32_t *stop;    /* any thread may set it, atomically, to end the run; NULL: none */
    uint64_t rounds_limit;   /* of all loops together; 0: none */
    size_t heap_bytes_limit; /* of texts, lists and tuples; 0: none */
} opscope_model_options;

/* The caller keeps its inputs, and releases each of the results (opscope_item_release), of which
 * `outputs` has room for as many as the model has. `options` NULL: none. */
OPSCOPE_API int opscope_model_run(const opscope_model *model, const opscope_item *inputs,
                                  size_t count, const opscope_model_options *options,
                                  opscope_item *outputs);

OPSCOPE_END_DECLS

#endif
