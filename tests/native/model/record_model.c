/* tests/native/model/record_model.c -- runs models for the host agent: each operator is recorded
 * with the label model_id.
 *
 *     record_model DIRECTORY ARCHIVE...
 *
 * Runs each model ten times on a tensor [2, 2] of zeros, prints "ready", and waits for the end of
 * standard input.
 */
#include <opscope/model.h>
#include <opscope/recorder.h>
#include <stdio.h>
#include <string.h>

static int run_often(opscope_model *model)
{
    opscope_tensor *tensor;
    opscope_item output;
    if (opscope_tensor_empty(2, (const int64_t[]){2, 2}, OPSCOPE_FLOAT32, NULL, &tensor) != 0) {
        return 1;
    }
    memset(opscope_tensor_data(tensor), 0, 4 * sizeof(float));
    const opscope_item input = {.kind = OPSCOPE_ITEM_TENSOR, .as.tensor = tensor};
    int status = OPSCOPE_OK;
    for (int i = 0; status == OPSCOPE_OK && i < 10; i++) {
        status = opscope_model_run(model, &input, 1, NULL, &output);
        if (status == OPSCOPE_OK) {
            opscope_item_release(&output);
        }
    }
    opscope_tensor_release(tensor);
    return status;
}

int main(int count, char **words)
{
    const opscope_recorder_options options = {
        .directory = words[1], .label_keys = "model_id", .sampling_prob = 1};
    if (opscope_recorder_start(&options) != OPSCOPE_OK) {
        fprintf(stderr, "the recorder did not start\n");
        return 1;
    }
    for (int i = 2; i < count; i++) {
        opscope_model *model;
        int status = opscope_model_open(words[i], &model);
        status = status == OPSCOPE_OK ? run_often(model) : status;
        if (status != OPSCOPE_OK) {
            fprintf(stderr, "%s\n", opscope_tensor_error());
            return 1;
        }
        opscope_model_close(model);
    }
    printf("ready\n");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
