/* What the functions on whole tensors give, against numbers by hand. Returns the line of the first that is wrong. */
#include "mlc_tensors.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))
#define TENSOR(name, type, list, ...)                   \
  int name##_dims[] = {__VA_ARGS__};                    \
  tl_tensor name = {.dtype = (type), .len = COUNT(list), .ndim = COUNT(name##_dims), .dims = name##_dims, .data = (list)}
#define EXPECT(condition)  \
  do {                     \
    if (!(condition)) {    \
      return __LINE__;     \
    }                      \
  } while (0)
#define EXPECT_ALL(found, ...)                                                                      \
  do {                                                                                              \
    const double expected[] = {__VA_ARGS__};                                                        \
    int i_;                                                                                         \
    for (i_ = 0; i_ < COUNT(expected); ++i_) {                                                      \
      EXPECT((double)(found)[i_] == expected[i_]);                                                  \
    }                                                                                               \
  } while (0)

int main(void) {
  float x[6] = {0.1f, 0.9f, 0.5f, -3.0f, -2.0f, -2.0f};
  TENSOR(src, TL_FLOAT, x, 2, 3);
  {
    float y[4];
    TENSOR(dst, TL_FLOAT, y, 2, 2);
    EXPECT(tl_tensor_slice(&src, &dst, 1, 1, 2) == &dst);
    EXPECT(y[0] == x[1] && y[1] == x[2] && y[2] == x[4] && y[3] == x[5]);
  }
  {
    float y[6];
    const int axes[2] = {1, 0};
    TENSOR(dst, TL_FLOAT, y, 3, 2);
    EXPECT(tl_tensor_transpose(&src, &dst, axes) == &dst);
    EXPECT(y[0] == x[0] && y[1] == x[3] && y[2] == x[1] && y[3] == x[4] && y[5] == x[5]);
  }
  {
    float y[2];
    int32_t places[2];
    TENSOR(dst, TL_FLOAT, y, 2, 1);
    TENSOR(arg, TL_INT32, places, 2, 1);
    EXPECT(tl_tensor_maxreduce(&src, &dst, &arg, 1) == &dst);
    EXPECT(y[0] == x[1] && y[1] == -2.0f);
    EXPECT_ALL(places, 1, 1);
    EXPECT(tl_tensor_maxreduce(&src, &dst, NULL, 1) == &dst);
  }
  {
    float y[6];
    TENSOR(dst, TL_FLOAT, y, 2, 3);
    EXPECT(tl_tensor_lrelu(&src, &dst, 0.5f) == &dst);
    EXPECT(y[0] == x[0] && y[3] == -1.5f && y[5] == -1.0f);
    EXPECT(tl_tensor_elew(&src, &src, &dst, TL_SUM) == &dst);
    EXPECT(y[1] == x[1] + x[1] && y[3] == -6.0f);
  }
  {
    int16_t a[3] = {1000, -7, 5};
    int16_t b[3] = {3, 2, -1};
    int16_t y[1];
    TENSOR(left, TL_INT16, a, 3);
    TENSOR(right, TL_INT16, b, 3);
    TENSOR(dst, TL_INT16, y, 1);
    EXPECT(tl_tensor_dot_product(&left, &right, &dst) == &dst);
    EXPECT_ALL(y, 2981);
  }
  {
    int64_t a[3] = {INT64_MAX, INT64_MAX - 1, -1};
    int64_t y[3];
    TENSOR(wide, TL_INT64, a, 3);
    TENSOR(dst, TL_INT64, y, 3);
    EXPECT(tl_tensor_lrelu(&wide, &dst, 2.0f) == &dst);
    EXPECT(y[0] == INT64_MAX && y[1] == INT64_MAX - 1 && y[2] == -2);
  }
  {
    uint8_t a[4] = {1, 2, 3, 4};
    uint8_t y[10];
    const int wider[2] = {2, 5};
    TENSOR(small, TL_UINT8, a, 2, 2);
    TENSOR(dst, TL_UINT8, y, 2, 5);
    EXPECT(tl_tensor_resize(&small, &dst, wider, TL_NEAREST) == &dst);
    EXPECT_ALL(y, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4);
    EXPECT(tl_tensor_resize(&small, &dst, wider, TL_LINEAR) == NULL);
  }
  {
    double y[4];
    TENSOR(range, TL_DOUBLE, y, 4);
    tl_tensor_rearange(&range, 1.0, 3.0, 0.5);
    EXPECT_ALL(y, 1.0, 1.5, 2.0, 2.5);
  }
  return 0;
}
