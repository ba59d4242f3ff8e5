/* torch/values.c -- inputs and outputs of PyTorch's ranges, for callbacks that need them.
 *
 * Both are arrays of c10::IValue. A tensor's payload is an at::Tensor in place (torch/tensor.c
 * reads it); numbers are in place too. A list's payload points to a c10::detail::ListImpl, and a
 * text's to a c10::ivalue::ConstantString: each is a table of functions and a word of counts,
 * followed by a std::vector of IValue or a std::string. The trial checks the list of one int and
 * the Bool in the arguments of torch.empty(0, pin_memory=False): if they differ from this
 * description, lists, texts and Bools stay opaque. Other kinds (devices, generators, tuples,
 * complex numbers) are always opaque.
 */
#include "bridges/torch/values.h"

#include <sys/mman.h>

#include "base/atomics.h"
#include "bridges/pages.h"
#include "bridges/torch/fields.h"
#include "bridges/torch/ivalue.h"

/* Tags after OPSCOPE__TORCH_INT as they are since 2.9; before, each was one less. PyTorch's
 * ATen/core/ivalue.h lists them all. */
enum tag { TAG_BOOL = 10, TAG_TEXT = 12, TAG_LIST = 14 };

/* The first fields of c10::intrusive_ptr_target. */
struct counted {
    const void *functions;
    uint64_t counts;
};

struct list {
    struct counted counted;
    const struct opscope__torch_value *first;
    const struct opscope__torch_value *last; /* past the last */
};

struct text {
    struct counted counted;
    /* A std::string of libstdc++; only the first word is valid in an old one. */
    const char *start; /* NUL-terminated */
    uint64_t bytes;
    char in_place[16];
};

/* What tags are less than in 2.9 and later; UNKNOWN_TAGS: kinds after Int stay opaque. Written by
 * the trial, before the bridge is attached. */
enum { UNKNOWN_TAGS = 99 };
static int tag_distance = UNKNOWN_TAGS;

/* For texts that are not in place, which no trial covers: the first one is checked. Relaxed: each
 * thread would find the same. */
enum { UNCHECKED, SOUND, UNSOUND };
static int text_state;

/* ---- lists and texts ---------------------------------------------------------------------------- */

static bool is_list_of_zero(const struct opscope__torch_value *value)
{
    const struct list *list = value->payload.object;
    return opscope__torch_is_readable(list, sizeof *list) &&
           opscope__torch_is_readable(list->first, sizeof *list->first) &&
           list->last == list->first + 1 && list->first->tag == OPSCOPE__TORCH_INT &&
           list->first->payload.integer == 0;
}

/* The arguments of aten::empty: size, dtype, layout, device, pin_memory, memory_format. */
void opscope__torch_try_values(const struct opscope__torch_function *fn)
{
    enum { SIZE, DTYPE, PIN_MEMORY = 4, MEMORY_FORMAT, ARGUMENTS };
    const struct opscope__torch_value *inputs = opscope__torch_inputs(fn);
    tag_distance = UNKNOWN_TAGS;
    if (opscope__torch_input_count(fn) != ARGUMENTS) {
        return;
    }
    const uint32_t bool_tag = inputs[PIN_MEMORY].tag;
    const bool is_known =
        (bool_tag == TAG_BOOL || bool_tag == TAG_BOOL - 1) && !inputs[PIN_MEMORY].payload.boolean &&
        inputs[DTYPE].tag == OPSCOPE__TORCH_NONE &&
        inputs[MEMORY_FORMAT].tag == OPSCOPE__TORCH_NONE &&
        inputs[SIZE].tag == bool_tag + (TAG_LIST - TAG_BOOL) && is_list_of_zero(&inputs[SIZE]);
    tag_distance = is_known ? TAG_BOOL - (int)bool_tag : UNKNOWN_TAGS;
}

const char *opscope__torch_values_fault(void)
{
    return tag_distance != UNKNOWN_TAGS
               ? NULL
               : "lists, texts and bools have an unknown layout; they stay opaque";
}

/* The text of `text`, if all that leads to it can be read. */
static bool is_sound(const struct text *text)
{
    struct opscope__pages pages;
    if (opscope__pages_read(&pages) != OPSCOPE_OK) {
        return false;
    }
    enum { OLD_HEAD_BYTES = 24 };
    const bool is_old = opscope__torch.has_old_strings;
    bool sound = !is_old || opscope__pages_grant(&pages, text->start - OLD_HEAD_BYTES,
                                                 OLD_HEAD_BYTES, PROT_READ);
    if (sound) {
        const uint64_t bytes = opscope__torch_text_bytes(&text->start, is_old);
        sound = (is_old || bytes >= sizeof text->in_place) && bytes < SIZE_MAX &&
                opscope__pages_grant(&pages, text->start, bytes + 1, PROT_READ) &&
                text->start[bytes] == '\0';
    }
    opscope__pages_release(&pages);
    return sound;
}

static bool can_be_read(const struct text *text)
{
    if (!opscope__torch.has_old_strings && text->start == text->in_place) {
        return text->bytes < sizeof text->in_place;
    }
    int state = opscope__load_relaxed(&text_state);
    if (state == UNCHECKED) {
        state = is_sound(text) ? SOUND : UNSOUND;
        opscope__store_relaxed(&text_state, state);
    }
    return state == SOUND;
}

static opscope_value value_of(const struct opscope__torch_value *from);

static size_t box(const struct opscope__torch_value *row, size_t count, opscope_value *values,
                  size_t capacity)
{
    for (size_t i = 0; i < count && i < capacity; i++) {
        values[i] = value_of(&row[i]);
    }
    return count;
}

static size_t box_items(void *arg, opscope_value *values, size_t capacity)
{
    const struct list *list = arg;
    return box(list->first, (size_t)(list->last - list->first), values, capacity);
}

/* ---- values ------------------------------------------------------------------------------------- */

static opscope_value opaque(const struct opscope__torch_value *from)
{
    return (opscope_value){
        .kind = OPSCOPE_VALUE_OBJECT, .type = "torch.other", .as.object = (void *)(uintptr_t)from};
}

/* The tag as in 2.9 and later; -1 for one of a kind without a name here. */
static int tag_of(const struct opscope__torch_value *from)
{
    if (from->tag <= OPSCOPE__TORCH_INT) {
        return (int)from->tag;
    }
    return tag_distance != UNKNOWN_TAGS && from->tag < UNKNOWN_TAGS ? (int)from->tag + tag_distance
                                                                    : -1;
}

static opscope_value value_of(const struct opscope__torch_value *from)
{
    opscope_value value = {.kind = OPSCOPE_VALUE_NONE};
    switch (tag_of(from)) {
    case OPSCOPE__TORCH_NONE:
        break;
    case OPSCOPE__TORCH_TENSOR:
        value.kind = OPSCOPE_VALUE_OBJECT;
        value.type = "torch.tensor";
        value.as.object = (void *)(uintptr_t)&from->payload;
        break;
    case OPSCOPE__TORCH_DOUBLE:
        value.kind = OPSCOPE_VALUE_FLOAT;
        value.as.real = from->payload.real;
        break;
    case OPSCOPE__TORCH_INT:
        value.kind = OPSCOPE_VALUE_INT;
        value.as.integer = from->payload.integer;
        break;
    case TAG_BOOL:
        value.kind = OPSCOPE_VALUE_BOOL;
        value.as.integer = from->payload.boolean;
        break;
    case TAG_TEXT:
        if (!can_be_read(from->payload.object)) {
            return opaque(from);
        }
        value.kind = OPSCOPE_VALUE_TEXT;
        value.as.text = ((const struct text *)from->payload.object)->start;
        break;
    case TAG_LIST:
        value.kind = OPSCOPE_VALUE_LIST;
        value.items = box_items;
        value.as.object = from->payload.object;
        break;
    default:
        return opaque(from);
    }
    return value;
}

size_t opscope__torch_box_inputs(void *fn, opscope_value *values, size_t capacity)
{
    return box(opscope__torch_inputs(fn), opscope__torch_input_count(fn), values, capacity);
}

size_t opscope__torch_box_outputs(void *fn, opscope_value *values, size_t capacity)
{
    const struct opscope__torch_value *first = opscope__torch_outputs_begin(fn);
    return box(first, (size_t)(opscope__torch_outputs_end(fn) - first), values, capacity);
}
