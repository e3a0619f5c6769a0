//! Graphs that can be computed row by row.

/// Convolutions with borders that differ above and below, with strides and dilations, depthwise ones and pools.
pub const CHAIN: &str = r#"mlc 1
graph @chain(%x: f32[1, 49, 10, 1]) -> ("y": f32[1, 6, 3, 8]) {
  %w0 = constant f32[10, 4, 1, 8] random(seed = 1)
  %b0 = constant f32[8] random(seed = 2)
  %c0 = kernel %x, %w0, %b0 {anchor = convolution {strides = [2, 2], dilations = [1, 1], pads = [[4, 5], [1, 2]], groups = 1}, anchor_operands = 2, expression = relu(add(x0, x1))}
  %w1 = constant f32[3, 3, 1, 8] random(seed = 3)
  %c1 = kernel %c0, %w1, %b0 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 8}, anchor_operands = 2, expression = relu(add(x0, x1))}
  %w2 = constant f32[1, 1, 8, 8] random(seed = 4)
  %c2 = kernel %c1, %w2, %b0 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}, anchor_operands = 2, expression = relu(add(x0, x1))}
  %w3 = constant f32[3, 3, 8, 8] random(seed = 5)
  %c3 = convolution %c2, %w3 {strides = [2, 1], dilations = [2, 1], pads = [[2, 2], [0, 0]], groups = 1}
  %p = max_pool %c3 {window = [2, 1], strides = [2, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]]}
  %y = map %p {expression = relu(x0)}
  return %y
}
"#;

/// Residual additions, and a shortcut with the stride of what it goes around.
pub const RESIDUAL: &str = r#"mlc 1
graph @residual(%x: f32[1, 32, 12, 3]) -> ("y": f32[1, 16, 6, 8]) {
  %w0 = constant f32[3, 3, 3, 8] random(seed = 1)
  %c0 = convolution %x, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %w1 = constant f32[3, 3, 8, 8] random(seed = 2)
  %c1 = convolution %c0, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %w2 = constant f32[3, 3, 8, 8] random(seed = 3)
  %c2 = kernel %c1, %w2, %c0 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}, anchor_operands = 2, expression = relu(add(x0, x1))}
  %c3 = convolution %c2, %w1 {strides = [2, 2], dilations = [1, 1], pads = [[0, 1], [0, 1]], groups = 1}
  %w4 = constant f32[1, 1, 8, 8] random(seed = 4)
  %c4 = kernel %c2, %w4, %c3 {anchor = convolution {strides = [2, 2], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}, anchor_operands = 2, expression = relu(add(x0, x1))}
  %c5 = convolution %c4, %w2 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %y = binary %c4, %c5 {function = add}
  return %y
}
"#;

/// Bytes with borders that aren't zero.
pub const BYTES: &str = r#"mlc 1
graph @bytes(%x: i8[1, 24, 10, 4]) -> ("y": i8[1, 12, 5, 6]) {
  %w0 = constant i8[3, 3, 4, 8] random(seed = 1)
  %c0 = kernel %x, %w0 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1, border = -7, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(shift_right(x0, 4_i32), -128_i32), 127_i32))}
  %w1 = constant i8[3, 3, 1, 8] random(seed = 2)
  %c1 = kernel %c0, %w1 {anchor = convolution {strides = [2, 2], dilations = [1, 1], pads = [[0, 1], [0, 1]], groups = 8, border = 3, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(shift_right(x0, 2_i32), -128_i32), 127_i32))}
  %w2 = constant i8[1, 1, 8, 6] random(seed = 3)
  %y = kernel %c1, %w2 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(shift_right(x0, 2_i32), -128_i32), 127_i32))}
  return %y
}
"#;

/// An operand that two nodes compute of constants, which are folded before anything is computed by rows.
pub const MASKED: &str = r#"mlc 1
graph @masked(%x: f32[1, 6, 7, 3]) -> ("y": f32[1, 6, 7, 3]) {
  %m0 = constant bool[1, 6, 1, 1] [true, false, false, true, true, true]
  %m1 = constant bool[1, 6, 7, 3] random(seed = 1)
  %both = binary %m0, %m1 {function = xor} : bool[1, 6, 7, 3]
  %mask = cast %both {dtype = f32} : f32[1, 6, 7, 3]
  %y = binary %x, %mask {function = multiply} : f32[1, 6, 7, 3]
  return %y
}
"#;
