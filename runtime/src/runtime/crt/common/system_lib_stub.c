/*
 * The entry point of a program without generated functions. It is weak: that of generated code takes its place. Where
 * the compiler has no weak symbols, leave this file out of programs with generated functions, or define
 * TVM_CRT_NO_SYSTEM_LIB_STUB.
 */
#include <tvm/runtime/crt/module.h>

#if defined(TVM_CRT_NO_SYSTEM_LIB_STUB)
#elif defined(__GNUC__)
__attribute__((weak)) const TVMModule* TVMSystemLibEntryPoint(void) { return NULL; }
#else
const TVMModule* TVMSystemLibEntryPoint(void) { return NULL; }
#endif
