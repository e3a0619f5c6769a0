/* Functions on whole tensors, for operators that call them. */
#include "mlc_tensors.h"

/* Copies the element of a source at coordinates to a place of a result of the same type. */
static void take(const tl_tensor *src, const int *coords, tl_tensor *dst, int place) {
  tl_passign(dst->data, place, src->data, tl_tensor_index(src, coords), tl_size_of(dst->dtype));
}

tl_tensor *tl_tensor_slice(const tl_tensor *src, tl_tensor *dst, int axis, int start, int len) {
  int coords[TL_MAXDIM];
  int i;
  (void)len;
  for (i = 0; i < dst->len; ++i) {
    tl_tensor_coords(dst, i, coords);
    coords[axis] += start;
    take(src, coords, dst, i);
  }
  return dst;
}

tl_tensor *tl_tensor_transpose(const tl_tensor *src, tl_tensor *dst, const int *axes) {
  int to[TL_MAXDIM];
  int from[TL_MAXDIM];
  int i;
  int axis;
  for (i = 0; i < dst->len; ++i) {
    tl_tensor_coords(dst, i, to);
    for (axis = 0; axis < dst->ndim; ++axis) {
      from[axes[axis]] = to[axis];
    }
    take(src, from, dst, i);
  }
  return dst;
}

tl_tensor *tl_tensor_elew(const tl_tensor *left, const tl_tensor *right, tl_tensor *dst, tl_elew_op op) {
  int i;
  for (i = 0; i < dst->len; ++i) {
    tl_elew(TL_TENSOR_DATA(left, i), TL_TENSOR_DATA(right, i), TL_TENSOR_DATA(dst, i), op, dst->dtype);
  }
  return dst;
}

tl_tensor *tl_tensor_lrelu(const tl_tensor *src, tl_tensor *dst, float negslope) {
  int i;
  for (i = 0; i < dst->len; ++i) {
    double number;
    TL_TENSOR_DATA_TO(src, i, number, TL_DOUBLE);
    if (number < 0) {
      number *= (double)negslope;
      TL_TENSOR_DATA_FROM(dst, i, number, TL_DOUBLE);
    } else {
      /* As it is: a double doesn't hold all integers. */
      tl_passign(dst->data, i, src->data, i, tl_size_of(dst->dtype));
    }
  }
  return dst;
}

tl_tensor *tl_tensor_dot_product(const tl_tensor *left, const tl_tensor *right, tl_tensor *dst) {
  uint64_t product;
  uint64_t sum = 0; /* as long as the longest element, all zeros */
  int i;
  for (i = 0; i < left->len; ++i) {
    tl_elew(TL_TENSOR_DATA(left, i), TL_TENSOR_DATA(right, i), &product, TL_MUL, dst->dtype);
    tl_elew(&sum, &product, &sum, TL_SUM, dst->dtype);
  }
  memcpy(dst->data, &sum, tl_size_of(dst->dtype));
  return dst;
}

/* Whether the element of a tensor is greater than another one of it: the greater of both isn't the other one. */
static int is_greater(const tl_tensor *src, int place, int other) {
  const size_t bytes = tl_size_of(src->dtype);
  uint64_t greatest = 0;
  tl_elew(TL_TENSOR_DATA(src, other), TL_TENSOR_DATA(src, place), &greatest, TL_MAX, src->dtype);
  return memcmp(&greatest, TL_TENSOR_DATA(src, other), bytes) != 0;
}

tl_tensor *tl_tensor_maxreduce(const tl_tensor *src, tl_tensor *dst, tl_tensor *arg, int axis) {
  int coords[TL_MAXDIM];
  int i;
  for (i = 0; i < dst->len; ++i) {
    int32_t k;
    int32_t found = 0;
    int best;
    tl_tensor_coords(dst, i, coords);
    coords[axis] = 0;
    best = tl_tensor_index(src, coords);
    for (k = 1; k < src->dims[axis]; ++k) {
      int place;
      coords[axis] = (int)k;
      place = tl_tensor_index(src, coords);
      if (is_greater(src, place, best)) {
        best = place;
        found = k;
      }
    }
    tl_passign(dst->data, i, src->data, best, tl_size_of(dst->dtype));
    if (arg != NULL) {
      TL_TENSOR_DATA_FROM(arg, i, found, TL_INT32);
    }
  }
  return dst;
}

tl_tensor *tl_tensor_resize(const tl_tensor *src, tl_tensor *dst, const int *new_dims, tl_resize_type type) {
  int coords[TL_MAXDIM];
  int i;
  int axis;
  if (type != TL_NEAREST) {
    return NULL;
  }
  for (i = 0; i < dst->len; ++i) {
    tl_tensor_coords(dst, i, coords);
    for (axis = 0; axis < dst->ndim; ++axis) {
      const float scale = (float)src->dims[axis] / (float)new_dims[axis];
      const int nearest = (int)roundf((float)((coords[axis] + 0.5) * (double)scale - 0.5));
      const int last = src->dims[axis] - 1;
      coords[axis] = nearest < 0 ? 0 : nearest > last ? last : nearest;
    }
    take(src, coords, dst, i);
  }
  return dst;
}

void tl_tensor_rearange(tl_tensor *src, double start, double stop, double step) {
  int i;
  (void)stop; /* the tensor is as long as the range */
  for (i = 0; i < src->len; ++i) {
    const double number = start + step * i;
    TL_TENSOR_DATA_FROM(src, i, number, TL_DOUBLE);
  }
}
