/* items.c -- see items.h. */
#include "items.h"

#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) != napi_ok) {                                                                   \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

/* ---- from JavaScript ------------------------------------------------------------------------- */

static bool read_item(napi_env env, napi_value value, opscope_item *out);

static bool get_int64(napi_env env, napi_value object, const char *name, int64_t *out)
{
    napi_value field;
    TRY(napi_get_named_property(env, object, name, &field));
    TRY(napi_get_value_int64(env, field, out));
    return true;
}

static bool read_shape(napi_env env, napi_value object, int *dims, int64_t *sizes)
{
    napi_value shape;
    uint32_t count;
    TRY(napi_get_named_property(env, object, "shape", &shape));
    TRY(napi_get_array_length(env, shape, &count));
    if (count > OPSCOPE_DIM_LIMIT) {
        napi_throw_range_error(env, "ERR_OPSCOPE", "a tensor has at most 16 dimensions");
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        napi_value size;
        TRY(napi_get_element(env, shape, i, &size));
        TRY(napi_get_value_int64(env, size, &sizes[i]));
    }
    *dims = (int)count;
    return true;
}

/* types.js has compared shape and dtype with the array, except that its memory may be gone. */
static bool read_tensor(napi_env env, napi_value object, opscope_item *out)
{
    napi_value array;
    napi_typedarray_type type;
    size_t length;
    void *data;
    int64_t dtype, sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT], count = 1;
    int dims;
    TRY(napi_get_named_property(env, object, "data", &array));
    TRY(napi_get_typedarray_info(env, array, &type, &length, &data, NULL, NULL));
    if (!get_int64(env, object, "dtype", &dtype) || !read_shape(env, object, &dims, sizes)) {
        return false;
    }
    for (int i = dims - 1; i >= 0; i--) {
        strides[i] = count;
        count *= sizes[i];
    }
    if (count < 0 || (uint64_t)count != length || (count > 0 && data == NULL)) {
        napi_throw_type_error(env, "ERR_OPSCOPE", "the memory of a tensor is detached");
        return false;
    }
    out->kind = OPSCOPE_ITEM_TENSOR;
    static char nothing;
    if (opscope_tensor_from_memory(data != NULL ? data : &nothing, dims, sizes, strides,
                                   (opscope_dtype)dtype, false, NULL, NULL,
                                   &out->as.tensor) != OPSCOPE_OK) {
        out->kind = OPSCOPE_ITEM_NONE;
        napi_throw_type_error(env, "ERR_OPSCOPE", opscope_tensor_error());
        return false;
    }
    return true;
}

static bool read_text(napi_env env, napi_value value, opscope_item *out)
{
    size_t bytes;
    TRY(napi_get_value_string_utf8(env, value, NULL, 0, &bytes));
    char *text = malloc(bytes + 1);
    if (text == NULL ||
        napi_get_value_string_utf8(env, value, text, bytes + 1, &bytes) != napi_ok) {
        free(text);
        return false;
    }
    out->kind = OPSCOPE_ITEM_TEXT;
    out->count = bytes;
    out->as.text = text;
    return true;
}

static bool read_items(napi_env env, napi_value array, opscope_item *out)
{
    uint32_t count;
    TRY(napi_get_array_length(env, array, &count));
    opscope_item *items = calloc((size_t)count + 1, sizeof *items);
    if (items == NULL) {
        return false;
    }
    out->as.items = items;
    out->count = count;
    for (uint32_t i = 0; i < count; i++) {
        napi_value item;
        TRY(napi_get_element(env, array, i, &item));
        if (!read_item(env, item, &items[i])) {
            return false;
        }
    }
    return true;
}

static bool read_item(napi_env env, napi_value object, opscope_item *out)
{
    int64_t kind;
    napi_value value;
    bool truth, lossless;
    if (!get_int64(env, object, "kind", &kind)) {
        return false;
    }
    if (kind == OPSCOPE_ITEM_TENSOR) {
        return read_tensor(env, object, out);
    }
    TRY(napi_get_named_property(env, object, "value", &value));
    switch ((opscope_item_kind)kind) {
    case OPSCOPE_ITEM_BOOL:
        TRY(napi_get_value_bool(env, value, &truth));
        out->as.integer = truth;
        break;
    case OPSCOPE_ITEM_INT:
    case OPSCOPE_ITEM_DTYPE:
        TRY(napi_get_value_bigint_int64(env, value, &out->as.integer, &lossless));
        break;
    case OPSCOPE_ITEM_FLOAT:
        TRY(napi_get_value_double(env, value, &out->as.real));
        break;
    case OPSCOPE_ITEM_TEXT:
        return read_text(env, value, out);
    case OPSCOPE_ITEM_LIST:
    case OPSCOPE_ITEM_TUPLE:
        out->kind = (opscope_item_kind)kind;
        return read_items(env, value, out);
    default:
        break;
    }
    out->kind = (opscope_item_kind)kind;
    return true;
}

bool inputs_read(napi_env env, napi_value array, struct inputs *out)
{
    opscope_item all = {OPSCOPE_ITEM_NONE, 0, {0}};
    const bool done = read_items(env, array, &all);
    out->items = (opscope_item *)(uintptr_t)all.as.items;
    out->count = all.count;
    if (!done || napi_create_reference(env, array, 1, &out->held) != napi_ok) {
        bool is_pending = false;
        (void)napi_is_exception_pending(env, &is_pending);
        if (!is_pending) {
            napi_throw_error(env, "ERR_OPSCOPE", "the inputs cannot be read");
        }
        return false;
    }
    return true;
}

static void free_item(const opscope_item *item)
{
    if (item->kind == OPSCOPE_ITEM_TENSOR) {
        opscope_tensor_release(item->as.tensor);
    } else if (item->kind == OPSCOPE_ITEM_TEXT) {
        free((void *)(uintptr_t)item->as.text);
    } else if (item->kind == OPSCOPE_ITEM_LIST || item->kind == OPSCOPE_ITEM_TUPLE) {
        for (size_t i = 0; item->as.items != NULL && i < item->count; i++) {
            free_item(&item->as.items[i]);
        }
        free((void *)(uintptr_t)item->as.items);
    }
}

void inputs_free(napi_env env, struct inputs *inputs)
{
    for (size_t i = 0; inputs->items != NULL && i < inputs->count; i++) {
        free_item(&inputs->items[i]);
    }
    free(inputs->items);
    if (inputs->held != NULL) {
        (void)napi_delete_reference(env, inputs->held);
    }
    *inputs = (struct inputs){0};
}

/* ---- to JavaScript --------------------------------------------------------------------------- */

static bool is_of_item(const opscope_item *item, const char *data)
{
    if (item->kind == OPSCOPE_ITEM_TENSOR) {
        const char *start = opscope_tensor_data(item->as.tensor);
        const size_t bytes = (size_t)opscope_tensor_count(item->as.tensor) *
                             opscope_dtype_bytes(opscope_tensor_dtype(item->as.tensor));
        return data >= start && data < start + bytes;
    }
    bool found = false;
    if (item->kind == OPSCOPE_ITEM_LIST || item->kind == OPSCOPE_ITEM_TUPLE) {
        for (size_t i = 0; i < item->count && !found; i++) {
            found = is_of_item(&item->as.items[i], data);
        }
    }
    return found;
}

static bool is_of_inputs(const struct inputs *inputs, const void *data)
{
    bool found = false;
    for (size_t i = 0; i < inputs->count && !found; i++) {
        found = is_of_item(&inputs->items[i], data);
    }
    return found;
}

static void release_tensor(napi_env env, void *data, void *tensor)
{
    (void)env;
    (void)data;
    opscope_tensor_release(tensor);
}

/* The tensor's memory as an ArrayBuffer: without a copy where Node.js allows it and nothing else
 * has that memory, such as the model or another result. */
static napi_value buffer_of(napi_env env, opscope_tensor *tensor, size_t bytes,
                            const struct inputs *inputs)
{
    napi_value buffer;
    void *const data = opscope_tensor_data(tensor);
    void *copy;
    if (bytes > 0 && opscope_tensor_is_alone(tensor) && !is_of_inputs(inputs, data)) {
        opscope_tensor_retain(tensor);
        if (napi_create_external_arraybuffer(env, data, bytes, release_tensor, tensor, &buffer) ==
            napi_ok) {
            return buffer;
        }
        opscope_tensor_release(tensor);
    }
    if (napi_create_arraybuffer(env, bytes, &copy, &buffer) != napi_ok) {
        return NULL;
    }
    if (bytes > 0) {
        memcpy(copy, data, bytes);
    }
    return buffer;
}

static const napi_typedarray_type types[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = napi_float32_array, [OPSCOPE_FLOAT64] = napi_float64_array,
    [OPSCOPE_INT32] = napi_int32_array,     [OPSCOPE_INT64] = napi_bigint64_array,
    [OPSCOPE_UINT8] = napi_uint8_array,     [OPSCOPE_BOOL] = napi_uint8_array,
    [OPSCOPE_BFLOAT16] = napi_uint16_array, [OPSCOPE_FLOAT16] = napi_uint16_array};

static bool shape_of(napi_env env, const opscope_tensor *tensor, napi_value *out)
{
    const int dims = opscope_tensor_dims(tensor);
    TRY(napi_create_array_with_length(env, (size_t)dims, out));
    for (int i = 0; i < dims; i++) {
        napi_value size;
        TRY(napi_create_int64(env, opscope_tensor_sizes(tensor)[i], &size));
        TRY(napi_set_element(env, *out, (uint32_t)i, size));
    }
    return true;
}

/* A contiguous tensor. */
static bool tensor_to_value(napi_env env, opscope_tensor *tensor, const struct inputs *inputs,
                            napi_value *out)
{
    const opscope_dtype dtype = opscope_tensor_dtype(tensor);
    const size_t count = (size_t)opscope_tensor_count(tensor);
    napi_value data, shape, number;
    napi_value buffer = buffer_of(env, tensor, count * opscope_dtype_bytes(dtype), inputs);
    if (buffer == NULL) {
        return false;
    }
    TRY(napi_create_typedarray(env, types[dtype], count, buffer, 0, &data));
    TRY(napi_create_int32(env, (int32_t)dtype, &number));
    TRY(napi_create_object(env, out));
    if (!shape_of(env, tensor, &shape)) {
        return false;
    }
    TRY(napi_set_named_property(env, *out, "data", data));
    TRY(napi_set_named_property(env, *out, "shape", shape));
    TRY(napi_set_named_property(env, *out, "dtype", number));
    return true;
}

static bool any_tensor_to_value(napi_env env, opscope_tensor *tensor, const struct inputs *inputs,
                                napi_value *out)
{
    if (opscope_tensor_is_contiguous(tensor)) {
        return tensor_to_value(env, tensor, inputs, out);
    }
    const opscope_argument argument = {OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = tensor}};
    opscope_tensor *made = NULL;
    const bool done = opscope_call(opscope_operator_find("core::contiguous"), &argument, 1,
                                   &made) == OPSCOPE_OK &&
                      tensor_to_value(env, made, inputs, out);
    opscope_tensor_release(made);
    return done;
}

static bool items_to_value(napi_env env, const opscope_item *item, const struct inputs *inputs,
                           napi_value *out)
{
    TRY(napi_create_array_with_length(env, item->count, out));
    for (size_t i = 0; i < item->count; i++) {
        napi_value part = item_to_value(env, &item->as.items[i], inputs);
        if (part == NULL) {
            return false;
        }
        TRY(napi_set_element(env, *out, (uint32_t)i, part));
    }
    return true;
}

/* Whole numbers beyond 2^53 are BigInts. */
static napi_status integer_to_value(napi_env env, int64_t integer, napi_value *out)
{
    const int64_t exact = INT64_C(1) << 53;
    return integer >= -exact && integer <= exact ? napi_create_int64(env, integer, out)
                                                 : napi_create_bigint_int64(env, integer, out);
}

napi_value item_to_value(napi_env env, const opscope_item *item, const struct inputs *inputs)
{
    napi_value out = NULL;
    bool done = true;
    switch (item->kind) {
    case OPSCOPE_ITEM_BOOL:
        done = napi_get_boolean(env, item->as.integer != 0, &out) == napi_ok;
        break;
    case OPSCOPE_ITEM_INT:
        done = integer_to_value(env, item->as.integer, &out) == napi_ok;
        break;
    case OPSCOPE_ITEM_FLOAT:
        done = napi_create_double(env, item->as.real, &out) == napi_ok;
        break;
    case OPSCOPE_ITEM_DTYPE:
        done = napi_create_string_utf8(env, opscope_dtype_name((opscope_dtype)item->as.integer),
                                       NAPI_AUTO_LENGTH, &out) == napi_ok;
        break;
    case OPSCOPE_ITEM_TENSOR:
        done = any_tensor_to_value(env, item->as.tensor, inputs, &out);
        break;
    case OPSCOPE_ITEM_TEXT:
        done = napi_create_string_utf8(env, item->as.text, item->count, &out) == napi_ok;
        break;
    case OPSCOPE_ITEM_LIST:
    case OPSCOPE_ITEM_TUPLE:
        done = items_to_value(env, item, inputs, &out);
        break;
    default:
        done = napi_get_null(env, &out) == napi_ok;
    }
    return done ? out : NULL;
}
