/* The reader of tvm/runtime/crt/internal/graph_executor/json_reader.h. */
#include <string.h>
#include <tvm/runtime/crt/internal/common/errors.h>
#include <tvm/runtime/crt/internal/graph_executor/json_reader.h>

static tvm_crt_error_t Malformed(const char* text) {
  return TVMCrtError(kTvmErrorFunctionCallInvalidArg, text, NULL);
}

/* The next character that is no white space; NUL at the end. */
static char Peek(JsonReader* reader) {
  while (reader->cursor < reader->end) {
    const char next = *reader->cursor;
    if (next != ' ' && next != '\n' && next != '\t' && next != '\r') {
      return next;
    }
    ++reader->cursor;
  }
  return '\0';
}

/* Reads a character that must come next. */
static tvm_crt_error_t Expect(JsonReader* reader, char wanted) {
  if (Peek(reader) != wanted) {
    return Malformed("the JSON text is not what was expected, or ends too early");
  }
  ++reader->cursor;
  return kTvmErrorNoError;
}

void JsonReader_Init(JsonReader* reader, const char* text, size_t bytes) {
  reader->cursor = text;
  reader->end = text + bytes;
}

tvm_crt_error_t JsonReader_BeginArray(JsonReader* reader) { return Expect(reader, '['); }

tvm_crt_error_t JsonReader_BeginObject(JsonReader* reader) { return Expect(reader, '{'); }

static tvm_crt_error_t Next(JsonReader* reader, uint32_t index, char closing, int* more) {
  *more = Peek(reader) != closing;
  if (!*more) {
    return Expect(reader, closing);
  }
  return index == 0U ? kTvmErrorNoError : Expect(reader, ',');
}

tvm_crt_error_t JsonReader_NextElement(JsonReader* reader, uint32_t index, int* more) {
  return Next(reader, index, ']', more);
}

tvm_crt_error_t JsonReader_NextMember(JsonReader* reader, uint32_t index, char* key, size_t capacity, int* more) {
  size_t length = 0;
  tvm_crt_error_t status = Next(reader, index, '}', more);
  if (status == kTvmErrorNoError && *more) {
    status = JsonReader_String(reader, key, capacity, &length);
    if (status == kTvmErrorNoError) {
      status = Expect(reader, ':');
    }
  }
  return status;
}

/* A string that grows, as far as its buffer goes. */
typedef struct {
  char* buffer;
  size_t capacity;
  size_t length;
} Text;

static void Put(Text* text, uint32_t byte) {
  if (text->buffer != NULL && text->length < text->capacity) {
    text->buffer[text->length] = (char)(unsigned char)byte;
  }
  ++text->length;
}

static void PutCodePoint(Text* text, uint32_t point) {
  if (point < 0x80U) {
    Put(text, point);
  } else if (point < 0x800U) {
    Put(text, 0xc0U | (point >> 6U));
    Put(text, 0x80U | (point & 0x3fU));
  } else if (point < 0x10000U) {
    Put(text, 0xe0U | (point >> 12U));
    Put(text, 0x80U | ((point >> 6U) & 0x3fU));
    Put(text, 0x80U | (point & 0x3fU));
  } else {
    Put(text, 0xf0U | (point >> 18U));
    Put(text, 0x80U | ((point >> 12U) & 0x3fU));
    Put(text, 0x80U | ((point >> 6U) & 0x3fU));
    Put(text, 0x80U | (point & 0x3fU));
  }
}

/* Reads the four digits of \uXXXX. */
static tvm_crt_error_t Hexadecimal(JsonReader* reader, uint32_t* value) {
  int i;
  *value = 0;
  for (i = 0; i < 4; ++i) {
    char digit;
    if (reader->cursor == reader->end) {
      return Malformed("a JSON string does not end");
    }
    digit = *reader->cursor++;
    *value <<= 4U;
    if (digit >= '0' && digit <= '9') {
      *value += (uint32_t)(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      *value += (uint32_t)(digit - 'a') + 10U;
    } else if (digit >= 'A' && digit <= 'F') {
      *value += (uint32_t)(digit - 'A') + 10U;
    } else {
      return Malformed("a JSON string has a wrong escape");
    }
  }
  return kTvmErrorNoError;
}

/* Reads what follows \u: one code point, or the two halves of one. */
static tvm_crt_error_t UnicodeEscape(JsonReader* reader, Text* text) {
  uint32_t point = 0;
  tvm_crt_error_t status = Hexadecimal(reader, &point);
  if (status == kTvmErrorNoError && point >= 0xd800U && point < 0xe000U) {
    uint32_t low = 0;
    if (point >= 0xdc00U || reader->end - reader->cursor < 2 || reader->cursor[0] != '\\' || reader->cursor[1] != 'u') {
      return Malformed("a JSON string has half a character");
    }
    reader->cursor += 2;
    status = Hexadecimal(reader, &low);
    if (status == kTvmErrorNoError && (low < 0xdc00U || low >= 0xe000U)) {
      return Malformed("a JSON string has half a character");
    }
    point = 0x10000U + ((point - 0xd800U) << 10U) + (low - 0xdc00U);
  }
  if (status == kTvmErrorNoError) {
    if (point == 0U) {
      return Malformed("a JSON string contains a NUL");
    }
    PutCodePoint(text, point);
  }
  return status;
}

static tvm_crt_error_t Escape(JsonReader* reader, Text* text) {
  static const char kEscapes[] = "\"\\/bfnrt";
  static const char kMeanings[] = "\"\\/\b\f\n\r\t";
  const char* found;
  char escape;
  if (reader->cursor == reader->end) {
    return Malformed("a JSON string does not end");
  }
  escape = *reader->cursor++;
  if (escape == 'u') {
    return UnicodeEscape(reader, text);
  }
  found = escape == '\0' ? NULL : strchr(kEscapes, escape);
  if (found == NULL) {
    return Malformed("a JSON string has a wrong escape");
  }
  Put(text, (unsigned char)kMeanings[found - kEscapes]);
  return kTvmErrorNoError;
}

tvm_crt_error_t JsonReader_String(JsonReader* reader, char* buffer, size_t capacity, size_t* length) {
  Text text;
  tvm_crt_error_t status = Expect(reader, '"');
  text.buffer = buffer;
  text.capacity = capacity;
  text.length = 0;
  while (status == kTvmErrorNoError) {
    char next;
    if (reader->cursor == reader->end) {
      return Malformed("a JSON string does not end");
    }
    next = *reader->cursor++;
    if (next == '"') {
      break;
    }
    if ((unsigned char)next < 0x20U) {
      return Malformed("a JSON string contains a control character");
    }
    if (next == '\\') {
      status = Escape(reader, &text);
    } else {
      Put(&text, (unsigned char)next);
    }
  }
  if (buffer != NULL && capacity > 0U) {
    buffer[text.length < capacity ? text.length : 0U] = '\0';
  }
  *length = text.length;
  return status;
}

tvm_crt_error_t JsonReader_Unsigned(JsonReader* reader, uint64_t* value) {
  const uint64_t limit = (uint64_t)INT64_MAX;
  const char first = Peek(reader);
  *value = 0;
  if (first < '0' || first > '9') {
    return Malformed("the JSON text has no non-negative integer where one is needed");
  }
  while (reader->cursor < reader->end && *reader->cursor >= '0' && *reader->cursor <= '9') {
    const uint64_t digit = (uint64_t)(*reader->cursor - '0');
    if (*value > (limit - digit) / 10U) {
      return Malformed("an integer of the JSON text is too large");
    }
    *value = *value * 10U + digit;
    ++reader->cursor;
  }
  if (reader->cursor < reader->end && strchr(".eE", *reader->cursor) != NULL && *reader->cursor != '\0') {
    return Malformed("the JSON text has a fraction where an integer is needed");
  }
  return kTvmErrorNoError;
}

/* Reads a number, true, false or null, without a look at which. */
static tvm_crt_error_t SkipWord(JsonReader* reader) {
  const char* const start = reader->cursor;
  while (reader->cursor < reader->end) {
    const char next = *reader->cursor;
    const int letter = (next >= 'a' && next <= 'z') || next == 'E';
    const int numeric = (next >= '0' && next <= '9') || next == '+' || next == '-' || next == '.';
    if (!letter && !numeric) {
      break;
    }
    ++reader->cursor;
  }
  return reader->cursor == start ? Malformed("the JSON text has no value where one is needed") : kTvmErrorNoError;
}

/* Which brackets are open: bit 0 is the innermost one's, 1 for an object. */
typedef struct {
  uint64_t objects;
  uint32_t depth;
} Brackets;

/* Reads a scalar, or opens a bracket. */
static tvm_crt_error_t SkipStart(JsonReader* reader, Brackets* open) {
  const char next = Peek(reader);
  size_t length = 0;
  if (next == '"') {
    return JsonReader_String(reader, NULL, 0, &length);
  }
  if (next != '[' && next != '{') {
    return SkipWord(reader);
  }
  if (open->depth == JSON_READER_MAX_DEPTH) {
    return Malformed("the JSON text is nested too deeply");
  }
  ++reader->cursor;
  open->objects = open->objects << 1U | (next == '{' ? 1U : 0U);
  ++open->depth;
  return kTvmErrorNoError;
}

tvm_crt_error_t JsonReader_Skip(JsonReader* reader) {
  Brackets open = {0, 0};
  tvm_crt_error_t status = SkipStart(reader, &open);
  /* Whether the innermost bracket has no element yet. */
  int fresh = open.depth > 0U;
  while (status == kTvmErrorNoError && open.depth > 0U) {
    const int object = (open.objects & 1U) != 0U;
    const uint32_t depth = open.depth;
    size_t length = 0;
    int more = 0;
    status = Next(reader, fresh ? 0U : 1U, object ? '}' : ']', &more);
    fresh = 0;
    if (status != kTvmErrorNoError) {
      return status;
    }
    if (!more) {
      open.objects >>= 1U;
      --open.depth;
      continue;
    }
    if (object) {
      status = JsonReader_String(reader, NULL, 0, &length);
      if (status == kTvmErrorNoError) {
        status = Expect(reader, ':');
      }
    }
    if (status == kTvmErrorNoError) {
      status = SkipStart(reader, &open);
      fresh = open.depth > depth;
    }
  }
  return status;
}

tvm_crt_error_t JsonReader_End(JsonReader* reader) {
  return Peek(reader) == '\0' && reader->cursor == reader->end ? kTvmErrorNoError
                                                               : Malformed("something follows the JSON text");
}
