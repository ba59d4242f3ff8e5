/* tests/native/tensor/samples.h -- the operators' sample calls (tensor/core/operator.h), read in C.
 *
 * An expression is replaced by its first tensor, without the arithmetic after it: sizes, dtypes and
 * the other arguments are as in Python, but values are not.
 */
#ifndef OPSCOPE_TESTS_SAMPLES_H
#define OPSCOPE_TESTS_SAMPLES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/core/registry.h"

enum { SAMPLE_TENSORS = 8, SAMPLE_INTEGERS = 64, SAMPLE_WORD = 32 };

struct sample {
    opscope_argument arguments[OPSCOPE_ARGUMENT_LIMIT];
    size_t count;
    /* Memory of the fields above. */
    opscope_tensor *tensors[SAMPLE_TENSORS];
    size_t tensor_count;
    int64_t integers[SAMPLE_INTEGERS];
    size_t integer_count;
    char text[SAMPLE_WORD];
};

struct sample_source {
    void *user;
    /* Makes a tensor of floats for `bound` 0, else of whole numbers from 0 up to but excluding it.
     * May fail: NULL. */
    opscope_tensor *(*make)(void *user, int dims, const int64_t *sizes, opscope_dtype dtype,
                            int64_t bound);
    /* Replaces a whole number of the line: sizes, dimensions, bounds. */
    int64_t (*whole)(void *user, int64_t written);
};

struct sample__reader {
    const char *at;
    const struct sample_source *source;
    struct sample *sample;
};

static inline bool sample__skip(struct sample__reader *reader, char wanted)
{
    reader->at += strspn(reader->at, " ");
    if (*reader->at != wanted) {
        return false;
    }
    reader->at++;
    return true;
}

static inline bool sample__ended(const struct sample__reader *reader)
{
    return *reader->at == '\n' || *reader->at == '\0';
}

/* Skips to the end of the argument or list item that began within `depth` parentheses. */
static inline void sample__skip_rest(struct sample__reader *reader, int depth)
{
    for (; !sample__ended(reader); reader->at++) {
        char c = *reader->at;
        if (depth == 0 && (c == ',' || c == ']' || c == ')')) {
            return;
        }
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    }
}

static inline void sample__word(struct sample__reader *reader, char *word)
{
    size_t length =
        strspn(reader->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    size_t kept = length < SAMPLE_WORD ? length : SAMPLE_WORD - 1;
    memcpy(word, reader->at, kept);
    word[kept] = '\0';
    reader->at += length;
}

static inline bool sample__dtype(const char *name, opscope_dtype *out)
{
    for (int i = 0; i < OPSCOPE_DTYPE_COUNT; i++) {
        if (strcmp(name, opscope_dtype_name((opscope_dtype)i)) == 0) {
            *out = (opscope_dtype)i;
            return true;
        }
    }
    return false;
}

static inline int64_t sample__whole(struct sample__reader *reader)
{
    char *end;
    int64_t written = strtoll(reader->at, &end, 10);
    reader->at = end;
    return reader->source->whole != NULL ? reader->source->whole(reader->source->user, written)
                                         : written;
}

/* "(3, 4)" after t, p, c, i or b; "(bound, 3, 4)" after index. */
static inline bool sample__tensor(struct sample__reader *reader, const char *maker,
                                  opscope_argument *out)
{
    struct sample *sample = reader->sample;
    int64_t sizes[OPSCOPE_DIM_LIMIT], bound = strchr("ib", *maker) != NULL ? 2 : 0;
    opscope_dtype dtype = bound == 0      ? OPSCOPE_FLOAT32
                          : *maker == 'b' ? OPSCOPE_BOOL
                                          : OPSCOPE_INT64;
    int dims = 0;
    if (!sample__skip(reader, '(') || sample->tensor_count == SAMPLE_TENSORS) {
        return false;
    }
    if (strcmp(maker, "index") == 0) {
        bound = sample__whole(reader);
        (void)sample__skip(reader, ',');
    }
    while (!sample__skip(reader, ')')) {
        if (sample__ended(reader) || dims == OPSCOPE_DIM_LIMIT) {
            return false;
        }
        sizes[dims++] = sample__whole(reader);
        (void)sample__skip(reader, ',');
    }
    char word[SAMPLE_WORD];
    if (sscanf(reader->at, ".astype('%31[a-z0-9]", word) == 1 && !sample__dtype(word, &dtype)) {
        return false;
    }
    opscope_tensor *made = reader->source->make(reader->source->user, dims, sizes, dtype, bound);
    *out = (opscope_argument){OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = made}};
    sample->tensors[sample->tensor_count] = made;
    sample->tensor_count += made != NULL;
    return made != NULL;
}

static inline bool sample__named(struct sample__reader *reader, opscope_argument *out)
{
    char word[SAMPLE_WORD];
    opscope_dtype dtype;
    sample__word(reader, word);
    if (strcmp(word, "None") == 0) {
        *out = (opscope_argument){OPSCOPE_ARGUMENT_NONE, 0, {0}};
    } else if (strcmp(word, "True") == 0 || strcmp(word, "False") == 0) {
        *out = (opscope_argument){OPSCOPE_ARGUMENT_BOOL, 0, {.integer = *word == 'T'}};
    } else if (sample__dtype(word, &dtype)) {
        *out = (opscope_argument){OPSCOPE_ARGUMENT_INT, 0, {.integer = (int64_t)dtype}};
    } else {
        return sample__tensor(reader, word, out);
    }
    return true;
}

static inline bool sample__number(struct sample__reader *reader, opscope_argument *out)
{
    size_t length = strspn(reader->at, "+-0123456789");
    if (length > 0 && reader->at[length] == '.') {
        char *end;
        *out = (opscope_argument){OPSCOPE_ARGUMENT_FLOAT, 0, {.real = strtod(reader->at, &end)}};
        reader->at = end;
    } else if (length > 0) {
        *out = (opscope_argument){OPSCOPE_ARGUMENT_INT, 0, {.integer = sample__whole(reader)}};
    }
    return length > 0;
}

/* A number, a text or a name, or one of these in parentheses. */
static inline bool sample__item(struct sample__reader *reader, opscope_argument *out)
{
    int depth = 0;
    while (sample__skip(reader, '(')) {
        depth++;
    }
    if (sample__skip(reader, '\'')) {
        sample__word(reader, reader->sample->text);
        *out = (opscope_argument){OPSCOPE_ARGUMENT_TEXT, 0, {.text = reader->sample->text}};
        return sample__skip(reader, '\'');
    }
    bool is_read = sample__number(reader, out) || sample__named(reader, out);
    sample__skip_rest(reader, depth);
    return is_read;
}

/* Of whole numbers or of tensors. */
static inline bool sample__list(struct sample__reader *reader, opscope_argument *out)
{
    struct sample *sample = reader->sample;
    out->kind = OPSCOPE_ARGUMENT_INTS;
    out->count = 0;
    out->as.integers = &sample->integers[sample->integer_count];
    for (; !sample__skip(reader, ']'); (void)sample__skip(reader, ',')) {
        opscope_argument item;
        if (sample__ended(reader) || !sample__item(reader, &item)) {
            return false;
        }
        if (item.kind == OPSCOPE_ARGUMENT_TENSOR) {
            out->kind = OPSCOPE_ARGUMENT_TENSORS;
            out->as.tensors = &sample->tensors[sample->tensor_count - 1 - out->count];
        } else if (item.kind == OPSCOPE_ARGUMENT_INT && sample->integer_count < SAMPLE_INTEGERS) {
            sample->integers[sample->integer_count++] = item.as.integer;
        } else {
            return false;
        }
        out->count++;
    }
    return true;
}

/* A single whole number for a schema's int[N]: repeats it N times, as Python's binding does. */
static inline bool sample__repeat(struct sample *sample, const struct opscope__parameter *parameter,
                                  opscope_argument *argument)
{
    int64_t number = argument->as.integer, *integers = &sample->integers[sample->integer_count];
    uint8_t length = parameter->length > 0 ? parameter->length : 1;
    if (argument->kind != OPSCOPE_ARGUMENT_INT || parameter->type != OPSCOPE__TYPE_INTS) {
        return true;
    }
    if (sample->integer_count + length > SAMPLE_INTEGERS) {
        return false;
    }
    for (uint8_t i = 0; i < length; i++) {
        integers[i] = number;
    }
    sample->integer_count += length;
    *argument = (opscope_argument){OPSCOPE_ARGUMENT_INTS, length, {.integers = integers}};
    return true;
}

/* The argument for "name=", with defaults before it; without a name, the next one. */
static inline opscope_argument *sample__place(struct sample__reader *reader,
                                              const struct opscope__schema *schema)
{
    struct sample *sample = reader->sample;
    char word[SAMPLE_WORD];
    const char *start = reader->at;
    sample__word(reader, word);
    if (*word == '\0' || *reader->at != '=') {
        reader->at = start;
        return sample->count < schema->count ? &sample->arguments[sample->count++] : NULL;
    }
    reader->at++;
    for (; sample->count < schema->count; sample->count++) {
        const struct opscope__parameter *parameter = &schema->parameters[sample->count];
        if (strcmp(parameter->name, word) == 0) {
            return &sample->arguments[sample->count++];
        }
        if (!parameter->has_default) {
            return NULL;
        }
        sample->arguments[sample->count] = parameter->otherwise;
    }
    return NULL;
}

static inline void sample_release(struct sample *sample)
{
    for (size_t i = 0; i < sample->tensor_count; i++) {
        opscope_tensor_release(sample->tensors[i]);
    }
}

/* False, with nothing to release, if a tensor could not be made. The sample must not move. */
static inline bool sample_read(const char *line, const struct opscope__schema *schema,
                               const struct sample_source *source, struct sample *out)
{
    struct sample__reader reader = {line, source, out};
    out->count = out->tensor_count = out->integer_count = 0;
    while (!sample__ended(&reader)) {
        reader.at += strspn(reader.at, " ");
        opscope_argument *place = sample__place(&reader, schema);
        bool is_read = place != NULL && (sample__skip(&reader, '[') ? sample__list(&reader, place)
                                                                    : sample__item(&reader, place));
        if (!is_read || !sample__repeat(out, &schema->parameters[place - out->arguments], place)) {
            sample_release(out);
            return false;
        }
        (void)sample__skip(&reader, ',');
    }
    return true;
}

/* The line after this one, or NULL. */
static inline const char *sample_next(const char *line)
{
    const char *end = strchr(line, '\n');
    return end != NULL && end[1] != '\0' ? end + 1 : NULL;
}

#endif
