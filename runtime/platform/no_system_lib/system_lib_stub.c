/*
 * The entry point of a program that links the library common but has no generated function registry, such as one with
 * models of the C interface only. It is no part of common, and not weak: a definition there would be taken before that
 * of a model in a static library, without a word.
 */
#include <tvm/runtime/crt/module.h>

const TVMModule* TVMSystemLibEntryPoint(void) { return NULL; }
