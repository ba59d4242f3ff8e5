/* model/document/finish.c -- the last step of a parser: checks the tree and sorts keys.
 *
 * Visits each item once. An item's depth is 0 before its visit and IN_PROGRESS during it, so an
 * item that contains itself is found. Recursion is at most as deep as the limit of depth.
 */
#include "model/document/build.h"

#include "model/document/keys.h"
#include "opscope/status.h"

enum { IN_PROGRESS = UINT16_MAX };

/* Of the item that is visited: what its children add up to. */
struct visit {
    struct opscope__document *document;
    const struct opscope__item *item;
    unsigned level; /* 1: the root */
    unsigned depth;
    uint64_t expanded;
};

static int visit_item(struct opscope__document *document, struct opscope__item *item,
                      unsigned level, size_t parent_offset);

static int visit_child(struct visit *visit, struct opscope__item *child)
{
    int status = visit_item(visit->document, child, visit->level + 1, visit->item->offset);
    if (status < 0) {
        return status;
    }
    if (child->depth >= visit->depth) {
        visit->depth = child->depth + 1u;
    }
    visit->expanded += child->expanded;
    if (visit->level + visit->depth - 1 > OPSCOPE__DEPTH_LIMIT) {
        return opscope__document_fail(visit->item->offset, "more than %d levels",
                                      OPSCOPE__DEPTH_LIMIT);
    }
    if (visit->expanded > OPSCOPE__EXPANDED_LIMIT) {
        return opscope__document_fail(visit->item->offset,
                                      "shared items make this more than %d items",
                                      OPSCOPE__EXPANDED_LIMIT);
    }
    return OPSCOPE_OK;
}

static int visit_items(struct visit *visit)
{
    int status = OPSCOPE_OK;
    for (uint32_t i = 0; i < visit->item->count && status == OPSCOPE_OK; i++) {
        status = visit_child(visit, visit->item->as.items[i]);
    }
    return status;
}

static int visit_pairs(struct visit *visit, struct opscope__pair **pairs)
{
    int status = OPSCOPE_OK;
    for (uint32_t i = 0; i < visit->item->count && status == OPSCOPE_OK; i++) {
        status = visit_child(visit, (*pairs)[i].key);
        if (status == OPSCOPE_OK) {
            status = visit_child(visit, (*pairs)[i].value);
        }
    }
    if (status < 0 || visit->item->count == 0) {
        return status;
    }
    return opscope__keys_sort(visit->document, pairs, visit->item->count);
}

static int visit_object(struct visit *visit, struct opscope__object *object)
{
    int status = visit_child(visit, object->function);
    if (status == OPSCOPE_OK) {
        status = visit_child(visit, object->arguments);
    }
    if (status == OPSCOPE_OK && object->state != NULL) {
        status = visit_child(visit, object->state);
    }
    return status == OPSCOPE_OK ? visit_pairs(visit, &object->pairs) : status;
}

static int visit_children(struct visit *visit, struct opscope__item *item)
{
    switch (item->kind) {
    case OPSCOPE__ITEM_LIST:
    case OPSCOPE__ITEM_TUPLE:
        return visit_items(visit);
    case OPSCOPE__ITEM_MAP:
        return visit_pairs(visit, &item->as.pairs);
    case OPSCOPE__ITEM_CALL:
        return visit_object(visit, item->as.object);
    case OPSCOPE__ITEM_PERSISTENT:
        return visit_child(visit, item->as.id);
    case OPSCOPE__ITEM_TEXT:
    case OPSCOPE__ITEM_BYTES:
    case OPSCOPE__ITEM_GLOBAL:
        visit->expanded += item->count / OPSCOPE__EXPANDED_TEXT_BYTES;
        return OPSCOPE_OK;
    default:
        return OPSCOPE_OK;
    }
}

static int visit_item(struct opscope__document *document, struct opscope__item *item,
                      unsigned level, size_t parent_offset)
{
    if (item->depth == IN_PROGRESS) {
        return opscope__document_fail(parent_offset,
                                      "the %s that begins at byte %u contains itself",
                                      opscope__item_kind_name(item), item->offset);
    }
    if (level > OPSCOPE__DEPTH_LIMIT) {
        /* A constant of a pickle has no offset. */
        return opscope__document_fail(item->offset != 0 ? item->offset : parent_offset,
                                      "more than %d levels", OPSCOPE__DEPTH_LIMIT);
    }
    if (item->depth == 0) {
        struct visit visit = {document, item, level, 1, 1};
        item->depth = IN_PROGRESS;
        int status = visit_children(&visit, item);
        if (status < 0) {
            return status;
        }
        item->depth = (uint16_t)visit.depth;
        item->expanded = (uint32_t)visit.expanded;
    }
    return OPSCOPE_OK;
}

int opscope__document_finish(struct opscope__document *document, struct opscope__item *root,
                             size_t end)
{
    int status = visit_item(document, root, 1, 0);
    if (status == OPSCOPE_OK) {
        opscope__document_set_root(document, root, end);
    }
    return status;
}
