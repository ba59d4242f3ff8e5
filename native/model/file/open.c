/* model/file/open.c -- the life of an open model: from an archive to a program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/document/json.h"
#include "model/file/document.h"
#include "model/file/values.h"
#include "model/graph/text.h"
#include "model/program/culprit.h"
#include "opscope/status.h"

/* What a program is made of, as the document lists it. */
struct parts {
    struct opscope__graph_function *functions;
    size_t function_count;
    struct opscope__program_attribute *attributes;
    size_t attribute_count;
    opscope_tensor **tensors;
    size_t tensor_count;
    const char *entry;
};

static int no_memory(const opscope_model *model)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%.200s: out of memory", model->name);
}

/* ---- entries ------------------------------------------------------------------------------------ */

static int check_text(const opscope_model *model, const char *entry, const char *wanted)
{
    const void *data;
    size_t bytes;
    int status = opscope_archive_read(model->archive, entry, &data, &bytes);
    if (status != OPSCOPE_OK) {
        return status;
    }
    const char *text = data;
    size_t length = strlen(wanted);
    bool is_it = bytes >= length && memcmp(text, wanted, length) == 0 &&
                 (bytes == length || (bytes == length + 1 && text[length] == '\n'));
    return is_it ? OPSCOPE_OK : opscope__model_fail(model, entry, "it is not \"%s\"", wanted);
}

static int read_graph(const opscope_model *model, const char *name,
                      struct opscope__graph_function *out)
{
    static const char before[] = "graph/", behind[] = ".ir";
    const void *data;
    size_t bytes, length = strlen(name);
    char *entry = malloc(sizeof before + length + sizeof behind);
    if (entry == NULL) {
        return no_memory(model);
    }
    strcpy(entry, before);
    strcat(entry, name);
    strcat(entry, behind);
    int status = opscope_archive_read(model->archive, entry, &data, &bytes);
    if (status == OPSCOPE_OK) {
        *out = (struct opscope__graph_function){.name = name};
        status = opscope__graph_parse(data, bytes, OPSCOPE__GRAPH_USUAL_BYTES, &out->graph);
        if (status != OPSCOPE_OK && status != OPSCOPE_ERR_NO_MEMORY) {
            status = opscope__model_fail(model, entry, "%s", opscope_tensor_error());
        }
    }
    free(entry);
    return status;
}

/* ---- the document ------------------------------------------------------------------------------- */

static int compare_texts(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* Names in order, none twice: a graph that is named often would be read as often. */
static int check_names(const opscope_model *model, const struct opscope__item *list,
                       const char **names)
{
    for (uint32_t i = 0; i < list->count; i++) {
        names[i] = opscope__field_text(model, list->as.items[i]);
        if (names[i] == NULL) {
            return OPSCOPE_ERR_INVALID;
        }
    }
    qsort(names, list->count, sizeof *names, compare_texts);
    for (uint32_t i = 1; i < list->count; i++) {
        if (strcmp(names[i], names[i - 1]) == 0) {
            return opscope__model_fail(model, OPSCOPE__MODEL_DOCUMENT,
                                       "the function \"%.100s\" is listed twice", names[i]);
        }
    }
    return OPSCOPE_OK;
}

static int read_functions(const opscope_model *model, const struct opscope__item *list,
                          struct parts *out)
{
    const char **names = calloc((size_t)list->count + 1, sizeof *names);
    out->functions = calloc((size_t)list->count + 1, sizeof *out->functions);
    int status = names != NULL && out->functions != NULL ? check_names(model, list, names)
                                                         : no_memory(model);
    for (uint32_t i = 0; status == OPSCOPE_OK && i < list->count; i++) {
        status = read_graph(model, names[i], &out->functions[i]);
        out->function_count += status == OPSCOPE_OK;
    }
    free(names);
    return status;
}

static int read_attributes(const opscope_model *model, const struct opscope__item *map,
                           struct parts *out)
{
    const struct opscope__pair *pairs = opscope__item_pairs(map);
    out->attributes = calloc((size_t)map->count + 1, sizeof *out->attributes);
    if (out->attributes == NULL) {
        return no_memory(model);
    }
    for (uint32_t i = 0; i < map->count; i++) {
        const char *name = opscope__field_text(model, pairs[i].key);
        const struct opscope__item *number = pairs[i].value;
        if (name == NULL) {
            return OPSCOPE_ERR_INVALID;
        }
        if (number->kind != OPSCOPE__ITEM_INT || number->as.integer < 0 ||
            (uint64_t)number->as.integer >= out->tensor_count) {
            return opscope__model_fail(model, OPSCOPE__MODEL_DOCUMENT,
                                       "the attribute \"%.100s\" is no tensor's number", name);
        }
        out->attributes[out->attribute_count++] =
            (struct opscope__program_attribute){name, out->tensors[number->as.integer]};
    }
    return OPSCOPE_OK;
}

static int read_parts(opscope_model *model, const struct opscope__item *root, struct parts *out)
{
    const struct opscope__item *about, *tensors, *id, *entry, *functions, *attributes;
    if ((about = opscope__field(model, root, "model", OPSCOPE__ITEM_MAP)) == NULL ||
        (tensors = opscope__field(model, root, "tensors", OPSCOPE__ITEM_LIST)) == NULL ||
        (id = opscope__field(model, about, "id", OPSCOPE__ITEM_TEXT)) == NULL ||
        (entry = opscope__field(model, about, "entry", OPSCOPE__ITEM_TEXT)) == NULL ||
        (functions = opscope__field(model, about, "functions", OPSCOPE__ITEM_LIST)) == NULL ||
        (attributes = opscope__field(model, about, "attributes", OPSCOPE__ITEM_MAP)) == NULL ||
        opscope__field_text(model, id) == NULL ||
        (out->entry = opscope__field_text(model, entry)) == NULL) {
        return OPSCOPE_ERR_INVALID;
    }
    model->id = strdup(id->as.text);
    int status =
        model->id != NULL ? opscope__file_tensors(model, tensors, &out->tensors) : no_memory(model);
    if (status == OPSCOPE_OK) {
        out->tensor_count = tensors->count;
        status = read_attributes(model, attributes, out);
    }
    return status == OPSCOPE_OK ? read_functions(model, functions, out) : status;
}

/* ---- the program -------------------------------------------------------------------------------- */

/* Names the entry of the function that cannot run. */
static int blame(const opscope_model *model, const struct opscope__program_source *source)
{
    char entry[256];
    const char *culprit = opscope__program_culprit(source);
    if (culprit == NULL) {
        return opscope__model_fail(model, OPSCOPE__MODEL_DOCUMENT, "%s", opscope_tensor_error());
    }
    snprintf(entry, sizeof entry, "graph/%.200s.ir", culprit);
    return opscope__model_fail(model, entry, "%s", opscope_tensor_error());
}

static int make_program(opscope_model *model, const struct opscope__item *root)
{
    struct parts parts = {0};
    int status = read_parts(model, root, &parts);
    if (status == OPSCOPE_OK) {
        const struct opscope__program_source source = {.functions = parts.functions,
                                                       .function_count = parts.function_count,
                                                       .attributes = parts.attributes,
                                                       .attribute_count = parts.attribute_count,
                                                       .entry = parts.entry};
        status = opscope__program_new(&source, &model->program);
        if (status != OPSCOPE_OK && status != OPSCOPE_ERR_NO_MEMORY) {
            status = blame(model, &source);
        }
    }
    for (size_t i = 0; i < parts.function_count; i++) {
        opscope__graph_release(parts.functions[i].graph);
    }
    free(parts.functions);
    free(parts.attributes);
    opscope__file_tensors_release(parts.tensors, parts.tensor_count);
    return status;
}

static int read_model(opscope_model *model)
{
    const uint16_t one = 1;
    const void *data;
    size_t bytes;
    int status = check_text(model, "version", "1");
    if (status == OPSCOPE_OK) {
        status = check_text(model, "byteorder", *(const uint8_t *)&one == 1 ? "little" : "big");
    }
    if (status == OPSCOPE_OK) {
        status = opscope_archive_read(model->archive, OPSCOPE__MODEL_DOCUMENT, &data, &bytes);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct opscope__document *document;
    status = opscope__json_parse(data, bytes, &document);
    if (status != OPSCOPE_OK) {
        return status == OPSCOPE_ERR_NO_MEMORY ? status
                                               : opscope__model_fail(model, OPSCOPE__MODEL_DOCUMENT,
                                                                     "%s", opscope_tensor_error());
    }
    status = make_program(model, opscope__document_root(document));
    opscope__document_release(document);
    return status == OPSCOPE_OK ? opscope__model_describe(model) : status;
}

void opscope_model_close(opscope_model *model)
{
    if (model == NULL) {
        return;
    }
    for (size_t i = 0; model->values != NULL && i < model->input_count + model->output_count; i++) {
        free((void *)(uintptr_t)model->values[i].name);
        free((void *)(uintptr_t)model->values[i].type);
    }
    free(model->values);
    opscope__program_release(model->program);
    opscope_archive_close(model->archive);
    free(model->id);
    free(model->name);
    free(model);
}

/* Takes the archive, also on failure. */
static int open_archived(const char *name, opscope_archive *archive, opscope_model **out)
{
    opscope_model *model = calloc(1, sizeof *model);
    if (model == NULL) {
        opscope_archive_close(archive);
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%.200s: out of memory", name);
    }
    model->archive = archive;
    model->name = strdup(name);
    int status = model->name != NULL
                     ? read_model(model)
                     : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%.200s: out of memory", name);
    if (status != OPSCOPE_OK) {
        opscope_model_close(model);
        return status;
    }
    *out = model;
    return OPSCOPE_OK;
}

int opscope_model_open(const char *path, opscope_model **out)
{
    opscope_archive *archive;
    int status = opscope_archive_open(path, &archive);
    return status == OPSCOPE_OK ? open_archived(path, archive, out) : status;
}

int opscope_model_open_memory(const char *name, void *data, size_t bytes, opscope_model **out)
{
    opscope_archive *archive;
    int status = opscope_archive_open_memory(name, data, bytes, &archive);
    return status == OPSCOPE_OK ? open_archived(name, archive, out) : status;
}
