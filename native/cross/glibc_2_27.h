/* cross/glibc_2_27.h -- included before every file of a wheel for glibc.
 *
 * glibc 2.29 gave these functions new versions, which set no errno of the old SVID kind, and a
 * library that is linked with it asks for them. The old versions are in every glibc and compute the
 * same, so a wheel that asks for those works from glibc 2.27 on. PyTorch needs 2.28.
 */
#if defined(__x86_64__)
#define OPSCOPE__OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OPSCOPE__OLDEST "GLIBC_2.17"
#endif

__asm__(".symver exp,exp@" OPSCOPE__OLDEST);
__asm__(".symver exp2,exp2@" OPSCOPE__OLDEST);
__asm__(".symver log,log@" OPSCOPE__OLDEST);
__asm__(".symver log2,log2@" OPSCOPE__OLDEST);
__asm__(".symver pow,pow@" OPSCOPE__OLDEST);
