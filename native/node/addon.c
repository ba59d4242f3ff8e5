/* addon.c -- opscope/model.h for Node.js, by Node-API alone. index.js is what programs use.
 *
 * A run or an opening that is asynchronous is a job: it computes on a thread of libuv's pool, and
 * begins and ends on the thread of JavaScript. A model stays open while a job uses it.
 */
#include <opscope/recorder.h>
#include <stdlib.h>
#include <string.h>

#include "items.h"

/* Of an exported function: NULL is an exception that is pending. */
#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != napi_ok) {                                                                   \
            return NULL;                                                                           \
        }                                                                                          \
    } while (0)

/* Used on the thread of JavaScript alone. */
struct handle {
    opscope_model *model; /* NULL: closed */
    uint32_t users;       /* the JavaScript object, and jobs */
    bool is_closing;
};

struct job {
    napi_async_work work;
    napi_deferred deferred; /* NULL: synchronous */
    struct handle *handle;  /* of a run; NULL: an opening */
    char *path;             /* of an opening */
    opscope_model *model;   /* it opened, or runs */
    struct inputs inputs;
    opscope_item *outputs;
    size_t output_count;
    int status;
    opscope_error_kind kind;
    char message[1024];
};

/* ---- models ------------------------------------------------------------------------------------ */

static void close_if_unused(struct handle *handle)
{
    if (handle->is_closing && handle->users <= 1) {
        opscope_model_close(handle->model);
        handle->model = NULL;
    }
    if (handle->users == 0) {
        opscope_model_close(handle->model);
        free(handle);
    }
}

static void drop_user(struct handle *handle)
{
    handle->users--;
    close_if_unused(handle);
}

static void finalize_handle(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    drop_user(data);
}

/* NULL, with an exception: it is closed. */
static struct handle *open_handle(napi_env env, napi_value value)
{
    void *data = NULL;
    if (napi_get_value_external(env, value, &data) != napi_ok) {
        napi_throw_type_error(env, "ERR_OPSCOPE", "no model");
        return NULL;
    }
    struct handle *handle = data;
    if (handle->model == NULL || handle->is_closing) {
        napi_throw_error(env, "ERR_OPSCOPE", "the model is closed");
        return NULL;
    }
    return handle;
}

/* ---- jobs -------------------------------------------------------------------------------------- */

/* On any thread. */
static void execute(napi_env env, void *data)
{
    (void)env;
    struct job *job = data;
    job->status = job->handle == NULL ? opscope_model_open(job->path, &job->model)
                                      : opscope_model_run(job->model, job->inputs.items,
                                                          job->inputs.count, NULL, job->outputs);
    if (job->status != OPSCOPE_OK) {
        job->kind = opscope_tensor_error_kind();
        strncpy(job->message, opscope_tensor_error(), sizeof job->message - 1);
    }
}

static napi_value error_of(napi_env env, const struct job *job)
{
    napi_value result, error, kind, message;
    CHECK(napi_create_object(env, &result));
    CHECK(napi_create_object(env, &error));
    CHECK(napi_create_int32(env, (int32_t)job->kind, &kind));
    CHECK(napi_create_string_utf8(env, job->message, NAPI_AUTO_LENGTH, &message));
    CHECK(napi_set_named_property(env, error, "kind", kind));
    CHECK(napi_set_named_property(env, error, "message", message));
    CHECK(napi_set_named_property(env, result, "error", error));
    return result;
}

static napi_value handle_of(napi_env env, struct job *job)
{
    napi_value result, external;
    struct handle *handle = calloc(1, sizeof *handle);
    if (handle == NULL) {
        return NULL;
    }
    *handle = (struct handle){.model = job->model, .users = 1};
    if (napi_create_external(env, handle, finalize_handle, NULL, &external) != napi_ok) {
        free(handle);
        return NULL;
    }
    job->model = NULL;
    CHECK(napi_create_object(env, &result));
    CHECK(napi_set_named_property(env, result, "handle", external));
    return result;
}

static napi_value values_of(napi_env env, const struct job *job)
{
    napi_value result, values;
    CHECK(napi_create_object(env, &result));
    CHECK(napi_create_array_with_length(env, job->output_count, &values));
    for (size_t i = 0; i < job->output_count; i++) {
        napi_value value = item_to_value(env, &job->outputs[i], &job->inputs);
        if (value == NULL) {
            return NULL;
        }
        CHECK(napi_set_element(env, values, (uint32_t)i, value));
    }
    CHECK(napi_set_named_property(env, result, "values", values));
    return result;
}

static napi_value result_of(napi_env env, struct job *job)
{
    return job->status != OPSCOPE_OK ? error_of(env, job)
           : job->handle == NULL     ? handle_of(env, job)
                                     : values_of(env, job);
}

static void free_job(napi_env env, struct job *job)
{
    for (size_t i = 0; job->status == OPSCOPE_OK && i < job->output_count; i++) {
        opscope_item_release(&job->outputs[i]);
    }
    inputs_free(env, &job->inputs);
    if (job->handle != NULL) {
        drop_user(job->handle);
    } else {
        opscope_model_close(job->model);
    }
    if (job->work != NULL) {
        (void)napi_delete_async_work(env, job->work);
    }
    free(job->outputs);
    free(job->path);
    free(job);
}

static void complete(napi_env env, napi_status status, void *data)
{
    struct job *job = data;
    napi_value result = status == napi_ok ? result_of(env, job) : NULL;
    if (result != NULL) {
        (void)napi_resolve_deferred(env, job->deferred, result);
    } else {
        napi_value error = NULL, message;
        bool is_pending = false;
        (void)napi_is_exception_pending(env, &is_pending);
        if (is_pending) {
            (void)napi_get_and_clear_last_exception(env, &error);
        } else if (napi_create_string_utf8(env, "the result cannot be made", NAPI_AUTO_LENGTH,
                                           &message) == napi_ok) {
            (void)napi_create_error(env, NULL, message, &error);
        }
        (void)napi_reject_deferred(env, job->deferred, error);
    }
    free_job(env, job);
}

/* Runs the job here, or in the pool; takes it. */
static napi_value start(napi_env env, struct job *job, bool is_async)
{
    napi_value name, promise = NULL;
    if (!is_async) {
        execute(env, job);
        napi_value result = result_of(env, job);
        free_job(env, job);
        return result;
    }
    job->status = OPSCOPE_ERR_INVALID; /* until it has run: it has no outputs */
    if (napi_create_string_utf8(env, "opscope", NAPI_AUTO_LENGTH, &name) != napi_ok ||
        napi_create_promise(env, &job->deferred, &promise) != napi_ok ||
        napi_create_async_work(env, NULL, name, execute, complete, job, &job->work) != napi_ok ||
        napi_queue_async_work(env, job->work) != napi_ok) {
        free_job(env, job);
        napi_throw_error(env, "ERR_OPSCOPE", "the work cannot be queued");
        return NULL;
    }
    return promise;
}

/* ---- functions ----------------------------------------------------------------------------------- */

static char *text_of(napi_env env, napi_value value)
{
    size_t bytes;
    CHECK(napi_get_value_string_utf8(env, value, NULL, 0, &bytes));
    char *text = malloc(bytes + 1);
    if (text != NULL) {
        (void)napi_get_value_string_utf8(env, value, text, bytes + 1, &bytes);
    }
    return text;
}

/* open(path, isAsync): {handle} or {error}, or a promise of it. */
static napi_value open_model(napi_env env, napi_callback_info info)
{
    napi_value arguments[2];
    size_t count = 2;
    bool is_async;
    CHECK(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
    CHECK(napi_get_value_bool(env, arguments[1], &is_async));
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL || (job->path = text_of(env, arguments[0])) == NULL) {
        free(job);
        napi_throw_type_error(env, "ERR_OPSCOPE", "no path");
        return NULL;
    }
    return start(env, job, is_async);
}

/* run(handle, items, isAsync): {values} or {error}, or a promise of it. */
static napi_value run_model(napi_env env, napi_callback_info info)
{
    napi_value arguments[3];
    size_t count = 3;
    bool is_async;
    CHECK(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
    CHECK(napi_get_value_bool(env, arguments[2], &is_async));
    struct handle *handle = open_handle(env, arguments[0]);
    struct job *job = handle != NULL ? calloc(1, sizeof *job) : NULL;
    if (job == NULL) {
        return NULL;
    }
    handle->users++;
    job->handle = handle;
    job->model = handle->model;
    job->status = OPSCOPE_ERR_INVALID;
    job->output_count = opscope_model_output_count(handle->model);
    job->outputs = calloc(job->output_count + 1, sizeof *job->outputs);
    if (job->outputs == NULL || !inputs_read(env, arguments[1], &job->inputs)) {
        free_job(env, job);
        return NULL;
    }
    return start(env, job, is_async);
}

static napi_value values_described(napi_env env, const opscope_model *model, size_t count,
                                   int (*at)(const opscope_model *, size_t, opscope_model_value *))
{
    napi_value list;
    CHECK(napi_create_array_with_length(env, count, &list));
    for (size_t i = 0; i < count; i++) {
        opscope_model_value value;
        napi_value each, name, type;
        if (at(model, i, &value) != OPSCOPE_OK) {
            return NULL;
        }
        CHECK(napi_create_object(env, &each));
        CHECK(napi_create_string_utf8(env, value.name, NAPI_AUTO_LENGTH, &name));
        CHECK(napi_create_string_utf8(env, value.type, NAPI_AUTO_LENGTH, &type));
        CHECK(napi_set_named_property(env, each, "name", name));
        CHECK(napi_set_named_property(env, each, "type", type));
        CHECK(napi_set_element(env, list, (uint32_t)i, each));
    }
    return list;
}

/* describe(handle): {id, inputs, outputs}. */
static napi_value describe(napi_env env, napi_callback_info info)
{
    napi_value argument, result, id;
    size_t count = 1;
    CHECK(napi_get_cb_info(env, info, &count, &argument, NULL, NULL));
    struct handle *handle = open_handle(env, argument);
    if (handle == NULL) {
        return NULL;
    }
    const opscope_model *model = handle->model;
    napi_value inputs =
        values_described(env, model, opscope_model_input_count(model), opscope_model_input_at);
    napi_value outputs =
        values_described(env, model, opscope_model_output_count(model), opscope_model_output_at);
    CHECK(napi_create_object(env, &result));
    CHECK(napi_create_string_utf8(env, opscope_model_id(model), NAPI_AUTO_LENGTH, &id));
    CHECK(napi_set_named_property(env, result, "id", id));
    CHECK(napi_set_named_property(env, result, "inputs", inputs));
    CHECK(napi_set_named_property(env, result, "outputs", outputs));
    return result;
}

/* extraFile(handle, name): a Buffer with a copy, or null. */
static napi_value extra_file(napi_env env, napi_callback_info info)
{
    napi_value arguments[2], result = NULL;
    size_t count = 2, bytes;
    const void *data;
    CHECK(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
    struct handle *handle = open_handle(env, arguments[0]);
    char *name = handle != NULL ? text_of(env, arguments[1]) : NULL;
    if (name == NULL) {
        return NULL;
    }
    const bool is_there =
        opscope_model_extra_file(handle->model, name, &data, &bytes) == OPSCOPE_OK;
    free(name);
    if (is_there) {
        CHECK(napi_create_buffer_copy(env, bytes, data, NULL, &result));
    } else {
        CHECK(napi_get_null(env, &result));
    }
    return result;
}

static napi_value close_model(napi_env env, napi_callback_info info)
{
    napi_value argument;
    size_t count = 1;
    void *data;
    CHECK(napi_get_cb_info(env, info, &count, &argument, NULL, NULL));
    CHECK(napi_get_value_external(env, argument, &data));
    struct handle *handle = data;
    handle->is_closing = true;
    close_if_unused(handle);
    return NULL;
}

/* record(directory, service, labels, probability; -1: windows): null, or why not. */
static napi_value record(napi_env env, napi_callback_info info)
{
    napi_value arguments[4], result = NULL;
    size_t count = 4;
    double probability;
    CHECK(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
    CHECK(napi_get_value_double(env, arguments[3], &probability));
    char *directory = text_of(env, arguments[0]), *service = text_of(env, arguments[1]);
    char *labels = text_of(env, arguments[2]);
    const bool is_windows = probability < 0;
    const opscope_recorder_options options = {.directory = directory,
                                              .label_keys = labels,
                                              .sampling_prob = is_windows ? 1.0 : probability,
                                              .window_ns = is_windows ? 3000000 : 0,
                                              .period_ns = is_windows ? 250000000 : 0,
                                              .max_overhead_ppb = 5000000,
                                              .budget_is_default = true};
    const int status = opscope_recorder_start(&options);
    if (status == OPSCOPE_OK) {
        (void)opscope_recorder_note("service.name", service);
        (void)napi_get_null(env, &result);
    } else {
        (void)napi_create_string_utf8(env, opscope_status_text(status), NAPI_AUTO_LENGTH, &result);
    }
    free(directory);
    free(service);
    free(labels);
    return result;
}

NAPI_MODULE_INIT()
{
    static const struct {
        const char *name;
        napi_callback function;
    } functions[] = {{"open", open_model},      {"run", run_model},     {"describe", describe},
                     {"extraFile", extra_file}, {"close", close_model}, {"record", record}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        napi_value function;
        CHECK(napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].function,
                                   NULL, &function));
        CHECK(napi_set_named_property(env, exports, functions[i].name, function));
    }
    return exports;
}
