/* tensor/kernels/fused.c -- see tensor/kernels/fused.h. */
#include "tensor/kernels/fused.h"

#include <string.h>

#include "opscope/status.h"
#include "tensor/core/tensor.h"
#include "tensor/kernels/convert.h"
#include "tensor/kernels/parallel.h"

enum {
    STRETCH_BYTES = 4096, /* all places together: 24 KiB, of a first cache of 32 KiB or more */
    /* As in iterate.c: where a vector loop ends must not depend on the threads. */
    WHOLE_VECTORS = 64
};

/* ---- planning ----------------------------------------------------------------------------------- */

static bool is_known(const struct opscope__fused *fused, size_t step)
{
    const struct opscope__fused_step *one = &fused->steps[step];
    const struct opscope__elementwise *spec = one->spec;
    if (spec->apart != 0 || spec->gives_bool || spec->operands == 0 ||
        spec->operands >= OPSCOPE__OPERAND_LIMIT || spec->numbers > OPSCOPE__FUSED_NUMBER_LIMIT) {
        return false;
    }
    for (size_t i = 0; i < spec->operands; i++) {
        const struct opscope__fused_source *source = &one->operands[i];
        if (source->index >= (source->is_step ? step : fused->input_count)) {
            return false;
        }
    }
    for (size_t i = 0; i < spec->numbers; i++) {
        if (one->numbers[i] >= fused->input_count) {
            return false;
        }
    }
    return true;
}

/* Notes what a step takes, for opscope__fused_fits. */
static void note(struct opscope__fused *fused, struct opscope__fused_step *step)
{
    step->takes_step = false;
    step->takes = 0;
    for (size_t k = 0; k < step->spec->operands; k++) {
        const struct opscope__fused_source *source = &step->operands[k];
        step->takes_step = step->takes_step || source->is_step;
        step->takes |= source->is_step ? 0 : UINT32_C(1) << source->index;
    }
    for (size_t k = 0; k < step->spec->numbers; k++) {
        fused->numbers |= UINT32_C(1) << step->numbers[k];
    }
    for (int dtype = 0; dtype < OPSCOPE_DTYPE_COUNT; dtype++) {
        fused->dtypes &= step->spec->loops[dtype] != NULL ? UINT32_MAX : ~(UINT32_C(1) << dtype);
    }
    fused->cost += step->spec->cost;
}

/* The last step that reads a step's result; the step itself if none does. */
static size_t last_reader(const struct opscope__fused *fused, size_t step)
{
    size_t last = step;
    for (size_t i = step + 1; i < fused->step_count; i++) {
        for (size_t k = 0; k < fused->steps[i].spec->operands; k++) {
            const struct opscope__fused_source *source = &fused->steps[i].operands[k];
            last = source->is_step && source->index == step ? i : last;
        }
    }
    return last;
}

bool opscope__fused_plan(struct opscope__fused *fused)
{
    size_t ends[OPSCOPE__FUSED_LIVE_LIMIT] = {0}; /* the step after which each place is free */
    fused->cost = 0;
    fused->numbers = 0;
    fused->dtypes = UINT32_MAX;
    if (fused->step_count == 0 || fused->step_count > OPSCOPE__FUSED_STEP_LIMIT ||
        fused->input_count > OPSCOPE__FUSED_INPUT_LIMIT) {
        return false;
    }
    for (size_t i = 0; i < fused->step_count; i++) {
        if (!is_known(fused, i)) {
            return false;
        }
    }
    for (size_t i = 0; i < fused->step_count; i++) {
        /* A loop's output may be one of its operands, so a place is free for the step that reads it
         * last. */
        uint8_t place = 0;
        while (place < OPSCOPE__FUSED_LIVE_LIMIT && ends[place] > i) {
            place++;
        }
        if (place == OPSCOPE__FUSED_LIVE_LIMIT) {
            return false;
        }
        fused->steps[i].place = place;
        ends[place] = last_reader(fused, i);
        note(fused, &fused->steps[i]);
    }
    return true;
}

/* ---- running ------------------------------------------------------------------------------------ */

struct run {
    const struct opscope__fused *fused;
    int64_t count; /* elements */
    int64_t item;  /* bytes of one */
    opscope_dtype dtype;
    char *out;
    char *data[OPSCOPE__FUSED_INPUT_LIMIT];      /* of the inputs */
    int64_t strides[OPSCOPE__FUSED_INPUT_LIMIT]; /* bytes: of an element, or 0 */
    uint64_t values[OPSCOPE__FUSED_INPUT_LIMIT]; /* numbers as elements */
    uint64_t numbers[OPSCOPE__FUSED_STEP_LIMIT][OPSCOPE__FUSED_NUMBER_LIMIT];
};

static void run_steps(const struct run *run, int64_t begin, int64_t count, char *places)
{
    const struct opscope__fused *fused = run->fused;
    for (size_t i = 0; i < fused->step_count; i++) {
        const struct opscope__fused_step *step = &fused->steps[i];
        char *data[OPSCOPE__OPERAND_LIMIT];
        int64_t strides[OPSCOPE__OPERAND_LIMIT];
        data[0] = i + 1 < fused->step_count ? places + (size_t)step->place * STRETCH_BYTES
                                            : run->out + begin * run->item;
        strides[0] = run->item;
        for (size_t k = 0; k < step->spec->operands; k++) {
            const struct opscope__fused_source *source = &step->operands[k];
            if (source->is_step) {
                data[k + 1] = places + (size_t)fused->steps[source->index].place * STRETCH_BYTES;
                strides[k + 1] = run->item;
            } else {
                data[k + 1] = run->data[source->index] + begin * run->strides[source->index];
                strides[k + 1] = run->strides[source->index];
            }
        }
        step->spec->loops[run->dtype](data, strides, count, (void *)(uintptr_t)run->numbers[i]);
    }
}

/* Where a piece that is to begin there does; the last piece ends with the elements. */
static int64_t piece_begin(const struct run *run, int64_t place)
{
    return place < run->count ? place - place % WHOLE_VECTORS : run->count;
}

static void run_piece(int64_t begin, int64_t end, void *arg)
{
    const struct run *run = arg;
    _Alignas(64) char places[OPSCOPE__FUSED_LIVE_LIMIT * STRETCH_BYTES];
    const int64_t stretch = STRETCH_BYTES / run->item;
    end = piece_begin(run, end);
    for (int64_t at = piece_begin(run, begin); at < end; at += stretch) {
        run_steps(run, at, end - at < stretch ? end - at : stretch, places);
    }
}

static bool is_same_shape(const opscope_tensor *one, const opscope_tensor *other)
{
    return one->dims == other->dims && memcmp(opscope__sizes(one), opscope__sizes(other),
                                              (size_t)one->dims * sizeof *opscope__sizes(one)) == 0;
}

/* The tensor whose sizes the output has; NULL if the inputs do not fit. */
static const opscope_tensor *find_shape(const struct opscope__fused *fused,
                                        const opscope_argument *inputs)
{
    const opscope_tensor *shape = NULL;
    for (size_t i = 0; i < fused->input_count; i++) {
        const opscope_tensor *tensor = inputs[i].as.tensor;
        if (inputs[i].kind != OPSCOPE_ARGUMENT_TENSOR) {
            continue;
        }
        if (shape == NULL || (tensor->count > 1 && shape->count == 1)) {
            shape = tensor;
        }
    }
    if (shape == NULL || (shape->dtype != OPSCOPE_FLOAT32 && shape->dtype != OPSCOPE_FLOAT64)) {
        return NULL;
    }
    for (size_t i = 0; i < fused->input_count; i++) {
        const opscope_tensor *tensor = inputs[i].as.tensor;
        const opscope_argument_kind kind = inputs[i].kind;
        if (kind != OPSCOPE_ARGUMENT_TENSOR) {
            if (kind != OPSCOPE_ARGUMENT_INT && kind != OPSCOPE_ARGUMENT_FLOAT &&
                kind != OPSCOPE_ARGUMENT_BOOL) {
                return NULL;
            }
            continue;
        }
        const bool is_one = tensor->count == 1 && shape->count != 1 && tensor->dims <= shape->dims;
        if (tensor->dtype != shape->dtype ||
            !(is_one || (tensor->is_contiguous && is_same_shape(tensor, shape)))) {
            return NULL;
        }
    }
    return shape;
}

/* Whether each step's result has the full shape, as it would have by itself, and numbers stand
 * where they have to. */
static bool fits(const struct opscope__fused *fused, const opscope_argument *inputs,
                 const opscope_tensor *shape)
{
    uint32_t full = 0;
    for (size_t i = 0; i < fused->input_count; i++) {
        if (inputs[i].kind == OPSCOPE_ARGUMENT_TENSOR) {
            const uint32_t bit = UINT32_C(1) << i;
            full |= inputs[i].as.tensor->count == shape->count ? bit : 0;
            if ((fused->numbers & bit) != 0) {
                return false;
            }
        }
    }
    for (size_t i = 0; i < fused->step_count; i++) {
        if (!fused->steps[i].takes_step && (fused->steps[i].takes & full) == 0) {
            return false;
        }
    }
    return (fused->dtypes >> shape->dtype & 1) != 0;
}

bool opscope__fused_fits(const struct opscope__fused *fused, const opscope_argument *inputs)
{
    const opscope_tensor *shape = find_shape(fused, inputs);
    return shape != NULL && fits(fused, inputs, shape);
}

int opscope__fused_run(const struct opscope__fused *fused, const opscope_argument *inputs,
                       opscope_tensor *spare, opscope_tensor **out)
{
    const opscope_tensor *shape = find_shape(fused, inputs);
    opscope_tensor *made;
    /* Each stretch of an input is read for the last time before or by the step that writes it. */
    if (spare != NULL && is_same_shape(spare, shape)) {
        made = opscope_tensor_retain(spare);
    } else {
        const int status =
            opscope__tensor_empty(shape->dims, opscope__sizes(shape), shape->dtype, &made);
        if (status != OPSCOPE_OK) {
            return status;
        }
    }
    struct run run = {.fused = fused,
                      .count = made->count,
                      .item = (int64_t)opscope_dtype_bytes(shape->dtype),
                      .dtype = shape->dtype,
                      .out = opscope_tensor_data(made)};
    for (size_t i = 0; i < fused->input_count; i++) {
        if (inputs[i].kind == OPSCOPE_ARGUMENT_TENSOR) {
            const opscope_tensor *tensor = inputs[i].as.tensor;
            run.data[i] = opscope_tensor_data(tensor);
            run.strides[i] = tensor->count == shape->count ? run.item : 0;
        } else {
            opscope__number_as(&inputs[i], run.dtype, &run.values[i]);
            run.data[i] = (char *)&run.values[i];
        }
    }
    for (size_t i = 0; i < fused->step_count; i++) {
        for (size_t k = 0; k < fused->steps[i].spec->numbers; k++) {
            run.numbers[i][k] = run.values[fused->steps[i].numbers[k]];
        }
    }
    if (run.count * fused->cost < 2 * OPSCOPE__GRAIN) {
        run_piece(0, run.count, &run);
    } else {
        const int64_t grain = OPSCOPE__GRAIN / fused->cost;
        opscope__parallel(run.count, grain > 0 ? grain : 1, run_piece, &run);
    }
    *out = made;
    return OPSCOPE_OK;
}
