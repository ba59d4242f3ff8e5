/* model/file/run.c -- runs of an open model, labelled with its id. */
#include <stdlib.h>

#include "model/file/model.h"
#include "opscope/debug_info.h"
#include "opscope/status.h"

static const char LABEL[] = "model_id";

static int to_values(const opscope_model *model, struct opscope__heap *heap,
                     const opscope_item *inputs, struct opscope__value *values, size_t *made)
{
    const struct opscope__graph_values *wanted =
        &opscope__program_graph(model->program)->body->inputs;
    for (; *made < model->input_count; ++*made) {
        int status =
            opscope__item_to_value(heap, &inputs[*made], wanted->at[*made]->type, &values[*made]);
        if (status == OPSCOPE_ERR_INVALID) {
            return opscope_tensor_fail(OPSCOPE_ERROR_TYPE,
                                       "%.100s: the input \"%.60s\" is no %.200s", model->id,
                                       model->values[*made].name, model->values[*made].type);
        }
        if (status != OPSCOPE_OK) {
            return status;
        }
    }
    return OPSCOPE_OK;
}

static int to_items(const opscope_model *model, const struct opscope__value *values,
                    opscope_item *outputs)
{
    for (size_t i = 0; i < model->output_count; i++) {
        int status = opscope__item_of_value(&values[i], &outputs[i]);
        if (status != OPSCOPE_OK) {
            while (i > 0) {
                opscope_item_release(&outputs[--i]);
            }
            return status;
        }
    }
    return OPSCOPE_OK;
}

static int run_labelled(const opscope_model *model, struct opscope__heap *heap,
                        const struct opscope__value *inputs, const opscope_model_options *options,
                        struct opscope__value *outputs)
{
    const struct opscope__run_options run = {.stop = options->stop,
                                             .rounds_limit = options->rounds_limit};
    const char *label = options->model_id;
    if (label == NULL && opscope_debug_info_get(LABEL) == NULL) {
        label = model->id;
    }
    opscope_debug_info_guard guard;
    int status = label != NULL ? opscope_debug_info_push(LABEL, label, &guard) : OPSCOPE_OK;
    if (status != OPSCOPE_OK) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%.100s: no label: %s", model->id,
                                   opscope_status_text(status));
    }
    status = opscope__program_run(model->program, heap, inputs, &run, outputs);
    if (label != NULL) {
        opscope_debug_info_pop(&guard);
    }
    return status;
}

int opscope_model_run(const opscope_model *model, const opscope_item *inputs, size_t count,
                      const opscope_model_options *options, opscope_item *outputs)
{
    static const opscope_model_options usual;
    options = options != NULL ? options : &usual;
    if (count != model->input_count) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%.100s: takes %zu inputs, not %zu",
                                   model->id, model->input_count, count);
    }
    struct opscope__heap heap = {.limit_bytes = options->heap_bytes_limit};
    struct opscope__value *values =
        calloc(model->input_count + model->output_count + 1, sizeof *values);
    if (values == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    struct opscope__value *results = values + model->input_count;
    size_t made = 0;
    int status = to_values(model, &heap, inputs, values, &made);
    if (status == OPSCOPE_OK) {
        status = run_labelled(model, &heap, values, options, results);
    }
    if (status == OPSCOPE_OK) {
        status = to_items(model, results, outputs);
    }
    for (size_t i = 0; i < made; i++) {
        opscope__value_release(&values[i]);
    }
    for (size_t i = 0; i < model->output_count; i++) {
        opscope__value_release(&results[i]);
    }
    free(values);
    return status;
}
