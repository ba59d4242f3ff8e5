/* marks/nvtx.c -- NVTX's functions as a tool provides them: pushes and pops, starts and ends,
 * domains, strings.
 *
 * Single marks, categories, payloads and names of resources are not followed: the client then skips
 * their functions.
 */
#include "bridges/marks/clients.h"

#include "base/atomics.h"
#include "bridges/marks/moving.h"
#include "bridges/marks/range.h"
#include "bridges/marks/texts.h"

static uintptr_t domain_count; /* relaxed */

/* ---- strings and domains -------------------------------------------------------------------------- */

static void *register_a(void *domain, const char *text)
{
    (void)domain;
    return text != NULL ? opscope__marks_text(text) : NULL;
}

static void *register_w(void *domain, const wchar_t *wide)
{
    char text[OPSCOPE__MARKS_NAME_BYTES];
    (void)domain;
    if (wide == NULL) {
        return NULL;
    }
    opscope__marks_narrow(wide, text, sizeof text);
    return opscope__marks_text(text);
}

/* A handle of a domain is a number, only compared. NULL is the domain of marks without one. */
static void *create_domain(const void *name)
{
    (void)name;
    return (void *)(opscope__add_relaxed(&domain_count, 1) + 1);
}

/* ---- ranges ------------------------------------------------------------------------------------ */

/* The name of a range, in one of two forms; unnamed if both are NULL. */
struct message {
    const char *text;
    const wchar_t *wide;
};

static struct message message_of(const struct opscope__nvtx_attributes *attributes)
{
    struct message message = {NULL, NULL};
    if (attributes == NULL || attributes->size < sizeof *attributes ||
        attributes->message == NULL) {
        return message;
    }
    switch (attributes->message_type) {
    case OPSCOPE__NVTX_ASCII:
        message.text = attributes->message;
        break;
    case OPSCOPE__NVTX_REGISTERED:
        message.text = ((const struct opscope__itt_string *)attributes->message)->text;
        break;
    case OPSCOPE__NVTX_UNICODE:
        message.wide = attributes->message;
        break;
    default:
        break;
    }
    return message;
}

static int push_in(const void *domain, const struct opscope__nvtx_attributes *attributes)
{
    const struct message message = message_of(attributes);
    return message.wide != NULL ? opscope__marks_push_wide(OPSCOPE_MARKS_NVTX, domain, message.wide)
                                : opscope__marks_push(OPSCOPE_MARKS_NVTX, domain, message.text);
}

static int push_ex(const struct opscope__nvtx_attributes *attributes)
{
    return push_in(NULL, attributes);
}

static int push_a(const char *name)
{
    return opscope__marks_push(OPSCOPE_MARKS_NVTX, NULL, name);
}

static int push_w(const wchar_t *name)
{
    return opscope__marks_push_wide(OPSCOPE_MARKS_NVTX, NULL, name);
}

static int pop_in(const void *domain)
{
    return opscope__marks_pop(OPSCOPE_MARKS_NVTX, domain);
}

static int pop(void)
{
    return pop_in(NULL);
}

static uint64_t start_ex(const struct opscope__nvtx_attributes *attributes)
{
    const struct message message = message_of(attributes);
    return message.wide != NULL ? opscope__marks_start_wide(OPSCOPE_MARKS_NVTX, message.wide)
                                : opscope__marks_start(OPSCOPE_MARKS_NVTX, message.text);
}

static uint64_t start_a(const char *name)
{
    return opscope__marks_start(OPSCOPE_MARKS_NVTX, name);
}

static uint64_t start_w(const wchar_t *name)
{
    return opscope__marks_start_wide(OPSCOPE_MARKS_NVTX, name);
}

static uint64_t start_in(const void *domain, const struct opscope__nvtx_attributes *attributes)
{
    (void)domain;
    return start_ex(attributes);
}

/* The id alone identifies the range, as NVTX says. */
static void end_in(const void *domain, uint64_t id)
{
    (void)domain;
    opscope__marks_end(id);
}

/* ---- a client ------------------------------------------------------------------------------------ */

struct provided {
    unsigned id;
    opscope__nvtx_function function;
};

static const struct provided core[] = {
    {OPSCOPE__NVTX_START_EX, (opscope__nvtx_function)start_ex},
    {OPSCOPE__NVTX_START_A, (opscope__nvtx_function)start_a},
    {OPSCOPE__NVTX_START_W, (opscope__nvtx_function)start_w},
    {OPSCOPE__NVTX_END, (opscope__nvtx_function)opscope__marks_end},
    {OPSCOPE__NVTX_PUSH_EX, (opscope__nvtx_function)push_ex},
    {OPSCOPE__NVTX_PUSH_A, (opscope__nvtx_function)push_a},
    {OPSCOPE__NVTX_PUSH_W, (opscope__nvtx_function)push_w},
    {OPSCOPE__NVTX_POP, (opscope__nvtx_function)pop},
};
static const struct provided core2[] = {
    {OPSCOPE__NVTX_DOMAIN_START_EX, (opscope__nvtx_function)start_in},
    {OPSCOPE__NVTX_DOMAIN_END, (opscope__nvtx_function)end_in},
    {OPSCOPE__NVTX_DOMAIN_PUSH_EX, (opscope__nvtx_function)push_in},
    {OPSCOPE__NVTX_DOMAIN_POP, (opscope__nvtx_function)pop_in},
    {OPSCOPE__NVTX_REGISTER_STRING_A, (opscope__nvtx_function)register_a},
    {OPSCOPE__NVTX_REGISTER_STRING_W, (opscope__nvtx_function)register_w},
    {OPSCOPE__NVTX_DOMAIN_CREATE_A, (opscope__nvtx_function)create_domain},
    {OPSCOPE__NVTX_DOMAIN_CREATE_W, (opscope__nvtx_function)create_domain},
};

/* Sets the functions of a module that the client has places for. */
static bool provide(const struct opscope__nvtx_callbacks *callbacks, int32_t module,
                    const struct provided *provided, size_t count)
{
    opscope__nvtx_function **places = NULL;
    unsigned place_count = 0;
    if (callbacks->module(module, &places, &place_count) == 0 || places == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (provided[i].id < place_count && places[provided[i].id] != NULL) {
            *places[provided[i].id] = provided[i].function;
        }
    }
    return true;
}

bool opscope__marks_take_nvtx(opscope__nvtx_get_table *get_table)
{
    const struct opscope__nvtx_callbacks *callbacks = get_table(OPSCOPE__NVTX_CALLBACKS);
    if (callbacks == NULL || callbacks->size < sizeof *callbacks) {
        return false;
    }
    const bool has_core = provide(callbacks, OPSCOPE__NVTX_CORE, core, sizeof core / sizeof *core);
    return provide(callbacks, OPSCOPE__NVTX_CORE2, core2, sizeof core2 / sizeof *core2) || has_core;
}
