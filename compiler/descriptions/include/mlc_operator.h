/*
 * What operators that come from descriptions are written against: tensors, parameters, and helpers. Memory comes from two
 * functions that the project may define itself; nothing here prints or ends the program.
 */
#ifndef MLC_OPERATOR_H_
#define MLC_OPERATOR_H_

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most dimensions of a tensor, and the most bytes of a line of text. */
#define TL_MAXDIM 8
#define LN_MAXDIM 8
#define LN_MAXLINE 4096

/* Types of elements. A truth value has four bytes on every machine. */
typedef enum tl_dtype {
  TL_DTYPE_INVALID = -1,
  TL_DOUBLE = 0,
  TL_FLOAT = 1,
  TL_INT64 = 2,
  TL_INT32 = 3,
  TL_INT16 = 4,
  TL_INT8 = 5,
  TL_UINT64 = 6,
  TL_UINT32 = 7,
  TL_UINT16 = 8,
  TL_UINT8 = 9,
  TL_BOOL = 10,
  TL_DTYPE_SIZE = 11
} tl_dtype;

typedef int32_t tl_bool_t;
typedef int32_t ln_bool;
enum { TL_FALSE = 0, TL_TRUE = 1 };
enum { LN_FALSE = 0, LN_TRUE = 1 };

typedef enum tl_elew_op { TL_MUL, TL_DIV, TL_SUM, TL_SUB, TL_MAX, TL_MIN, TL_POW } tl_elew_op;
typedef enum tl_resize_type { TL_NEAREST, TL_LINEAR } tl_resize_type;
typedef enum tl_sort_dir { TL_SORT_DIR_ASCENDING, TL_SORT_DIR_DESCENDING } tl_sort_dir;
typedef enum ln_mem_type { LN_MEM_NONE, LN_MEM_CPU, LN_MEM_CUDA, LN_MEM_DPU } ln_mem_type;
typedef enum ln_param_type {
  LN_PARAM_NULL,
  LN_PARAM_STRING,
  LN_PARAM_NUMBER,
  LN_PARAM_BOOL,
  LN_PARAM_ARRAY_STRING,
  LN_PARAM_ARRAY_NUMBER,
  LN_PARAM_ARRAY_BOOL
} ln_param_type;

/* A dense tensor in row-major order. */
typedef struct tl_tensor {
  tl_dtype dtype;
  int len; /* number of elements */
  int ndim;
  int *dims;
  void *data;
  struct tl_tensor *owner;
  void *backend_data;
} tl_tensor;

/* A tensor of the model. */
typedef struct ln_tensor_entry {
  char *name;
  tl_tensor *tensor;
  char *owner; /* name of the tensor whose memory it lies in, or NULL */
  char *creater;
  size_t offset;
  int isstatic;
  ln_mem_type mtype;
} ln_tensor_entry;

/* A parameter; a number is kept in three types. */
typedef struct ln_param_entry {
  char *arg_name;
  ln_param_type type;
  int array_len;
  double value_double;
  float value_float;
  int value_int;
  ln_bool value_bool;
  char *value_string;
  double *value_array_double;
  float *value_array_float;
  int *value_array_int;
  ln_bool *value_array_bool;
  char **value_array_string;
} ln_param_entry;

/* An operator of the model. A check that fails sets the status, which is 0 otherwise. */
typedef struct ln_op_arg {
  char *name;
  char *optype;
  char *arch;
  void *tensor_table;
  void *priv;
  int32_t status;
  void *workspace; /* scratch memory of the run, where the description asks for some */
} ln_op_arg;

/* Zeroed memory, aligned for any type, or NULL; and its release. Defined in mlc_operator.c unless MLC_OPERATOR_OWN_MEMORY is. */
void *mlc_operator_allocate(size_t bytes);
void mlc_operator_free(void *memory);

void *ln_clone(const void *source, size_t bytes);
char *ln_strdup(const char *text);
char *ln_sprint_shape(char *buffer, int ndim, const int *dims);
size_t tl_size_of(tl_dtype dtype);
size_t tl_tensor_size(const tl_tensor *tensor);
int tl_tensor_index(const tl_tensor *tensor, const int *coords);
void tl_tensor_coords(const tl_tensor *tensor, int index, int *coords);
int tl_tensor_issameshape(const tl_tensor *left, const tl_tensor *right);

/* Converts an element: to integers towards zero, and never out of the range of the new type. */
void tl_convert(void *target, tl_dtype target_dtype, const void *source, tl_dtype source_dtype);

/* Computes an element of two. A division by zero gives zero for integers. */
void tl_elew(const void *left, const void *right, void *result, tl_elew_op op, tl_dtype dtype);

/* Makes an output hold what its owner, in whose memory it lies, holds there. An owner that is all of it is then the same memory. */
void mlc_operator_share(ln_tensor_entry *owner, ln_tensor_entry *output);

#define ln_alloc(bytes) mlc_operator_allocate(bytes)
#define ln_free(memory) mlc_operator_free(memory)

static inline int ln_streq(const char *left, const char *right) { return strcmp(left, right) == 0; }

static inline int ln_streqn(const char *left, const char *right, size_t count) {
  return strncmp(left, right, count) == 0;
}

#define tl_padd(pointer, count, bytes) ((void *)((uint8_t *)(pointer) + (ptrdiff_t)(count) * (ptrdiff_t)(bytes)))
#define tl_pointer_add(pointer, count, dtype) tl_padd((pointer), (count), tl_size_of(dtype))
#define tl_passign(target, i, source, j, bytes) \
  memmove(tl_padd((target), (i), (bytes)), tl_padd((source), (j), (bytes)), (bytes))
#define tl_pmove(target, i, source, j, count, bytes) \
  memmove(tl_padd((target), (i), (bytes)), tl_padd((source), (j), (bytes)), (size_t)(count) * (bytes))

/* Elements of tensors of any type. */
#define TL_TENSOR_DATA(tensor, index) tl_pointer_add((tensor)->data, (index), (tensor)->dtype)
#define TL_TENSOR_DATA_TO(tensor, index, variable, variable_dtype) \
  tl_convert(&(variable), (variable_dtype), TL_TENSOR_DATA((tensor), (index)), (tensor)->dtype)
#define TL_TENSOR_DATA_FROM(tensor, index, variable, variable_dtype) \
  tl_convert(TL_TENSOR_DATA((tensor), (index)), (tensor)->dtype, &(variable), (variable_dtype))
#define TL_TENSOR_DATA_ASSIGN(target, i, source, j)                     \
  tl_convert(TL_TENSOR_DATA((target), (i)), (target)->dtype, TL_TENSOR_DATA((source), (j)), (source)->dtype)

/* Messages go to MLC_OPERATOR_LOG(format, ...) of the project, if there is one. */
#ifdef MLC_OPERATOR_LOG
#define mlc_operator_log(...) MLC_OPERATOR_LOG(__VA_ARGS__)
#else
static inline void mlc_operator_log(const char *format, ...) { (void)format; }
#endif

/* Errors end the function that they are in, and the run of the model with an error. */
#define ln_msg_error(...)          \
  do {                             \
    op_arg->status = -1;           \
    mlc_operator_log(__VA_ARGS__); \
    return;                        \
  } while (0)
#define ln_msg_error_sys(...) ln_msg_error(__VA_ARGS__)
#define ln_msg_inter_error(...) ln_msg_error(__VA_ARGS__)
#define ln_msg_warn(...) mlc_operator_log(__VA_ARGS__)
#define ln_msg_warn_sys(...) mlc_operator_log(__VA_ARGS__)
#define ln_msg_inter_warn(...) mlc_operator_log(__VA_ARGS__)
#define ln_msg_info(...) mlc_operator_log(__VA_ARGS__)
#define ln_msg_debug(...) mlc_operator_log(__VA_ARGS__)

#define ln_opck_satisfy_msg(condition, ...) \
  do {                                      \
    if (!(condition)) {                     \
      ln_msg_error(__VA_ARGS__);            \
    }                                       \
  } while (0)
#define ln_opck_satisfy(condition) ln_opck_satisfy_msg(condition, "%s", #condition)

#define ln_opck_tensor_mtype_eq(entry, expected) ln_opck_satisfy((entry)->mtype == (expected))
#define ln_opck_tensor_dtype_eq(entry, expected) ln_opck_satisfy((entry)->tensor->dtype == (expected))
#define ln_opck_tensor_ndim(entry, expected) ln_opck_satisfy((entry)->tensor->ndim == (expected))
#define ln_opck_tensor_len(entry, expected) ln_opck_satisfy((entry)->tensor->len == (expected))
#define ln_opck_tensor_issametype(entry, other) ln_opck_satisfy((entry)->tensor->dtype == (other)->tensor->dtype)
#define ln_opck_tensor_issameshape(entry, other) \
  ln_opck_satisfy(tl_tensor_issameshape((entry)->tensor, (other)->tensor))
#define ln_opck_tensor_isstatic(entry) ln_opck_satisfy((entry)->isstatic)
#define ln_opck_tensor_isnotstatic(entry) ln_opck_satisfy(!(entry)->isstatic)
#define ln_opck_param_array_len_eq(entry, expected) ln_opck_satisfy((entry)->array_len == (expected))

#define ln_opck_param_int_eq(entry, limit) ln_opck_satisfy((entry)->value_int == (limit))
#define ln_opck_param_int_ne(entry, limit) ln_opck_satisfy((entry)->value_int != (limit))
#define ln_opck_param_int_gt(entry, limit) ln_opck_satisfy((entry)->value_int > (limit))
#define ln_opck_param_int_ge(entry, limit) ln_opck_satisfy((entry)->value_int >= (limit))
#define ln_opck_param_int_lt(entry, limit) ln_opck_satisfy((entry)->value_int < (limit))
#define ln_opck_param_int_le(entry, limit) ln_opck_satisfy((entry)->value_int <= (limit))
#define ln_opck_param_float_eq(entry, limit) ln_opck_satisfy((entry)->value_float == (limit))
#define ln_opck_param_float_ne(entry, limit) ln_opck_satisfy((entry)->value_float != (limit))
#define ln_opck_param_float_gt(entry, limit) ln_opck_satisfy((entry)->value_float > (limit))
#define ln_opck_param_float_ge(entry, limit) ln_opck_satisfy((entry)->value_float >= (limit))
#define ln_opck_param_float_lt(entry, limit) ln_opck_satisfy((entry)->value_float < (limit))
#define ln_opck_param_float_le(entry, limit) ln_opck_satisfy((entry)->value_float <= (limit))
#define ln_opck_param_double_eq(entry, limit) ln_opck_satisfy((entry)->value_double == (limit))
#define ln_opck_param_double_ne(entry, limit) ln_opck_satisfy((entry)->value_double != (limit))
#define ln_opck_param_double_gt(entry, limit) ln_opck_satisfy((entry)->value_double > (limit))
#define ln_opck_param_double_ge(entry, limit) ln_opck_satisfy((entry)->value_double >= (limit))
#define ln_opck_param_double_lt(entry, limit) ln_opck_satisfy((entry)->value_double < (limit))
#define ln_opck_param_double_le(entry, limit) ln_opck_satisfy((entry)->value_double <= (limit))

#ifdef __cplusplus
}
#endif

#endif
