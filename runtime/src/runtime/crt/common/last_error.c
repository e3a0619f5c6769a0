/* The text of the last error. */
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/internal/common/errors.h>

static char last_error[1024] = "";

/* Appends as much of a text as fits; returns the length then. */
static size_t Append(size_t length, const char* text) {
  const size_t room = sizeof(last_error) - 1U - length;
  size_t bytes = strlen(text);
  if (bytes > room) {
    bytes = room;
  }
  memmove(last_error + length, text, bytes);
  last_error[length + bytes] = '\0';
  return length + bytes;
}

void TVMAPISetLastError(const char* message) { (void)Append(0, message == NULL ? "" : message); }

const char* TVMGetLastError(void) { return last_error; }

tvm_crt_error_t TVMCrtError(tvm_crt_error_t code, const char* text, const char* name) {
  size_t length = Append(0, text);
  if (name != NULL) {
    length = Append(length, ": '");
    length = Append(length, name);
    (void)Append(length, "'");
  }
  return code;
}
