/* The bytes are a program over a few tensors: views with any strides that the library accepts,
 * including overlapping ones, and calls of all operators on them, some of which write. A call's
 * arguments have the kinds in its schema, or come from a sample with a change: only samples reach
 * operators whose arguments must match each other. No program may crash, whatever the operators
 * return. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "exact_memory.h"
#include "opscope/autograd.h"
#include "samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TENSOR_LIMIT = 8, COUNT_LIMIT = 2000, DIMS = 4, INTS = 6 };

struct input {
    const uint8_t *data;
    size_t size;
    int64_t common; /* the size of most dimensions, so that tensors match each other */
};

static int take(struct input *input)
{
    if (input->size == 0) {
        return 0;
    }
    input->size--;
    return *input->data++;
}

/* Mostly small; sometimes large enough that sums and products overflow. */
static int64_t take_integer(struct input *input)
{
    static const int64_t extremes[] = {INT64_MAX,        INT64_MIN, INT64_MAX - 1,    INT64_MIN + 1,
                                       INT64_C(1) << 62, INT32_MAX, INT64_C(1) << 32, -INT32_MAX};
    int byte = take(input);
    return byte >= 248 ? extremes[byte - 248] : (int8_t)byte % 9;
}

static double take_real(struct input *input)
{
    static const double extremes[] = {1e308, -1e308, 1e-320, 0.0 / 0.0, 1.0 / 0.0, -1.0 / 0.0};
    int byte = take(input);
    return byte >= 250 ? extremes[byte - 250] : (int8_t)byte / 8.0;
}

static opscope_tensor *make(struct input *input)
{
    static const opscope_dtype usual[] = {OPSCOPE_FLOAT32, OPSCOPE_INT64, OPSCOPE_FLOAT64,
                                          OPSCOPE_BOOL};
    int64_t sizes[DIMS];
    int how = take(input), dims = how % (DIMS + 1);
    for (int i = 0; i < dims; i++) {
        int byte = take(input);
        sizes[i] = byte < 192 ? input->common : byte % 6;
    }
    how = take(input);
    opscope_dtype dtype =
        how < 192 ? usual[how < 96 ? 0 : how / 32 - 2] : (opscope_dtype)(how % OPSCOPE_DTYPE_COUNT);
    opscope_tensor *out = NULL;
    if (opscope_tensor_empty(dims, sizes, dtype, NULL, &out) != OPSCOPE_OK) {
        abort();
    }
    uint8_t *bytes = opscope_tensor_storage_data(out);
    bool is_bool = opscope_tensor_dtype(out) == OPSCOPE_BOOL;
    /* Small whole numbers as often as any bits: they are valid indices, and exact gradients. */
    bool is_plain = take(input) % 2 != 0;
    for (size_t i = 0; i < opscope_tensor_storage_bytes(out); i++) {
        bytes[i] = (uint8_t)(is_plain ? 0 : take(input) & (is_bool ? 1 : 255));
    }
    if (is_plain && opscope_tensor_count(out) > 0) {
        opscope_argument fill[] = {{OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = out}},
                                   {OPSCOPE_ARGUMENT_INT, 0, {.integer = take(input) % 4}}};
        opscope_tensor *same = NULL;
        if (opscope_call(opscope_operator_find("core::fill_"), fill, 2, &same) == OPSCOPE_OK) {
            opscope_tensor_release(same);
        }
    }
    if (take(input) % 2 != 0) {
        opscope_tensor_set_requires_grad(out, true);
    }
    return out;
}

/* The base's own sizes, with dimensions exchanged or reversed, as the bits of `how` say. */
static int64_t turn(const opscope_tensor *base, int how, int64_t *sizes, int64_t *strides)
{
    int dims = opscope_tensor_dims(base);
    int64_t offset = 0;
    for (int i = 0; i < dims; i++) {
        int from = (how & 1) != 0 ? dims - 1 - i : i;
        sizes[i] = opscope_tensor_sizes(base)[from];
        strides[i] = opscope_tensor_strides(base)[from];
        if ((how >> (i + 1) & 1) != 0 && sizes[i] > 0) {
            offset += (sizes[i] - 1) * strides[i];
            strides[i] = -strides[i];
        }
    }
    return offset;
}

static opscope_tensor *view(struct input *input, opscope_tensor *base)
{
    int64_t sizes[DIMS], strides[DIMS], offset;
    int how = take(input), dims = how % (DIMS + 1);
    if (how >= 128) {
        dims = opscope_tensor_dims(base);
        offset = turn(base, how, sizes, strides);
    } else {
        for (int i = 0; i < dims; i++) {
            sizes[i] = take(input) % 6;
            strides[i] = (int8_t)take(input) % 16;
        }
        offset = take(input) % 32;
    }
    opscope_tensor *out = NULL;
    return opscope_tensor_as_strided(base, dims, sizes, strides, offset, &out) == OPSCOPE_OK
               ? out
               : opscope_tensor_retain(base);
}

/* A variant of the tensors and whole numbers of one sample. */
struct sample_variant {
    struct input *input;
    opscope_dtype floats;
    int64_t from, to; /* a number in the line and its replacement, so that sizes keep matching */
    bool is_once;     /* replaces only the first one, so that sizes no longer match */
};

static int64_t vary_whole(void *user, int64_t written)
{
    struct sample_variant *variant = user;
    if (written != variant->from) {
        return written;
    }
    if (variant->is_once) {
        variant->from = INT64_MAX;
    }
    return variant->to;
}

/* Indices within their bound and plain numbers; one of them may be invalid. */
static void fill(struct input *input, double *values, int64_t count, int64_t bound)
{
    uint32_t state = (uint32_t)take(input);
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        values[i] = bound > 0 ? (double)((state >> 8) % bound) : ((state >> 8) % 65 - 32.0) / 8;
    }
    int odd = take(input);
    if (odd >= 224 && count > 0) {
        values[odd % count] = take_real(input);
    }
}

static opscope_tensor *make_sample(void *user, int dims, const int64_t *sizes, opscope_dtype dtype,
                                   int64_t bound)
{
    struct sample_variant *variant = user;
    int64_t laid[OPSCOPE_DIM_LIMIT], turned[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    int how = take(variant->input) - 128; /* below 0: unchanged */
    how = how < 0 ? 0 : how;
    for (int i = 0; i < dims; i++) {
        laid[i] = sizes[(how & 1) != 0 ? dims - 1 - i : i];
    }
    opscope_tensor *plain = NULL, *typed = NULL, *out = NULL;
    if (opscope_tensor_empty(dims, laid, OPSCOPE_FLOAT64, NULL, &plain) != OPSCOPE_OK) {
        return NULL;
    }
    fill(variant->input, opscope_tensor_storage_data(plain), opscope_tensor_count(plain), bound);
    opscope_argument to[] = {
        {OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = plain}},
        {OPSCOPE_ARGUMENT_INT, 0, {.integer = dtype == OPSCOPE_FLOAT32 ? variant->floats : dtype}}};
    if (opscope_call(opscope_operator_find("core::to"), to, 2, &typed) == OPSCOPE_OK) {
        int64_t offset = turn(typed, how, turned, strides);
        if (how >= 64 && dims > 0) {
            strides[how % dims] = 0; /* expanded */
        }
        (void)opscope_tensor_as_strided(typed, dims, turned, strides, offset, &out);
    }
    opscope_tensor_release(typed);
    opscope_tensor_release(plain);
    if (out != NULL && take(variant->input) % 2 != 0) {
        opscope_tensor_set_requires_grad(out, true);
    }
    return out;
}

static bool take_sample(struct input *input, const opscope_operator *op, struct sample *out)
{
    const char *lines = opscope__operator_spec(op)->samples, *line = lines;
    for (int skipped = take(input) % 16; line != NULL && skipped > 0; skipped--) {
        line = sample_next(line) != NULL ? sample_next(line) : lines;
    }
    int how = take(input);
    struct sample_variant variant = {
        .input = input,
        .floats = how < 192   ? OPSCOPE_FLOAT32
                  : how < 240 ? OPSCOPE_FLOAT64
                              : (opscope_dtype)(how % 8),
        .from = take(input) % 8,
        .is_once = how % 2 != 0,
    };
    int to = take(input);
    variant.to = to < 32 ? variant.from : to < 224 ? to % 8 : take_integer(input);
    struct sample_source source = {&variant, make_sample, vary_whole};
    return line != NULL && sample_read(line, opscope__operator_schema(op), &source, out);
}

static opscope_argument argument_of(struct input *input, opscope_argument_kind kind,
                                    opscope_tensor *const *tensors, int64_t *integers)
{
    static const char *const texts[] = {"mean", "sum", "none",     "",
                                        "tanh", "ij",  "constant", "\xff"};
    opscope_argument out = {kind, 0, {0}};
    switch (kind) {
    case OPSCOPE_ARGUMENT_TENSOR:
        out.as.tensor = tensors[take(input) % TENSOR_LIMIT];
        break;
    case OPSCOPE_ARGUMENT_TENSORS:
        out.count = (uint32_t)(take(input) % 4);
        out.as.tensors = tensors + take(input) % (TENSOR_LIMIT - 3);
        break;
    case OPSCOPE_ARGUMENT_INT:
        out.as.integer = take_integer(input);
        break;
    case OPSCOPE_ARGUMENT_BOOL:
        out.as.integer = take(input) % 2;
        break;
    case OPSCOPE_ARGUMENT_FLOAT:
        out.as.real = take_real(input);
        break;
    case OPSCOPE_ARGUMENT_INTS:
        out.count = (uint32_t)(take(input) % INTS);
        for (uint32_t i = 0; i < out.count; i++) {
            integers[i] = take_integer(input);
        }
        out.as.integers = integers;
        break;
    case OPSCOPE_ARGUMENT_TEXT:
        out.as.text = texts[take(input) % 8];
        break;
    case OPSCOPE_ARGUMENT_NONE:
        break;
    }
    return out;
}

static opscope_argument_kind kind_of(struct input *input,
                                     const struct opscope__parameter *parameter)
{
    int byte = take(input);
    if (byte % 16 == 0) {
        return (opscope_argument_kind)(byte / 16 % (OPSCOPE_ARGUMENT_BOOL + 1)); /* any kind */
    }
    if (parameter->optional && byte % 16 < 5) {
        return OPSCOPE_ARGUMENT_NONE;
    }
    switch (parameter->type) {
    case OPSCOPE__TYPE_TENSOR:
        return OPSCOPE_ARGUMENT_TENSOR;
    case OPSCOPE__TYPE_TENSORS:
        return OPSCOPE_ARGUMENT_TENSORS;
    case OPSCOPE__TYPE_INTS:
        return OPSCOPE_ARGUMENT_INTS;
    case OPSCOPE__TYPE_INT_OR_INTS:
        return byte % 2 != 0 ? OPSCOPE_ARGUMENT_INTS : OPSCOPE_ARGUMENT_INT;
    case OPSCOPE__TYPE_FLOAT:
        return OPSCOPE_ARGUMENT_FLOAT;
    case OPSCOPE__TYPE_SCALAR:
        return byte % 2 != 0 ? OPSCOPE_ARGUMENT_FLOAT : OPSCOPE_ARGUMENT_INT;
    case OPSCOPE__TYPE_TEXT:
        return OPSCOPE_ARGUMENT_TEXT;
    case OPSCOPE__TYPE_BOOL:
        return OPSCOPE_ARGUMENT_BOOL;
    case OPSCOPE__TYPE_INT:
    case OPSCOPE__TYPE_DTYPE:
        return OPSCOPE_ARGUMENT_INT;
    }
    return OPSCOPE_ARGUMENT_NONE;
}

/* Calls it and returns the first of its outputs, or NULL. */
static opscope_tensor *first_output(struct input *input, const opscope_operator *op,
                                    const opscope_argument *arguments, size_t count,
                                    opscope_tensor *const *tensors)
{
    opscope_tensor *outputs[OPSCOPE_OUTPUT_LIMIT] = {NULL}, *into[OPSCOPE_OUTPUT_LIMIT];
    opscope_tensor_list list = {NULL, 0};
    int how = take(input);
    if (opscope__operator_schema(op)->output_is_list && how % 16 != 0) {
        if (opscope_call_list(op, arguments, count, &list) == OPSCOPE_OK && list.count > 0) {
            outputs[0] = opscope_tensor_retain(list.tensors[(size_t)how % list.count]);
        }
        opscope_tensor_list_release(&list);
    } else if (how % 16 == 1) {
        for (int i = 0; i < OPSCOPE_OUTPUT_LIMIT; i++) {
            into[i] = opscope_tensor_retain(tensors[take(input) % TENSOR_LIMIT]);
        }
        (void)opscope_call_out(op, arguments, count, into);
        for (int i = 0; i < OPSCOPE_OUTPUT_LIMIT; i++) {
            opscope_tensor_release(into[i]);
        }
    } else if (opscope_call(op, arguments, count, outputs) != OPSCOPE_OK) {
        return NULL;
    }
    for (int i = 1; i < OPSCOPE_OUTPUT_LIMIT; i++) {
        opscope_tensor_release(outputs[i]);
    }
    return outputs[0];
}

/* The first output of the call becomes one of the tensors if it is small. */
static void call(struct input *input, opscope_tensor **tensors)
{
    int64_t integers[OPSCOPE_ARGUMENT_LIMIT][INTS];
    opscope_argument arguments[OPSCOPE_ARGUMENT_LIMIT];
    size_t number = (size_t)take(input) * 256;
    const opscope_operator *op =
        opscope_operator_at((number + (size_t)take(input)) % opscope_operator_count());
    const struct opscope__schema *schema = opscope__operator_schema(op);
    struct sample sample = {.count = 0};
    bool is_sample = take(input) % 2 != 0 && take_sample(input, op, &sample);
    size_t count = is_sample ? sample.count : schema->count;
    while (!is_sample && count > 0 && schema->parameters[count - 1].has_default &&
           take(input) % 3 != 0) {
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        arguments[i] =
            is_sample && take(input) % 16 != 1
                ? sample.arguments[i]
                : argument_of(input, kind_of(input, &schema->parameters[i]), tensors, integers[i]);
    }
    opscope_tensor *root = first_output(input, op, arguments, count, tensors);
    if (is_sample) {
        sample_release(&sample);
    }
    if (root == NULL) {
        return;
    }
    bool is_small = opscope_tensor_count(root) <= COUNT_LIMIT;
    int backward = take(input);
    if (is_small && backward % 4 == 0 && opscope_tensor_requires_grad(root)) {
        /* A gradient of the root's shape: the root itself, or a tensor that may have any other
         * shape. */
        opscope_tensor *gradient = backward % 8 == 0 ? root : tensors[backward / 8 % TENSOR_LIMIT];
        (void)opscope_backward(&root, backward % 16 == 4 ? NULL : &gradient, 1, backward % 3 == 0,
                               false);
    }
    opscope_tensor **place = &tensors[take(input) % TENSOR_LIMIT];
    if (is_small) {
        opscope_tensor *before = *place;
        *place = root;
        root = before;
    }
    opscope_tensor_release(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size, 1};
    input.common = 1 + take(&input) % 3;
    opscope_tensor *tensors[TENSOR_LIMIT];
    opscope_allocator_set_default(&exact_memory);
    opscope_tensor_seed(1);
    for (int i = 0; i < TENSOR_LIMIT; i++) {
        tensors[i] =
            i < TENSOR_LIMIT / 2 ? make(&input) : view(&input, tensors[i - TENSOR_LIMIT / 2]);
    }
    for (int step = 0; step < 16 && input.size > 0; step++) {
        call(&input, tensors);
    }
    for (int i = 0; i < TENSOR_LIMIT; i++) {
        opscope_tensor_release(tensors[i]);
    }
    return 0;
}
