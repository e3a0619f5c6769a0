/* The helpers of operators that come from descriptions. */
#include "mlc_operator.h"

#ifndef MLC_OPERATOR_OWN_MEMORY
#include <stdlib.h>

void *mlc_operator_allocate(size_t bytes) { return calloc(bytes == 0 ? 1 : bytes, 1); }

void mlc_operator_free(void *memory) { free(memory); }
#endif

void *ln_clone(const void *source, size_t bytes) {
  void *const copy = mlc_operator_allocate(bytes);
  if (copy != NULL) {
    memcpy(copy, source, bytes);
  }
  return copy;
}

char *ln_strdup(const char *text) { return ln_clone(text, strlen(text) + 1); }

/* Writes a number and returns where its text ends. */
static char *print_number(char *text, int number) {
  char digits[12];
  int count = 0;
  unsigned left = number < 0 ? 0u - (unsigned)number : (unsigned)number;
  if (number < 0) {
    *text++ = '-';
  }
  do {
    digits[count++] = (char)('0' + left % 10);
    left /= 10;
  } while (left > 0);
  while (count > 0) {
    *text++ = digits[--count];
  }
  return text;
}

char *ln_sprint_shape(char *buffer, int ndim, const int *dims) {
  char *text = buffer;
  int i;
  *text++ = '[';
  for (i = 0; i < ndim; ++i) {
    if (i > 0) {
      *text++ = ',';
      *text++ = ' ';
    }
    text = print_number(text, dims[i]);
  }
  *text++ = ']';
  *text = '\0';
  return buffer;
}

size_t tl_size_of(tl_dtype dtype) {
  switch (dtype) {
    case TL_DOUBLE:
    case TL_INT64:
    case TL_UINT64:
      return 8;
    case TL_FLOAT:
    case TL_INT32:
    case TL_UINT32:
    case TL_BOOL:
      return 4;
    case TL_INT16:
    case TL_UINT16:
      return 2;
    case TL_INT8:
    case TL_UINT8:
      return 1;
    default:
      return 0;
  }
}

size_t tl_tensor_size(const tl_tensor *tensor) { return (size_t)tensor->len * tl_size_of(tensor->dtype); }

int tl_tensor_index(const tl_tensor *tensor, const int *coords) {
  int index = 0;
  int i;
  for (i = 0; i < tensor->ndim; ++i) {
    index = index * tensor->dims[i] + coords[i];
  }
  return index;
}

void tl_tensor_coords(const tl_tensor *tensor, int index, int *coords) {
  int i;
  for (i = tensor->ndim - 1; i >= 0; --i) {
    coords[i] = index % tensor->dims[i];
    index /= tensor->dims[i];
  }
}

int tl_tensor_issameshape(const tl_tensor *left, const tl_tensor *right) {
  const size_t bytes = (size_t)left->ndim * sizeof(int);
  return left->ndim == right->ndim && memcmp(left->dims, right->dims, bytes) == 0;
}

void mlc_operator_share(ln_tensor_entry *owner, ln_tensor_entry *output) {
  const size_t bytes = tl_tensor_size(output->tensor);
  const uint8_t *const window = (const uint8_t *)owner->tensor->data + output->offset;
  if (output->tensor->data != window) {
    memcpy(output->tensor->data, window, bytes);
  }
  if (output->offset == 0 && bytes == tl_tensor_size(owner->tensor)) {
    owner->tensor->data = output->tensor->data;
  }
}

/* An element of any type: a floating-point number, or an integer as sign and magnitude. */
typedef struct element {
  int is_float;
  double real;
  int is_negative;
  uint64_t magnitude;
} element;

static element signed_element(int64_t number) {
  element result = {0, 0.0, number < 0, number < 0 ? 0u - (uint64_t)number : (uint64_t)number};
  return result;
}

static element unsigned_element(uint64_t number) {
  element result = {0, 0.0, 0, number};
  return result;
}

static element real_element(double number) {
  element result = {1, number, 0, 0};
  return result;
}

#define LOAD(type, make)                  \
  do {                                    \
    type number;                          \
    memcpy(&number, source, sizeof number); \
    return make(number);                  \
  } while (0)

static element load(const void *source, tl_dtype dtype) {
  switch (dtype) {
    case TL_DOUBLE:
      LOAD(double, real_element);
    case TL_FLOAT:
      LOAD(float, real_element);
    case TL_INT64:
      LOAD(int64_t, signed_element);
    case TL_INT32:
      LOAD(int32_t, signed_element);
    case TL_INT16:
      LOAD(int16_t, signed_element);
    case TL_INT8:
      LOAD(int8_t, signed_element);
    case TL_UINT64:
      LOAD(uint64_t, unsigned_element);
    case TL_UINT32:
      LOAD(uint32_t, unsigned_element);
    case TL_UINT16:
      LOAD(uint16_t, unsigned_element);
    case TL_UINT8:
      LOAD(uint8_t, unsigned_element);
    case TL_BOOL:
      LOAD(tl_bool_t, signed_element);
    default:
      return real_element(0.0);
  }
}

/* The element as sign and magnitude, towards zero; what isn't a number is zero. */
static element integral(element number) {
  if (number.is_float) {
    const double size = fabs(number.real);
    number.is_negative = number.real < 0;
    if (!(size >= 1)) {
      number.magnitude = 0;
    } else {
      number.magnitude = size >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)size;
    }
  }
  return number;
}

static int64_t to_signed(element number, int64_t low, int64_t high) {
  number = integral(number);
  if (number.is_negative) {
    return number.magnitude >= 0u - (uint64_t)low ? low : -(int64_t)number.magnitude;
  }
  return number.magnitude >= (uint64_t)high ? high : (int64_t)number.magnitude;
}

static uint64_t to_unsigned(element number, uint64_t high) {
  number = integral(number);
  if (number.is_negative) {
    return 0;
  }
  return number.magnitude >= high ? high : number.magnitude;
}

static double to_real(element number) {
  if (number.is_float) {
    return number.real;
  }
  return number.is_negative ? -(double)number.magnitude : (double)number.magnitude;
}

static float to_single(element number) {
  const double real = to_real(number);
  if (real > FLT_MAX) {
    return FLT_MAX;
  }
  return real < -FLT_MAX ? -FLT_MAX : (float)real;
}

#define STORE(type, value)                  \
  do {                                      \
    const type number = (type)(value);      \
    memcpy(target, &number, sizeof number); \
    return;                                 \
  } while (0)

static void store(void *target, tl_dtype dtype, element value) {
  switch (dtype) {
    case TL_DOUBLE:
      STORE(double, to_real(value));
    case TL_FLOAT:
      STORE(float, to_single(value));
    case TL_INT64:
      STORE(int64_t, to_signed(value, INT64_MIN, INT64_MAX));
    case TL_INT32:
      STORE(int32_t, to_signed(value, INT32_MIN, INT32_MAX));
    case TL_INT16:
      STORE(int16_t, to_signed(value, INT16_MIN, INT16_MAX));
    case TL_INT8:
      STORE(int8_t, to_signed(value, INT8_MIN, INT8_MAX));
    case TL_UINT64:
      STORE(uint64_t, to_unsigned(value, UINT64_MAX));
    case TL_UINT32:
      STORE(uint32_t, to_unsigned(value, UINT32_MAX));
    case TL_UINT16:
      STORE(uint16_t, to_unsigned(value, UINT16_MAX));
    case TL_UINT8:
      STORE(uint8_t, to_unsigned(value, UINT8_MAX));
    case TL_BOOL:
      STORE(tl_bool_t, value.is_float ? value.real != 0 : value.magnitude != 0);
    default:
      return;
  }
}

void tl_convert(void *target, tl_dtype target_dtype, const void *source, tl_dtype source_dtype) {
  store(target, target_dtype, load(source, source_dtype));
}

/* The 64 bits of an integer, as two's complement has them. */
static uint64_t bits_of(element number) { return number.is_negative ? 0u - number.magnitude : number.magnitude; }

/* Sums, differences and products wrap around in the element's type, as its bits do. */
static void store_bits(void *target, tl_dtype dtype, uint64_t bits) {
  const uint8_t b1 = (uint8_t)bits;
  const uint16_t b2 = (uint16_t)bits;
  const uint32_t b4 = (uint32_t)bits;
  switch (tl_size_of(dtype)) {
    case 1:
      memcpy(target, &b1, sizeof b1);
      break;
    case 2:
      memcpy(target, &b2, sizeof b2);
      break;
    case 4:
      memcpy(target, &b4, sizeof b4);
      break;
    default:
      memcpy(target, &bits, sizeof bits);
      break;
  }
}

static int is_less(element left, element right) {
  if (left.is_negative != right.is_negative) {
    return left.is_negative;
  }
  return left.is_negative ? left.magnitude > right.magnitude : left.magnitude < right.magnitude;
}

static void elew_integers(element left, element right, void *result, tl_elew_op op, tl_dtype dtype) {
  element quotient = {0, 0.0, left.is_negative != right.is_negative, 0};
  switch (op) {
    case TL_MUL:
      store_bits(result, dtype, bits_of(left) * bits_of(right));
      break;
    case TL_DIV:
      quotient.magnitude = right.magnitude == 0 ? 0 : left.magnitude / right.magnitude;
      store(result, dtype, quotient);
      break;
    case TL_SUM:
      store_bits(result, dtype, bits_of(left) + bits_of(right));
      break;
    case TL_SUB:
      store_bits(result, dtype, bits_of(left) - bits_of(right));
      break;
    case TL_MAX:
      store(result, dtype, is_less(left, right) ? right : left);
      break;
    case TL_MIN:
      store(result, dtype, is_less(right, left) ? right : left);
      break;
    default:
      store(result, dtype, real_element(pow(to_real(left), to_real(right))));
      break;
  }
}

static double elew_reals(double left, double right, tl_elew_op op) {
  switch (op) {
    case TL_MUL:
      return left * right;
    case TL_DIV:
      return left / right;
    case TL_SUM:
      return left + right;
    case TL_SUB:
      return left - right;
    case TL_MAX:
      return left < right ? right : left;
    case TL_MIN:
      return right < left ? right : left;
    default:
      return pow(left, right);
  }
}

void tl_elew(const void *left, const void *right, void *result, tl_elew_op op, tl_dtype dtype) {
  const element a = load(left, dtype);
  const element b = load(right, dtype);
  if (a.is_float) {
    const double real = elew_reals(a.real, b.real, op);
    /* One rounding of a sum, a product or a quotient in double precision gives what arithmetic in the type does. */
    const float single = (float)real;
    if (dtype == TL_FLOAT) {
      memcpy(result, &single, sizeof single);
    } else {
      memcpy(result, &real, sizeof real);
    }
  } else {
    elew_integers(a, b, result, op, dtype);
  }
}
