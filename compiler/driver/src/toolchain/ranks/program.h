/* What the program of several ranks knows of each of them. */
#ifndef MLC_PROGRAM_H_
#define MLC_PROGRAM_H_

#include "mlc/transport.h"

typedef struct {
  size_t messages;
  /* Runs the model some times on the inputs in a folder, and writes the outputs there. Calls `begin` before each run. */
  int (*run)(const mlc_transport* transport, const char* folder, unsigned long runs, void (*begin)(void));
} rank_t;

extern const rank_t ranks[];
extern const size_t rank_count;

#endif /* MLC_PROGRAM_H_ */
