/* opscope/export.h -- exports symbols from the library. It declares none itself. */
#ifndef OPSCOPE_EXPORT_H
#define OPSCOPE_EXPORT_H

#define OPSCOPE_API __attribute__((visibility("default")))

#ifdef __cplusplus
#define OPSCOPE_BEGIN_DECLS extern "C" {
#define OPSCOPE_END_DECLS }
#else
#define OPSCOPE_BEGIN_DECLS
#define OPSCOPE_END_DECLS
#endif

#endif
