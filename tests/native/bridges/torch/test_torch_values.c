/* tests/native/bridges/torch/test_torch_values.c -- lists and texts of PyTorch: read if the trial
 * has confirmed their layout, opaque otherwise. */
#include "attached.h"
#include "ranges.h"

struct text {
    const void *functions;
    uint64_t counts;
    const char *start;
    uint64_t bytes;
    char in_place[16];
};

static struct fake_value value_of(const void *object, uint32_t tag)
{
    return (struct fake_value){.payload = (uint64_t)(uintptr_t)object, .tag = tag};
}

static void attach_with_first_input(const struct fake_value *input)
{
    struct fake_value inputs[FAKE_ARGUMENTS];
    set_arguments(inputs);
    inputs[0] = *input;
    CHECK(opscope_torch_trial_begin("") == NULL);
    fake_run_trial(inputs, FAKE_ARGUMENTS);
    CHECK(opscope_torch_trial_end() == NULL);
}

struct seen {
    opscope_value_kind kind;
    size_t count;
    int64_t first;
    char type[16];
    char text[64];
};

static int see(const opscope_range *fn, void *user, void **context)
{
    struct seen *seen = user;
    size_t count;
    opscope_value item;
    const opscope_value *inputs = opscope_fn_inputs(fn, &count);
    (void)context;
    CHECK_EQUAL(count, 1);
    *seen = (struct seen){.kind = inputs[0].kind};
    seen->count = opscope_value_items(&inputs[0], &item, 1);
    seen->first = seen->count > 0 ? item.as.integer : 0;
    if (inputs[0].type != NULL) {
        snprintf(seen->type, sizeof seen->type, "%s", inputs[0].type);
    }
    if (inputs[0].kind == OPSCOPE_VALUE_TEXT) {
        snprintf(seen->text, sizeof seen->text, "%s", inputs[0].as.text);
    }
    return OPSCOPE_OK;
}

/* What a callback gets for an operator's only input. */
static struct seen seen_of(const struct fake_value *input)
{
    struct seen seen = {.kind = OPSCOPE_VALUE_NONE};
    opscope_handle handle = add_global((opscope_callback){
        .start = see, .user = &seen, .sampling_prob = 1.0, .needs_inputs = true});
    fake_inputs = (void *)(uintptr_t)input;
    fake_input_count = 1;
    run_op("aten::view", "");
    (void)opscope_remove_callback(handle, true);
    return seen;
}

static void lists_and_texts_are_read_where_the_trial_found_a_list(void)
{
    const struct fake_value empty = value_of(&sizes, FAKE_LIST);
    attach_with_first_input(&empty);

    const struct fake_value numbers[] = {{7, FAKE_INT, 0}, {8, FAKE_INT, 0}, {9, FAKE_INT, 0}};
    const struct fake_list three = {.first = numbers, .last = numbers + 3};
    const struct fake_value list = value_of(&three, FAKE_LIST);
    struct seen seen = seen_of(&list);
    CHECK_EQUAL(seen.kind, OPSCOPE_VALUE_LIST);
    CHECK_EQUAL(seen.count, 3);
    CHECK_EQUAL(seen.first, 7);

    struct text here = {.bytes = 5, .in_place = "floor"};
    here.start = here.in_place;
    const struct fake_value short_text = value_of(&here, FAKE_TEXT);
    seen = seen_of(&short_text);
    CHECK_TEXT(seen.text, "floor");
    opscope_torch_detach();
}

/* The first text with an unexpected layout is final, so this is the last test. */
static void a_text_whose_pointer_leads_nowhere_is_opaque_and_so_are_those_after_it(void)
{
    const struct fake_value empty = value_of(&sizes, FAKE_LIST);
    attach_with_first_input(&empty);
    const struct text nowhere = {.start = (const char *)8, .bytes = 20};
    const struct text there = {.start = "a text of more than 15", .bytes = 22};
    const struct fake_value texts[] = {value_of(&nowhere, FAKE_TEXT), value_of(&there, FAKE_TEXT)};
    CHECK_TEXT(seen_of(&texts[0]).type, "torch.other");
    CHECK_TEXT(seen_of(&texts[1]).type, "torch.other");
    opscope_torch_detach();
}

static void lists_are_opaque_where_the_trial_found_something_else(void)
{
    const struct fake_value one = {.payload = 1, .tag = FAKE_INT};
    const struct fake_list lists[] = {
        {.first = (const struct fake_value *)8,
         .last = (const struct fake_value *)24}, /* not mapped */
        {.first = &zero, .last = &zero},         /* empty */
        {.first = &one, .last = &one + 1},       /* another number */
    };
    const struct fake_value found[] = {
        value_of(&lists[0], FAKE_LIST), value_of(&lists[1], FAKE_LIST),
        value_of(&lists[2], FAKE_LIST), value_of((void *)8, FAKE_LIST),
        value_of(&lists[0], FAKE_TEXT), {0, FAKE_INT, 0}};
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        attach_with_first_input(&found[i]);
        const struct fake_value list = value_of(&lists[1], FAKE_LIST);
        struct seen seen = seen_of(&list);
        CHECK_EQUAL(seen.kind, OPSCOPE_VALUE_OBJECT);
        CHECK_TEXT(seen.type, "torch.other");
        struct text here = {.bytes = 5, .in_place = "floor"};
        here.start = here.in_place;
        const struct fake_value text = value_of(&here, FAKE_TEXT);
        CHECK_TEXT(seen_of(&text).type, "torch.other");
        opscope_torch_detach();
    }
}

int main(void)
{
    RUN(lists_and_texts_are_read_where_the_trial_found_a_list);
    RUN(lists_are_opaque_where_the_trial_found_something_else);
    RUN(a_text_whose_pointer_leads_nowhere_is_opaque_and_so_are_those_after_it);
    return 0;
}
