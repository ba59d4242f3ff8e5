/* model/file/values.c -- what an open model tells about itself. */
#include "model/file/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/graph/writer.h"
#include "opscope/status.h"

static char *name_of(const struct opscope__graph_value *value)
{
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)value->number);
    return strdup(value->name != NULL ? value->name : number);
}

static char *type_of(const struct opscope__graph_value *value)
{
    struct opscope__graph_writer writer = {0};
    opscope__graph_write_type(&writer, value->type);
    opscope__graph_write(&writer, "", 1);
    return writer.failed ? (free(writer.text.at), NULL) : writer.text.at;
}

static bool describe(const struct opscope__graph_value *value, opscope_model_value *out)
{
    out->name = name_of(value);
    out->type = type_of(value);
    return out->name != NULL && out->type != NULL;
}

int opscope__model_describe(opscope_model *model)
{
    const struct opscope__graph_block *body = opscope__program_graph(model->program)->body;
    size_t inputs = body->inputs.count, outputs = body->outputs.count;
    model->values = calloc(inputs + outputs + 1, sizeof *model->values);
    bool done = model->values != NULL;
    model->input_count = inputs;
    model->output_count = outputs;
    for (size_t i = 0; done && i < inputs + outputs; i++) {
        done = describe(i < inputs ? body->inputs.at[i] : body->outputs.at[i - inputs].value,
                        &model->values[i]);
    }
    return done ? OPSCOPE_OK
                : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%.200s: out of memory", model->name);
}

const char *opscope_model_id(const opscope_model *model)
{
    return model->id;
}

opscope_archive *opscope_model_archive(const opscope_model *model)
{
    return model->archive;
}

size_t opscope_model_input_count(const opscope_model *model)
{
    return model->input_count;
}

size_t opscope_model_output_count(const opscope_model *model)
{
    return model->output_count;
}

int opscope_model_input_at(const opscope_model *model, size_t index, opscope_model_value *out)
{
    if (index >= model->input_count) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    *out = model->values[index];
    return OPSCOPE_OK;
}

int opscope_model_output_at(const opscope_model *model, size_t index, opscope_model_value *out)
{
    if (index >= model->output_count) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    *out = model->values[model->input_count + index];
    return OPSCOPE_OK;
}

int opscope_model_extra_file(const opscope_model *model, const char *name, const void **data,
                             size_t *bytes)
{
    static const char folder[] = "extra/";
    char *entry = malloc(sizeof folder + strlen(name));
    if (entry == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%.200s: out of memory", model->name);
    }
    strcpy(entry, folder);
    strcat(entry, name);
    int status = opscope_archive_read(model->archive, entry, data, bytes);
    free(entry);
    return status;
}
