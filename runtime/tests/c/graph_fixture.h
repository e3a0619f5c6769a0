/* A module with a few operators, a graph that uses them, and parameters files. */
#ifndef TESTS_GRAPH_FIXTURE_H_
#define TESTS_GRAPH_FIXTURE_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/module.h>

/*
 * Operators on float32: add(a, b), negate(a), scale(a, scalar), split(a) into two halves, fail(a) with code 0x1234.
 * They check their arguments, as generated code does not have to.
 */
extern const TVMModule fixture_module;

/* The same with _lookup_linked_param: storage 1 holds 10, 20, ... and storage 4 holds 2. */
extern const TVMModule fixture_linked_module;

/*
 * outputs = halves of -(x + p0) * p1, for x of (2, 3), p0 of (6) and a scalar p1. x is viewed as (6), and the second
 * half as (3, 1). It has members and attributes that readers must skip.
 */
extern const char fixture_graph[];

/* A tensor of float32 on the CPU. */
DLTensor FloatTensor(float* data, int64_t* shape, int ndim);

/* A parameters file that grows. */
typedef struct {
  uint8_t bytes[1024];
  size_t size;
} Blob;

/* Starts a file with names, which end with NULL. */
void Blob_Names(Blob* blob, const char* const* names);

/* Adds an array of float32. */
void Blob_Array(Blob* blob, int32_t ndim, const int64_t* shape, const float* values, size_t count);

/* The parameters of the graph: p1 = 2, then p0 = 1, 2, ... 6. */
void Blob_Fixture(Blob* blob);

#endif /* TESTS_GRAPH_FIXTURE_H_ */
