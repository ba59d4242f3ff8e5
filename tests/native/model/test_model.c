/* tests/native/model/test_model.c -- opscope/model.h: what a model tells, its items, threads, its
 * label. */
#include <pthread.h>
#include <stdlib.h>

#include "../check.h"
#include "model_zip.h"
#include "opscope/debug_info.h"
#include "opscope/model.h"

static const char document[] =
    "{\"model\": {\"entry\": \"forward\", \"id\": \"net-1\", \"functions\": [\"forward\"], "
    "\"attributes\": {\"w\": 0}}, \"tensors\": [{\"storage\": 0, \"dtype\": \"float32\", "
    "\"sizes\": [2], \"strides\": [1], \"offset\": 1, \"requires_grad\": true}]}";

static const char graph[] =
    "graph(%x : Tensor, %names : List[str], %maybe : Optional[int]):\n"
    "  %w : Tensor = prim::GetAttr[name=\"w\"]()\n"
    "  %y : Tensor = core::add(%x, %w)\n"
    "  %none : bool = py::is_none(%maybe)\n"
    "  %text : str = py::str(%none)\n"
    "  py::append(%names, %text)\n"
    "  %both : Tuple[Tensor, List[str]] = prim::TupleConstruct(%y, %names)\n"
    "  return (%both, %none, %w)\n";

static uint8_t bytes[2048 + ZIP_HEADERS_BYTES];

static opscope_model *open_model(void)
{
    static const float weights[] = {0, 10, 20, 0};
    struct model_zip zip = {.at = bytes};
    opscope_model *model = NULL;
    zip_add(&zip, "net/version", "1\n", 2);
    zip_add(&zip, "net/byteorder", "little", 6);
    zip_add(&zip, "net/model.json", document, sizeof document - 1);
    zip_add(&zip, "net/graph/forward.ir", graph, sizeof graph - 1);
    zip_add(&zip, "net/tensors/0", weights, sizeof weights);
    zip_add(&zip, "net/extra/labels.txt", "cat dog", 7);
    zip_finish(&zip);
    int status = opscope_model_open_memory("net.pt", bytes, zip.bytes, &model);
    if (status != OPSCOPE_OK) {
        fprintf(stderr, "%s\n", opscope_tensor_error());
    }
    CHECK_EQUAL(status, OPSCOPE_OK);
    return model;
}

static void a_model_tells_what_it_takes_and_has(void)
{
    opscope_model *model = open_model();
    opscope_model_value value;
    const void *data;
    size_t size, index;
    CHECK_TEXT(opscope_model_id(model), "net-1");
    CHECK_EQUAL(opscope_model_input_count(model), 3);
    CHECK_EQUAL(opscope_model_input_at(model, 1, &value), OPSCOPE_OK);
    CHECK_TEXT(value.name, "names");
    CHECK_TEXT(value.type, "List[str]");
    CHECK_EQUAL(opscope_model_input_at(model, 3, &value), OPSCOPE_ERR_NOT_FOUND);
    CHECK_EQUAL(opscope_model_output_count(model), 3);
    CHECK_EQUAL(opscope_model_output_at(model, 0, &value), OPSCOPE_OK);
    CHECK_TEXT(value.type, "Tuple[Tensor, List[str]]");
    CHECK_EQUAL(opscope_model_extra_file(model, "labels.txt", &data, &size), OPSCOPE_OK);
    CHECK(size == 7 && memcmp(data, "cat dog", 7) == 0);
    CHECK(opscope_model_extra_file(model, "none", &data, &size) < 0);
    CHECK_EQUAL(opscope_archive_find(opscope_model_archive(model), "model.json", &index), 0);
    opscope_model_close(model);
}

static opscope_tensor *ones(void)
{
    opscope_tensor *tensor;
    CHECK_EQUAL(opscope_tensor_empty(1, (const int64_t[]){2}, OPSCOPE_FLOAT32, NULL, &tensor), 0);
    ((float *)opscope_tensor_data(tensor))[0] = 1;
    ((float *)opscope_tensor_data(tensor))[1] = 2;
    return tensor;
}

/* Runs it with an int or None, and returns the status. */
static int run(const opscope_model *model, const opscope_item *maybe,
               const opscope_model_options *options, opscope_item *outputs)
{
    opscope_tensor *tensor = ones();
    const opscope_item name = {.kind = OPSCOPE_ITEM_TEXT, .count = 1, .as.text = "a"};
    const opscope_item inputs[] = {
        {.kind = OPSCOPE_ITEM_TENSOR, .as.tensor = tensor},
        {.kind = OPSCOPE_ITEM_LIST, .count = 1, .as.items = &name},
        *maybe,
    };
    int status = opscope_model_run(model, inputs, 3, options, outputs);
    opscope_tensor_release(tensor);
    return status;
}

static const opscope_item none = {.kind = OPSCOPE_ITEM_NONE};

static void results_outlive_the_model(void)
{
    opscope_model *model = open_model();
    opscope_item outputs[3];
    CHECK_EQUAL(run(model, &none, NULL, outputs), OPSCOPE_OK);
    opscope_model_close(model);
    CHECK_EQUAL(outputs[0].kind, OPSCOPE_ITEM_TUPLE);
    CHECK_EQUAL(outputs[0].count, 2);
    const float *sum = opscope_tensor_data(outputs[0].as.items[0].as.tensor);
    CHECK(sum[0] == 11 && sum[1] == 22);
    const opscope_item *names = &outputs[0].as.items[1];
    CHECK_EQUAL(names->count, 2);
    CHECK_TEXT(names->as.items[0].as.text, "a");
    CHECK_TEXT(names->as.items[1].as.text, "True");
    CHECK(outputs[1].kind == OPSCOPE_ITEM_BOOL && outputs[1].as.integer == 1);
    CHECK(((const float *)opscope_tensor_data(outputs[2].as.tensor))[1] == 20);
    for (size_t i = 0; i < 3; i++) {
        opscope_item_release(&outputs[i]);
    }
}

static void items_of_other_types_are_refused(void)
{
    opscope_model *model = open_model();
    opscope_item outputs[3];
    const opscope_item real = {.kind = OPSCOPE_ITEM_FLOAT, .as.real = 1};
    CHECK(run(model, &real, NULL, outputs) < 0);
    CHECK_TEXT(opscope_tensor_error(), "net-1: the input \"maybe\" is no Optional[int]");
    CHECK_EQUAL(opscope_tensor_error_kind(), OPSCOPE_ERROR_TYPE);
    CHECK(opscope_model_run(model, &real, 1, NULL, outputs) < 0);
    CHECK_TEXT(opscope_tensor_error(), "net-1: takes 3 inputs, not 1");
    const opscope_model_options tight = {.heap_bytes_limit = 64};
    CHECK_EQUAL(run(model, &none, &tight, outputs), OPSCOPE_ERR_NO_MEMORY);
    opscope_model_close(model);
}

/* ---- threads ------------------------------------------------------------------------------------- */

enum { THREADS = 4, RUNS = 200 };

/* Each run returns the model's own tensor too, which all threads then hold and release. */
static void *run_often(void *user)
{
    const opscope_model *model = user;
    for (int i = 0; i < RUNS; i++) {
        opscope_item outputs[3];
        const void *data;
        size_t size;
        CHECK_EQUAL(run(model, &none, NULL, outputs), OPSCOPE_OK);
        const float *sum = opscope_tensor_data(outputs[0].as.items[0].as.tensor);
        CHECK(sum[0] == 11 && sum[1] == 22);
        CHECK_TEXT(outputs[0].as.items[1].as.items[1].as.text, "True");
        CHECK(((const float *)opscope_tensor_data(outputs[2].as.tensor))[1] == 20);
        for (size_t j = 0; j < 3; j++) {
            opscope_item_release(&outputs[j]);
        }
        CHECK_EQUAL(opscope_model_extra_file(model, "labels.txt", &data, &size), OPSCOPE_OK);
    }
    return NULL;
}

static void threads_run_one_model_at_once(void)
{
    opscope_model *model = open_model();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, run_often, model), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    opscope_model_close(model);
}

/* ---- the label ------------------------------------------------------------------------------------ */

static char seen[32];

static int see_label(const opscope_range *range, void *user, void **context)
{
    (void)range;
    (void)user;
    (void)context;
    const char *label = opscope_debug_info_get("model_id");
    snprintf(seen, sizeof seen, "%s", label != NULL ? label : "none");
    return 0;
}

static void run_labelled(const opscope_model *model, const opscope_model_options *options,
                         const char *wanted)
{
    opscope_item outputs[3];
    CHECK_EQUAL(run(model, &none, options, outputs), OPSCOPE_OK);
    for (size_t i = 0; i < 3; i++) {
        opscope_item_release(&outputs[i]);
    }
    CHECK_TEXT(seen, wanted);
}

static void operators_have_the_label_of_the_model_or_of_the_caller(void)
{
    opscope_model *model = open_model();
    const opscope_callback callback = {.start = see_label, .sampling_prob = 1};
    const opscope_model_options options = {.model_id = "chosen"};
    opscope_handle handle;
    opscope_debug_info_guard guard;
    CHECK_EQUAL(opscope_add_global_callback(&callback, &handle), OPSCOPE_OK);
    run_labelled(model, NULL, "net-1");
    CHECK(opscope_debug_info_get("model_id") == NULL);
    run_labelled(model, &options, "chosen");
    CHECK_EQUAL(opscope_debug_info_push("model_id", "outer", &guard), OPSCOPE_OK);
    run_labelled(model, NULL, "outer");
    run_labelled(model, &options, "chosen");
    opscope_debug_info_pop(&guard);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    opscope_model_close(model);
}

int main(void)
{
    RUN(a_model_tells_what_it_takes_and_has);
    RUN(results_outlive_the_model);
    RUN(items_of_other_types_are_refused);
    RUN(threads_run_one_model_at_once);
    RUN(operators_have_the_label_of_the_model_or_of_the_caller);
    return 0;
}
