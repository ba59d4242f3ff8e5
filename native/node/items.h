/* items.h -- JavaScript values as items of a model, and back. */
#ifndef OPSCOPE_NODE_ITEMS_H
#define OPSCOPE_NODE_ITEMS_H

#define NAPI_VERSION 8
#include <node_api.h>
#include <opscope/model.h>

/* The inputs of a run. The tensors' memory is that of typed arrays, which `held` keeps. */
struct inputs {
    opscope_item *items;
    size_t count;
    napi_ref held; /* to the JavaScript array of items; NULL: none */
};

/* False: an exception is pending. On the thread of JavaScript. */
bool inputs_read(napi_env env, napi_value array, struct inputs *out);
void inputs_free(napi_env env, struct inputs *inputs);

/* A value for an item, whose tensors it takes over: their memory stays as long as the typed arrays
 * that show it. Memory of an input, or one that another result of this run shows, is copied. NULL:
 * an exception is pending. */
napi_value item_to_value(napi_env env, const opscope_item *item, const struct inputs *inputs);

#endif
