/* tests/native/model/run_model.c -- an example: runs a model of an archive on numbers, with public
 * headers alone and without Python.
 *
 *     run_model ARCHIVE [SIZE...] < NUMBERS
 *
 * Prints what the model takes and returns, and runs it once, with one tensor of float32 and these
 * sizes, whose elements are read from standard input.
 */
#include <opscope/model.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(void)
{
    fprintf(stderr, "%s\n", opscope_tensor_error());
    return 1;
}

static void print_item(const opscope_item *item)
{
    switch (item->kind) {
    case OPSCOPE_ITEM_TENSOR: {
        const float *numbers = opscope_tensor_data(item->as.tensor);
        int64_t count = opscope_tensor_count(item->as.tensor);
        if (opscope_tensor_dtype(item->as.tensor) != OPSCOPE_FLOAT32 ||
            !opscope_tensor_is_contiguous(item->as.tensor)) {
            printf("a tensor of %lld elements\n", (long long)count);
            return;
        }
        for (int64_t i = 0; i < count; i++) {
            printf("%s%.9g", i > 0 ? " " : "", (double)numbers[i]);
        }
        printf("\n");
        return;
    }
    case OPSCOPE_ITEM_INT:
        printf("%lld\n", (long long)item->as.integer);
        return;
    case OPSCOPE_ITEM_TEXT:
        printf("%s\n", item->as.text);
        return;
    case OPSCOPE_ITEM_LIST:
    case OPSCOPE_ITEM_TUPLE:
        for (size_t i = 0; i < item->count; i++) {
            print_item(&item->as.items[i]);
        }
        return;
    default:
        printf("an item of kind %d\n", (int)item->kind);
    }
}

static int run(opscope_model *model, int dims, const int64_t *sizes)
{
    opscope_tensor *input;
    if (opscope_tensor_empty(dims, sizes, OPSCOPE_FLOAT32, NULL, &input) != OPSCOPE_OK) {
        return failed();
    }
    float *numbers = opscope_tensor_data(input);
    for (int64_t i = 0; i < opscope_tensor_count(input); i++) {
        if (scanf("%f", &numbers[i]) != 1) {
            fprintf(stderr, "too few numbers\n");
            opscope_tensor_release(input);
            return 1;
        }
    }
    const opscope_item item = {.kind = OPSCOPE_ITEM_TENSOR, .as.tensor = input};
    opscope_item *outputs = calloc(opscope_model_output_count(model) + 1, sizeof *outputs);
    int status = opscope_model_run(model, &item, 1, NULL, outputs);
    for (size_t i = 0; status == OPSCOPE_OK && i < opscope_model_output_count(model); i++) {
        print_item(&outputs[i]);
        opscope_item_release(&outputs[i]);
    }
    free(outputs);
    opscope_tensor_release(input);
    return status == OPSCOPE_OK ? 0 : failed();
}

int main(int count, char **words)
{
    opscope_model *model;
    opscope_model_value value;
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    int dims = 0;
    if (count < 2 || opscope_model_open(words[1], &model) != OPSCOPE_OK) {
        return failed();
    }
    printf("id %s\n", opscope_model_id(model));
    for (size_t i = 0; opscope_model_input_at(model, i, &value) == OPSCOPE_OK; i++) {
        printf("takes %s : %s\n", value.name, value.type);
    }
    for (size_t i = 0; opscope_model_output_at(model, i, &value) == OPSCOPE_OK; i++) {
        printf("returns %s : %s\n", value.name, value.type);
    }
    for (; dims + 2 < count && dims < OPSCOPE_DIM_LIMIT; dims++) {
        sizes[dims] = atoll(words[dims + 2]);
    }
    int result = run(model, dims, sizes);
    opscope_model_close(model);
    return result;
}
