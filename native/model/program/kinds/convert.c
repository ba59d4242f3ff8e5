/* model/program/kinds/convert.c -- int(), float(), bool() and str(). */
#include <string.h>

#include "model/program/kinds/kinds.h"
#include "model/program/kinds/literal.h"
#include "model/program/show.h"
#include "opscope/status.h"
#include "tensor/core/half.h"

/* int_of_float is beside the roundings. */

int opscope__int_of_int(struct opscope__heap *heap, const struct opscope__value *inputs,
                        struct opscope__value *out)
{
    (void)heap;
    *out = opscope__value_int(inputs[0].as.integer);
    return OPSCOPE_OK;
}

int opscope__float_of_int(struct opscope__heap *heap, const struct opscope__value *inputs,
                          struct opscope__value *out)
{
    (void)heap;
    *out = opscope__value_float((double)inputs[0].as.integer);
    return OPSCOPE_OK;
}

int opscope__float_of_float(struct opscope__heap *heap, const struct opscope__value *inputs,
                            struct opscope__value *out)
{
    (void)heap;
    *out = inputs[0];
    return OPSCOPE_OK;
}

int opscope__bool_of_int(struct opscope__heap *heap, const struct opscope__value *inputs,
                         struct opscope__value *out)
{
    (void)heap;
    *out = opscope__value_bool(inputs[0].as.integer != 0);
    return OPSCOPE_OK;
}

int opscope__bool_of_float(struct opscope__heap *heap, const struct opscope__value *inputs,
                           struct opscope__value *out)
{
    (void)heap;
    *out = opscope__value_bool(inputs[0].as.real != 0);
    return OPSCOPE_OK;
}

/* ---- of a text -------------------------------------------------------------------------------- */

int opscope__int_of_str(struct opscope__heap *heap, const struct opscope__value *inputs,
                        struct opscope__value *out)
{
    (void)heap;
    int64_t number;
    int status = opscope__literal_int(inputs[0].as.text, &number);
    if (status == OPSCOPE_OK) {
        *out = opscope__value_int(number);
    }
    return status;
}

int opscope__float_of_str(struct opscope__heap *heap, const struct opscope__value *inputs,
                          struct opscope__value *out)
{
    (void)heap;
    double number;
    int status = opscope__literal_float(inputs[0].as.text, &number);
    if (status == OPSCOPE_OK) {
        *out = opscope__value_float(number);
    }
    return status;
}

/* ---- of a tensor ------------------------------------------------------------------------------ */

/* The only element, as an INT, BOOL or FLOAT. */
static int element_of(const opscope_tensor *tensor, struct opscope__value *out)
{
    if (opscope_tensor_count(tensor) != 1) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "a tensor of %lld elements is not one number",
                                   (long long)opscope_tensor_count(tensor));
    }
    union {
        float single;
        double real;
        int32_t small;
        int64_t large;
        uint8_t byte;
        uint16_t half;
    } element;
    opscope_dtype dtype = opscope_tensor_dtype(tensor);
    memcpy(&element, opscope_tensor_data(tensor), opscope_dtype_bytes(dtype));
    switch (dtype) {
    case OPSCOPE_FLOAT32:
        *out = opscope__value_float((double)element.single);
        return OPSCOPE_OK;
    case OPSCOPE_FLOAT64:
        *out = opscope__value_float(element.real);
        return OPSCOPE_OK;
    case OPSCOPE_BFLOAT16:
        *out = opscope__value_float((double)opscope__from_bfloat16(element.half));
        return OPSCOPE_OK;
    case OPSCOPE_FLOAT16:
        *out = opscope__value_float((double)opscope__from_float16(element.half));
        return OPSCOPE_OK;
    case OPSCOPE_INT32:
        *out = opscope__value_int(element.small);
        return OPSCOPE_OK;
    case OPSCOPE_INT64:
        *out = opscope__value_int(element.large);
        return OPSCOPE_OK;
    case OPSCOPE_UINT8:
        *out = opscope__value_int(element.byte);
        return OPSCOPE_OK;
    case OPSCOPE_BOOL:
        *out = opscope__value_bool(element.byte != 0);
        return OPSCOPE_OK;
    default:
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "a tensor of unknown dtype");
    }
}

int opscope__int_of_tensor(struct opscope__heap *heap, const struct opscope__value *inputs,
                           struct opscope__value *out)
{
    struct opscope__value element;
    int status = element_of(inputs[0].as.tensor, &element);
    return status != OPSCOPE_OK                   ? status
           : element.kind == OPSCOPE__VALUE_FLOAT ? opscope__int_of_float(heap, &element, out)
                                                  : opscope__int_of_int(heap, &element, out);
}

int opscope__float_of_tensor(struct opscope__heap *heap, const struct opscope__value *inputs,
                             struct opscope__value *out)
{
    struct opscope__value element;
    int status = element_of(inputs[0].as.tensor, &element);
    return status != OPSCOPE_OK                   ? status
           : element.kind == OPSCOPE__VALUE_FLOAT ? opscope__float_of_float(heap, &element, out)
                                                  : opscope__float_of_int(heap, &element, out);
}

int opscope__bool_of_tensor(struct opscope__heap *heap, const struct opscope__value *inputs,
                            struct opscope__value *out)
{
    struct opscope__value element;
    int status = element_of(inputs[0].as.tensor, &element);
    return status != OPSCOPE_OK                   ? status
           : element.kind == OPSCOPE__VALUE_FLOAT ? opscope__bool_of_float(heap, &element, out)
                                                  : opscope__bool_of_int(heap, &element, out);
}

/* ---- to a text -------------------------------------------------------------------------------- */

int opscope__str_of_any(struct opscope__heap *heap, const struct opscope__value *inputs,
                        struct opscope__value *out)
{
    if (inputs[0].kind == OPSCOPE__VALUE_TEXT) {
        *out = opscope__value_retain(&inputs[0]);
        return OPSCOPE_OK;
    }
    char shown[OPSCOPE__SHOWN_BYTES];
    opscope__show_number(&inputs[0], shown);
    struct opscope__text *text = opscope__text_new(heap, shown, strlen(shown));
    if (text == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    *out = opscope__value_text(text);
    return OPSCOPE_OK;
}
