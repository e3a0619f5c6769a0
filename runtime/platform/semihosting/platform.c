/*
 * The platform of programs without an operating system, ready to use under an emulator or debugger: memory from a
 * static pool of TVM_WORKSPACE_SIZE_BYTES, messages and the end of the program by semihosting. It needs no C library.
 * The timer reads the host's clock, so its seconds are those of the host, not of the device.
 */
#include "semihosting.h"

#include <stdarg.h>
#include <stdint.h>
#include <tvm/runtime/crt/error_codes.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/page_allocator.h>
#include <tvm/runtime/crt/platform.h>

#ifndef TVM_WORKSPACE_SIZE_BYTES
#define TVM_WORKSPACE_SIZE_BYTES 65536
#endif

/* Pages of 64 bytes: small devices have many small tensors. */
#define PAGE_LOG2 6

/* Operations of semihosting. */
#define SYS_WRITE0 0x04
#define SYS_EXIT_EXTENDED 0x20
#define SYS_ELAPSED 0x30
#define SYS_TICKFREQ 0x31

/* The reason of an exit that is the program's own. */
#define APPLICATION_EXIT 0x20026U

#if defined(__arm__)
static intptr_t Ask(uintptr_t operation, const void* argument) {
  register uintptr_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return (intptr_t)r0;
}
#elif defined(__riscv)
static intptr_t Ask(uintptr_t operation, const void* argument) {
  register uintptr_t a0 __asm__("a0") = operation;
  register const void* a1 __asm__("a1") = argument;
  /* The three instructions are the mark of a call; they must be long ones, on one page. */
  __asm__ volatile(
      ".balign 16\n.option push\n.option norvc\nslli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
  return (intptr_t)a0;
}
#else
#error "semihosting is for ARM Cortex-M and RISC-V"
#endif

void SemihostingWrite(const char* text) { (void)Ask(SYS_WRITE0, text); }

void SemihostingExit(int status) {
  uintptr_t block[2];
  block[0] = APPLICATION_EXIT;
  block[1] = (uintptr_t)status;
  for (;;) {
    (void)Ask(SYS_EXIT_EXTENDED, block);
  }
}

void TVMPlatformAbort(tvm_crt_error_t code) {
  TVMLogf("aborted: error 0x%03x\n", (unsigned)code);
  SemihostingExit(134);
}

static union {
  uint8_t bytes[TVM_WORKSPACE_SIZE_BYTES];
  uint64_t alignment;
}
#if defined(__GNUC__)
__attribute__((aligned(64)))
#endif
pool;
static MemoryManagerInterface* manager = NULL;

tvm_crt_error_t TVMPlatformInitialize(void) {
  return PageMemoryManagerCreate(&manager, pool.bytes, sizeof(pool.bytes), PAGE_LOG2);
}

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void** out_ptr) {
  return manager == NULL ? kTvmErrorPlatformNoMemory : manager->Allocate(manager, num_bytes, dev, out_ptr);
}

tvm_crt_error_t TVMPlatformMemoryFree(void* ptr, DLDevice dev) {
  return manager == NULL ? kTvmErrorPlatformCheckFailure : manager->Free(manager, ptr, dev);
}

/* A message that grows, as far as its buffer goes. */
typedef struct {
  char* buffer;
  size_t capacity;
  size_t length;
} Message;

static void Put(Message* message, char character) {
  if (message->length + 1U < message->capacity) {
    message->buffer[message->length] = character;
  }
  ++message->length;
}

/* One conversion of a format. */
typedef struct {
  int left;
  char fill;
  int width;
  int precision; /* negative when there is none */
  int longs;     /* 1 for l, z and t, 2 for ll and j */
} Conversion;

/* Puts a sign or prefix and a text, filled up to the width. */
static void PutField(Message* message, const Conversion* conversion, const char* prefix, const char* text, int length) {
  int prefix_length = 0;
  int gap;
  int i;
  while (prefix[prefix_length] != '\0') {
    ++prefix_length;
  }
  gap = conversion->width - prefix_length - length;
  for (i = 0; i < gap && !conversion->left && conversion->fill == ' '; ++i) {
    Put(message, ' ');
  }
  for (i = 0; i < prefix_length; ++i) {
    Put(message, prefix[i]);
  }
  for (i = 0; i < gap && !conversion->left && conversion->fill == '0'; ++i) {
    Put(message, '0');
  }
  for (i = 0; i < length; ++i) {
    Put(message, text[i]);
  }
  for (i = 0; i < gap && conversion->left; ++i) {
    Put(message, ' ');
  }
}

/* Writes the digits of a number to the end of a buffer; returns where they start. */
static char* Digits(char* end, uint64_t value, unsigned base, char ten) {
  do {
    const unsigned digit = (unsigned)(value % base);
    *--end = (char)(digit < 10U ? '0' + (int)digit : ten + (int)digit - 10);
    value /= base;
  } while (value != 0U);
  return end;
}

static void PutInteger(Message* message, const Conversion* conversion, const char* prefix, uint64_t value,
                       unsigned base, char ten) {
  char digits[24];
  char* const end = digits + sizeof(digits);
  const char* const start = Digits(end, value, base, ten);
  PutField(message, conversion, prefix, start, (int)(end - start));
}

/* Fixed notation of up to 9 places; what is beyond 2^63 is written as "large". */
static void PutFixed(Message* message, const Conversion* conversion, double value) {
  char text[40];
  char* const end = text + sizeof(text);
  char* start = end;
  const char* const sign = value < 0.0 ? "-" : "";
  const double magnitude = value < 0.0 ? -value : value;
  const int places = conversion->precision < 0 ? 6 : conversion->precision > 9 ? 9 : conversion->precision;
  uint64_t scale = 1;
  uint64_t whole;
  uint64_t part;
  int i;
  if (!(magnitude < 9.0e18)) {
    const int number = magnitude > 0.0;
    PutField(message, conversion, sign, number ? "large" : "nan", number ? 5 : 3);
    return;
  }
  for (i = 0; i < places; ++i) {
    scale *= 10U;
  }
  whole = (uint64_t)magnitude;
  part = (uint64_t)((magnitude - (double)whole) * (double)scale + 0.5);
  if (part >= scale) {
    ++whole;
    part -= scale;
  }
  if (places > 0) {
    start = Digits(end, part, 10, 'a');
    while (end - start < places) {
      *--start = '0';
    }
    *--start = '.';
  }
  start = Digits(start, whole, 10, 'a');
  PutField(message, conversion, sign, start, (int)(end - start));
}

static int ParseNumber(const char** format) {
  int value = 0;
  while (**format >= '0' && **format <= '9') {
    value = value < 1000 ? value * 10 + (**format - '0') : value;
    ++*format;
  }
  return value;
}

/* Reads what stands between the percent sign and the letter. */
static Conversion ParseConversion(const char** format) {
  Conversion conversion = {0, ' ', 0, -1, 0};
  for (; **format == '-' || **format == '0' || **format == '+' || **format == ' ' || **format == '#'; ++*format) {
    conversion.left |= **format == '-';
    conversion.fill = **format == '0' ? '0' : conversion.fill;
  }
  conversion.width = ParseNumber(format);
  if (**format == '.') {
    ++*format;
    conversion.precision = ParseNumber(format);
  }
  for (; **format == 'l' || **format == 'h' || **format == 'z' || **format == 'j' || **format == 't'; ++*format) {
    conversion.longs += **format == 'j' ? 2 : **format == 'h' ? 0 : 1;
  }
  return conversion;
}

size_t TVMPlatformFormatMessage(char* out_buf, size_t out_buf_size_bytes, const char* fmt, va_list args) {
  Message message;
  message.buffer = out_buf;
  message.capacity = out_buf_size_bytes;
  message.length = 0;
  while (*fmt != '\0') {
    Conversion conversion;
    int64_t number;
    if (*fmt != '%') {
      Put(&message, *fmt++);
      continue;
    }
    ++fmt;
    conversion = ParseConversion(&fmt);
    switch (*fmt) {
      case 'd':
      case 'i':
        number = conversion.longs > 1    ? va_arg(args, long long)
                 : conversion.longs == 1 ? va_arg(args, long)
                                         : va_arg(args, int);
        PutInteger(&message, &conversion, number < 0 ? "-" : "",
                   number < 0 ? 0U - (uint64_t)number : (uint64_t)number, 10, 'a');
        break;
      case 'u':
      case 'x':
      case 'X':
        PutInteger(&message, &conversion, "",
                   conversion.longs > 1    ? va_arg(args, unsigned long long)
                   : conversion.longs == 1 ? va_arg(args, unsigned long)
                                           : va_arg(args, unsigned),
                   *fmt == 'u' ? 10U : 16U, *fmt == 'X' ? 'A' : 'a');
        break;
      case 'p':
        PutInteger(&message, &conversion, "0x", (uint64_t)(uintptr_t)va_arg(args, void*), 16, 'a');
        break;
      case 'c': {
        const char character = (char)va_arg(args, int);
        PutField(&message, &conversion, "", &character, 1);
        break;
      }
      case 's': {
        const char* const text = va_arg(args, const char*);
        int length = 0;
        while (text[length] != '\0' && (conversion.precision < 0 || length < conversion.precision)) {
          ++length;
        }
        PutField(&message, &conversion, "", text, length);
        break;
      }
      case 'e':
      case 'f':
      case 'g':
        PutFixed(&message, &conversion, va_arg(args, double));
        break;
      case '\0':
        continue;
      default:
        Put(&message, *fmt);
    }
    ++fmt;
  }
  if (out_buf_size_bytes > 0U) {
    out_buf[message.length < out_buf_size_bytes ? message.length : out_buf_size_bytes - 1U] = '\0';
  }
  return message.length;
}

void TVMLogf(const char* fmt, ...) {
  char text[256];
  va_list args;
  va_start(args, fmt);
  (void)TVMPlatformFormatMessage(text, sizeof(text), fmt, args);
  va_end(args);
  SemihostingWrite(text);
}

static uint64_t timer_start;
static int timer_running = 0;

/* Ticks since some moment, and how many there are in a second; not every debugger knows. */
static tvm_crt_error_t ReadClock(uint64_t* ticks, double* frequency) {
  const intptr_t in_a_second = Ask(SYS_TICKFREQ, NULL);
  if (in_a_second <= 0 || Ask(SYS_ELAPSED, ticks) != 0) {
    return kTvmErrorPlatformTimerBadState;
  }
  *frequency = (double)in_a_second;
  return kTvmErrorNoError;
}

tvm_crt_error_t TVMPlatformTimerStart(void) {
  double frequency = 1.0;
  if (timer_running) {
    return kTvmErrorPlatformTimerBadState;
  }
  timer_running = ReadClock(&timer_start, &frequency) == kTvmErrorNoError;
  return timer_running ? kTvmErrorNoError : kTvmErrorPlatformTimerBadState;
}

tvm_crt_error_t TVMPlatformTimerStop(double* elapsed_time_seconds) {
  uint64_t now = 0;
  double frequency = 1.0;
  if (!timer_running || ReadClock(&now, &frequency) != kTvmErrorNoError) {
    return kTvmErrorPlatformTimerBadState;
  }
  timer_running = 0;
  *elapsed_time_seconds = (double)(now - timer_start) / frequency;
  return kTvmErrorNoError;
}
