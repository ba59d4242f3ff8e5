/* model/file/document.c -- fields of model.json, and failures that name entries. */
#include "model/file/document.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int opscope__model_fail(const opscope_model *model, const char *entry, const char *format, ...)
{
    char reason[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%.100s: entry \"%.80s\": %s", model->name,
                               entry, reason);
}

const struct opscope__item *opscope__field(const opscope_model *model,
                                           const struct opscope__item *object, const char *key,
                                           enum opscope__item_kind kind)
{
    const struct opscope__item *found =
        object->kind == OPSCOPE__ITEM_MAP ? opscope__item_find(object, key) : NULL;
    if (found == NULL || found->kind != kind) {
        const struct opscope__item like = {.kind = (uint16_t)kind};
        opscope__model_fail(model, OPSCOPE__MODEL_DOCUMENT, "\"%s\" is %s, not %s", key,
                            found != NULL ? opscope__item_kind_name(found) : "missing",
                            opscope__item_kind_name(&like));
        return NULL;
    }
    return found;
}

const char *opscope__field_text(const opscope_model *model, const struct opscope__item *text)
{
    if (text->kind != OPSCOPE__ITEM_TEXT || strlen(text->as.text) != text->count) {
        opscope__model_fail(model, OPSCOPE__MODEL_DOCUMENT, "a name is %s, not one text",
                            opscope__item_kind_name(text));
        return NULL;
    }
    return text->as.text;
}
