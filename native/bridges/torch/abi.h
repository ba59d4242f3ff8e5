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
 */
#ifndef OPSCOPE_BRIDGES_TORCH_ABI_H
#define OPSCOPE_BRIDGES_TORCH_ABI_H

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

#else

#define OPSCOPE__CXX_ENTRY(function) __typeof__(function) function
#define OPSCOPE__CXX_ENTRY_OF(function) ((opscope__cxx_entry)(function))

#endif

#endif
