/*
 * What a program without an operating system asks of the debugger or emulator that it runs under: ARM Cortex-M and
 * RISC-V. Under anything else the processor stops at the first call.
 */
#ifndef MLC_RUNTIME_PLATFORM_SEMIHOSTING_H_
#define MLC_RUNTIME_PLATFORM_SEMIHOSTING_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Prints a text on the host's console. */
void SemihostingWrite(const char* text);

/* Ends the program; the emulator's exit status is the one given. Does not return. */
void SemihostingExit(int status);

#ifdef __cplusplus
}
#endif

#endif /* MLC_RUNTIME_PLATFORM_SEMIHOSTING_H_ */
