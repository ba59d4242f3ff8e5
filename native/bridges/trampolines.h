/* trampolines.h -- pools of functions that differ only in the slot that they pass on.
 *
 * They are in assembly: a compiler takes ten seconds for seven thousand C functions, and a table of
 * their addresses is filled in anew at each start of a process.
 */
#ifndef OPSCOPE_BRIDGES_TRAMPOLINES_H
#define OPSCOPE_BRIDGES_TRAMPOLINES_H

#include <stddef.h>
#include <stdint.h>

enum { OPSCOPE__TRAMPOLINE_BYTES = 16 };

/* Defines `count` functions in a row, the first of which is `name`. Number n has the parameters of
 * `target` but the last one, passes these on, and &slots[n] after them. There are `others` of them,
 * which are integers or pointers. `count` and `slot_bytes` are numbers, not expressions, for the
 * assembler. `target` and `slots` have the attribute `used`: a compiler sees no use here. */
#define OPSCOPE__TRAMPOLINES(name, count, slots, slot_bytes, target, others)                       \
    extern void name(void) __attribute__((visibility("hidden")));                                  \
    OPSCOPE__TRAMPOLINES_IN_ASSEMBLY(name, count, slots, slot_bytes, target,                       \
                                     OPSCOPE__REGISTER_##others)

#if defined(__x86_64__)
#define OPSCOPE__REGISTER_2 "%rdx"
#define OPSCOPE__REGISTER_3 "%rcx"
#define OPSCOPE__REGISTER_4 "%r8"
#define OPSCOPE__TRAMPOLINE(slots, slot_bytes, target, register)                                   \
    "endbr64\n"                                                                                    \
    "lea " #slots "+" #slot_bytes "*number(%rip), " register "\n"                                  \
                                                             "jmp " #target "\n"
#elif defined(__aarch64__)
#define OPSCOPE__REGISTER_2 "x2"
#define OPSCOPE__REGISTER_3 "x3"
#define OPSCOPE__REGISTER_4 "x4"
#define OPSCOPE__TRAMPOLINE(slots, slot_bytes, target, register)                                   \
    "hint #34\n" /* bti c */                                                                       \
    "adrp " register ", " #slots "+" #slot_bytes "*number\n"                                       \
                     "add " register ", " register ", :lo12:" #slots "+" #slot_bytes "*number\n"   \
                                                   "b " #target "\n"
#endif

#define OPSCOPE__TRAMPOLINES_IN_ASSEMBLY(name, count, slots, slot_bytes, target, register)         \
    __asm__(".pushsection .text\n"                                                                 \
            ".p2align 4\n"                                                                         \
            ".type " #name ", %function\n" #name ":\n"                                             \
            ".set number, 0\n"                                                                     \
            ".rept " #count "\n"                                                                   \
            ".p2align 4\n" OPSCOPE__TRAMPOLINE(slots, slot_bytes, target,                          \
                                               register) ".set number, number + 1\n"               \
                                                         ".endr\n"                                 \
                                                         ".size " #name ", .-" #name "\n"          \
                                                         ".popsection\n")

/* The address of number n, as a function of another type. */
static inline uintptr_t opscope__trampoline(void (*first)(void), size_t n)
{
    return (uintptr_t)first + n * OPSCOPE__TRAMPOLINE_BYTES;
}

#endif
