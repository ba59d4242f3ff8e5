/* torch/abi.h -- how C++ functions return objects, in terms of C.
 *
 * A C++ function returns an object that has a destructor through memory of its caller. On x86-64
 * the address of that memory comes before the arguments, as a first argument would. On aarch64 it
 * comes in a register of its own, x8, and the arguments stay where they are.
 *
 * C returns a struct of more than 16 bytes in the same way, on both. To call such a function of
 * C++, give it a C type that returns a struct of that size which starts with the object.
 *
 * The other direction needs an entry: a function of C++'s kind must not write beyond the object,
 * and C writes the struct whole. Write a C function that takes the object's address as its first
 * argument, and returns it. OPSCOPE__CXX_ENTRY then makes what C++ calls: on aarch64 a few
 * instructions that move the address and go on to the function; elsewhere the function itself. An
 * entry has a type of its own, because C must not call it.
 *
 * OPSCOPE__CXX_BEFORE makes a function that takes the place of such a function of C++, calls one of
 * ours and goes on to it, with all that its caller has passed.
 */
#ifndef OPSCOPE_BRIDGES_TORCH_ABI_H
#define OPSCOPE_BRIDGES_TORCH_ABI_H

#include <stdbool.h>
#include <stdint.h>

/* C returns larger structs through memory. */
enum { OPSCOPE__CXX_REGISTER_BYTES = 16 };

typedef void (*opscope__cxx_entry)(void);

#if defined(__aarch64__)

/* In a file's scope, once: makes the entry of a function with at most two arguments besides the
 * object's address. `hint #34` is `bti c`, which processors and kernels without it ignore. */
#define OPSCOPE__CXX_ENTRY(function)                                                               \
    __typeof__(function) function __attribute__((used));                                           \
    extern void function##__entry(void) __attribute__((visibility("hidden")));                     \
    __asm__(".pushsection .text\n"                                                                 \
            ".balign 4\n"                                                                          \
            ".type " #function "__entry, %function\n" #function "__entry:\n"                       \
            ".cfi_startproc\n"                                                                     \
            "hint #34\n"                                                                           \
            "mov x2, x1\n"                                                                         \
            "mov x1, x0\n"                                                                         \
            "mov x0, x8\n"                                                                         \
            "b " #function "\n"                                                                    \
            ".cfi_endproc\n"                                                                       \
            ".size " #function "__entry, . - " #function "__entry\n"                               \
            ".popsection")
#define OPSCOPE__CXX_ENTRY_OF(function) (function##__entry)

/* In a file's scope, once: defines `name`, which calls `before` (a function of one word, which
 * cannot fail) with its only argument, then jumps to `original`, a variable that this defines too.
 */
#define OPSCOPE__CXX_BEFORE(name, before, original)                                                \
    static opscope__cxx_entry original __attribute__((used));                                      \
    __typeof__(before) before __attribute__((used));                                               \
    extern void name(void) __attribute__((visibility("hidden")));                                  \
    __asm__(".pushsection .text\n"                                                                 \
            ".balign 4\n"                                                                          \
            ".type " #name ", %function\n" #name ":\n"                                             \
            ".cfi_startproc\n"                                                                     \
            "hint #34\n"                                                                           \
            "stp x29, x30, [sp, #-32]!\n"                                                          \
            ".cfi_def_cfa_offset 32\n"                                                             \
            ".cfi_offset 29, -32\n"                                                                \
            ".cfi_offset 30, -24\n"                                                                \
            "mov x29, sp\n"                                                                        \
            "stp x0, x8, [sp, #16]\n"                                                              \
            "bl " #before "\n"                                                                     \
            "ldp x0, x8, [sp, #16]\n"                                                              \
            "ldp x29, x30, [sp], #32\n"                                                            \
            ".cfi_restore 30\n"                                                                    \
            ".cfi_restore 29\n"                                                                    \
            ".cfi_def_cfa_offset 0\n"                                                              \
            "adrp x16, " #original "\n"                                                            \
            "ldr x16, [x16, #:lo12:" #original "]\n"                                               \
            "br x16\n"                                                                             \
            ".cfi_endproc\n"                                                                       \
            ".size " #name ", . - " #name "\n"                                                     \
            ".popsection")

#else

#define OPSCOPE__CXX_ENTRY(function) __typeof__(function) function
#define OPSCOPE__CXX_ENTRY_OF(function) ((opscope__cxx_entry)(function))
#define OPSCOPE__CXX_BEFORE(name, before, original)                                                \
    static opscope__cxx_entry original;                                                            \
    static void *name(void *out, uintptr_t argument)                                               \
    {                                                                                              \
        before(argument);                                                                          \
        return ((void *(*)(void *, uintptr_t))original)(out, argument);                            \
    }                                                                                              \
    _Static_assert(true, "takes a semicolon")

#endif

#endif
