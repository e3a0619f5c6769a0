/*
 * Functions on whole tensors, for operators that call them: each takes its sources, the result, which is there with its shape, and
 * what else it needs, and returns the result.
 */
#ifndef MLC_TENSORS_H_
#define MLC_TENSORS_H_

#include "mlc_operator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `len` elements of an axis, from `start` on. */
tl_tensor *tl_tensor_slice(const tl_tensor *src, tl_tensor *dst, int axis, int start, int len);

/* Axis i of the result is axis axes[i] of the source. */
tl_tensor *tl_tensor_transpose(const tl_tensor *src, tl_tensor *dst, const int *axes);

/* Element by element. */
tl_tensor *tl_tensor_elew(const tl_tensor *left, const tl_tensor *right, tl_tensor *dst, tl_elew_op op);

/* Numbers below zero are multiplied by the slope. */
tl_tensor *tl_tensor_lrelu(const tl_tensor *src, tl_tensor *dst, float negslope);

/* The sum of products of two lists. */
tl_tensor *tl_tensor_dot_product(const tl_tensor *left, const tl_tensor *right, tl_tensor *dst);

/* The greatest elements along an axis and, unless it is NULL, the places of the first of them as TL_INT32. */
tl_tensor *tl_tensor_maxreduce(const tl_tensor *src, tl_tensor *dst, tl_tensor *arg, int axis);

/* The nearest elements in another shape. Linear interpolation isn't there: the result is NULL, and nothing is written. */
tl_tensor *tl_tensor_resize(const tl_tensor *src, tl_tensor *dst, const int *new_dims, tl_resize_type type);

/* start, start + step, ... before stop. */
void tl_tensor_rearange(tl_tensor *src, double start, double stop, double step);

#ifdef __cplusplus
}
#endif

#endif
