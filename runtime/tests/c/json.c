/* The JSON reader. Every text is in a block of its own size, so that reading beyond it is noticed. */
#include "expect.h"

#include <tvm/runtime/crt/internal/graph_executor/json_reader.h>

static JsonReader Start(const char* text, char** block) {
  const size_t bytes = strlen(text);
  JsonReader reader;
  *block = (char*)malloc(bytes + (bytes == 0U ? 1U : 0U));
  memcpy(*block, text, bytes);
  JsonReader_Init(&reader, *block, bytes);
  return reader;
}

static void ExpectString(const char* text, const char* value) {
  char* block;
  char buffer[8];
  size_t length = 99;
  JsonReader reader = Start(text, &block);
  const tvm_crt_error_t status = JsonReader_String(&reader, buffer, sizeof(buffer), &length);
  if (value == NULL) {
    EXPECT_CODE(status, kTvmErrorFunctionCallInvalidArg);
  } else {
    EXPECT_OK(status);
    EXPECT(length == strlen(value));
    EXPECT(strcmp(buffer, length < sizeof(buffer) ? value : "") == 0);
    EXPECT_OK(JsonReader_End(&reader));
  }
  free(block);
}

static void TestStrings(void) {
  ExpectString("\"\"", "");
  ExpectString(" \n\"a b\" ", "a b");
  ExpectString("\"1234567\"", "1234567");
  ExpectString("\"12345678\"", "12345678");
  ExpectString("\"\\\"\\\\\\/\\n\"", "\"\\/\n");
  ExpectString("\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac");
  ExpectString("\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80");
  ExpectString("\"\\u0000\"", NULL);
  ExpectString("\"\\ud83d\"", NULL);
  ExpectString("\"\\ud83dx\"", NULL);
  ExpectString("\"\\ud83d\\u0041\"", NULL);
  ExpectString("\"\\ude00\"", NULL);
  ExpectString("\"\\u12", NULL);
  ExpectString("\"\\u12g4\"", NULL);
  ExpectString("\"\\", NULL);
  ExpectString("\"\\x\"", NULL);
  ExpectString("\"open", NULL);
  ExpectString("\"tab\t\"", NULL);
  ExpectString("", NULL);
  ExpectString("12", NULL);
}

static void ExpectNumber(const char* text, uint64_t value, int good) {
  char* block;
  uint64_t got = 0;
  JsonReader reader = Start(text, &block);
  const tvm_crt_error_t status = JsonReader_Unsigned(&reader, &got);
  EXPECT(good ? status == kTvmErrorNoError && got == value : status == kTvmErrorFunctionCallInvalidArg);
  free(block);
}

static void TestNumbers(void) {
  ExpectNumber("0", 0, 1);
  ExpectNumber(" 17,", 17, 1);
  ExpectNumber("9223372036854775807", UINT64_C(9223372036854775807), 1);
  ExpectNumber("9223372036854775808", 0, 0);
  ExpectNumber("99999999999999999999999999", 0, 0);
  ExpectNumber("-1", 0, 0);
  ExpectNumber("1.5", 0, 0);
  ExpectNumber("1e3", 0, 0);
  ExpectNumber("", 0, 0);
  ExpectNumber("x", 0, 0);
}

static void ExpectSkipped(const char* text, int good) {
  char* block;
  JsonReader reader = Start(text, &block);
  tvm_crt_error_t status = JsonReader_Skip(&reader);
  if (status == kTvmErrorNoError) {
    status = JsonReader_End(&reader);
  }
  EXPECT_CODE(status, good ? kTvmErrorNoError : kTvmErrorFunctionCallInvalidArg);
  free(block);
}

static void TestSkipping(void) {
  char deep[2 * JSON_READER_MAX_DEPTH + 3];
  ExpectSkipped("null", 1);
  ExpectSkipped("-1.5e+3", 1);
  ExpectSkipped("[]", 1);
  ExpectSkipped("{}", 1);
  ExpectSkipped("[1, [2, {\"a\": [], \"b\": {\"c\": \"]}\"}}], true]", 1);
  ExpectSkipped("[1 2]", 0);
  ExpectSkipped("[,1]", 0);
  ExpectSkipped("[1,]", 0);
  ExpectSkipped("[1}", 0);
  ExpectSkipped("{\"a\" 1}", 0);
  ExpectSkipped("{\"a\": }", 0);
  ExpectSkipped("{1: 2}", 0);
  ExpectSkipped("[[]", 0);
  ExpectSkipped("[]]", 0);
  ExpectSkipped("", 0);
  memset(deep, '[', JSON_READER_MAX_DEPTH);
  memset(deep + JSON_READER_MAX_DEPTH, ']', JSON_READER_MAX_DEPTH);
  deep[2 * JSON_READER_MAX_DEPTH] = '\0';
  ExpectSkipped(deep, 1);
  memset(deep, '[', JSON_READER_MAX_DEPTH + 1);
  memset(deep + JSON_READER_MAX_DEPTH + 1, ']', JSON_READER_MAX_DEPTH + 1);
  deep[2 * JSON_READER_MAX_DEPTH + 2] = '\0';
  ExpectSkipped(deep, 0);
}

int main(void) {
  TestStrings();
  TestNumbers();
  TestSkipping();
  puts("done");
  return 0;
}
