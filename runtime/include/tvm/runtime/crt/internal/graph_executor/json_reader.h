/*
 * A reader of JSON text that hands out one thing at a time, in the order of the text. It never reads beyond the end it
 * was given, keeps no memory and does not recurse. All functions return 0, or kTvmErrorFunctionCallInvalidArg at what
 * is not JSON; then the reader must not be used any more.
 */
#ifndef TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_JSON_READER_H_
#define TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_JSON_READER_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A place in a text. */
typedef struct {
  const char* cursor;
  const char* end;
} JsonReader;

/* Most brackets that may be open inside of a value that is skipped. */
#define JSON_READER_MAX_DEPTH 64

/* Starts at the front of a text. */
void JsonReader_Init(JsonReader* reader, const char* text, size_t bytes);

/* Reads the bracket that begins an array or object. */
tvm_crt_error_t JsonReader_BeginArray(JsonReader* reader);
tvm_crt_error_t JsonReader_BeginObject(JsonReader* reader);

/*
 * Goes to the element of an array with a number that counts from 0: *more is 1 when there is one, and 0 when the array
 * ended instead.
 */
tvm_crt_error_t JsonReader_NextElement(JsonReader* reader, uint32_t index, int* more);

/* The same with the members of an object; reads the key too, like JsonReader_String. */
tvm_crt_error_t JsonReader_NextMember(JsonReader* reader, uint32_t index, char* key, size_t capacity, int* more);

/*
 * Reads a string into a buffer, with a terminator, in UTF-8. *length is the whole string's; where that is not below the
 * capacity, the buffer holds an empty string. A NUL inside of a string is refused. buffer may be NULL.
 */
tvm_crt_error_t JsonReader_String(JsonReader* reader, char* buffer, size_t capacity, size_t* length);

/* Reads an integer from 0 to 2^63 - 1. */
tvm_crt_error_t JsonReader_Unsigned(JsonReader* reader, uint64_t* value);

/* Reads any value and forgets it. */
tvm_crt_error_t JsonReader_Skip(JsonReader* reader);

/* Checks that nothing follows. */
tvm_crt_error_t JsonReader_End(JsonReader* reader);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_JSON_READER_H_ */
