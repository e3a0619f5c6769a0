//! What the schema says of operators: their names by number, and the options that a result depends on, in the order of their
//! fields.

use crate::model::Setting;
use std::borrow::Cow;

/// The number of operators that the format doesn't define.
pub(crate) const CUSTOM: i32 = 32;

/// The format of a level of a sparse constant that has all its places.
pub(crate) const DENSE: i8 = 0;

/// The types of lists of places: numbers of 32 bits, and of 16; others are bytes.
pub(crate) const INDEX_INT32: i8 = 1;
pub(crate) const INDEX_UINT16: i8 = 2;

/// The operators' names by number.
const OPERATORS: &str = "ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE \
    EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION \
    LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX \
    SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD \
    UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE \
    UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE \
    BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL \
    SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW \
    ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN \
    FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU \
    SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU \
    REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 \
    NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES \
    CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT \
    HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS \
    RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 \
    UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST \
    BITWISE_XOR RIGHT_SHIFT";

/// The names, to be looked up by number.
pub(crate) fn operator_names() -> Vec<&'static str> {
    OPERATORS.split(' ').collect()
}

/// The type of an operator of the format by its number.
pub(crate) fn operator_name(names: &[&'static str], number: i32) -> Cow<'static, str> {
    match usize::try_from(number).ok().and_then(|number| names.get(number)) {
        Some(&name) => name.into(),
        None => format!("builtin operator {number}").into(),
    }
}

/// A field of a table of options: its name, and its default, which says of what kind it is.
pub(crate) struct OptionField {
    pub name: &'static str,
    pub default: Preset,
}

/// The kind of an option, and its default.
#[derive(Clone, Copy)]
pub(crate) enum Preset {
    /// A choice: one byte.
    Choice,
    /// A whole number of 32 bits.
    Int(i32),
    Float,
    Flag,
    /// A truth value that holds where it is left out.
    Held,
    Ints,
    Text,
    /// The number of a subgraph, 32 bits.
    Subgraph,
}

impl Preset {
    pub fn setting(self) -> Option<Setting> {
        Some(match self {
            Preset::Choice => Setting::Int(0),
            Preset::Int(number) => Setting::Int(number.into()),
            Preset::Float => Setting::Float(0.0),
            Preset::Flag => Setting::Flag(false),
            Preset::Held => Setting::Flag(true),
            Preset::Subgraph => Setting::Subgraph(0),
            Preset::Ints | Preset::Text => return None,
        })
    }
}

const fn field(name: &'static str, default: Preset) -> OptionField {
    OptionField { name, default }
}

const PADDING: OptionField = field("padding", Preset::Choice);
const STRIDE_W: OptionField = field("stride_w", Preset::Int(0));
const STRIDE_H: OptionField = field("stride_h", Preset::Int(0));
const ACTIVATION: OptionField = field("fused_activation_function", Preset::Choice);
const DILATION_W: OptionField = field("dilation_w_factor", Preset::Int(1));
const DILATION_H: OptionField = field("dilation_h_factor", Preset::Int(1));

/// The options of an operator, in the order of their fields, as far as results depend on them.
pub(crate) fn options(kind: &str) -> &'static [OptionField] {
    use Preset::{Choice, Flag, Float, Held, Int, Ints, Subgraph, Text};
    match kind {
        "CONV_2D" => const { &[PADDING, STRIDE_W, STRIDE_H, ACTIVATION, DILATION_W, DILATION_H] },
        "DEPTHWISE_CONV_2D" => {
            const MULTIPLIER: OptionField = field("depth_multiplier", Int(0));
            const { &[PADDING, STRIDE_W, STRIDE_H, MULTIPLIER, ACTIVATION, DILATION_W, DILATION_H] }
        }
        "AVERAGE_POOL_2D" | "MAX_POOL_2D" | "L2_POOL_2D" => {
            const WIDTH: OptionField = field("filter_width", Int(0));
            const HEIGHT: OptionField = field("filter_height", Int(0));
            const { &[PADDING, STRIDE_W, STRIDE_H, WIDTH, HEIGHT, ACTIVATION] }
        }
        "CONV_3D" => {
            const STRIDE_D: OptionField = field("stride_d", Int(0));
            const DILATION_D: OptionField = field("dilation_d_factor", Int(1));
            const { &[PADDING, STRIDE_D, STRIDE_W, STRIDE_H, ACTIVATION, DILATION_D, DILATION_W, DILATION_H] }
        }
        "LOCAL_RESPONSE_NORMALIZATION" => {
            const { &[field("radius", Int(0)), field("bias", Float), field("alpha", Float), field("beta", Float)] }
        }
        "REVERSE_SEQUENCE" => const { &[field("seq_dim", Int(0)), field("batch_dim", Int(0))] },
        "RNN" => const { &[ACTIVATION] },
        "UNIDIRECTIONAL_SEQUENCE_RNN" => const { &[field("time_major", Flag), ACTIVATION] },
        "TRANSPOSE_CONV" => const { &[PADDING, STRIDE_W, STRIDE_H, ACTIVATION] },
        "FULLY_CONNECTED" => const { &[ACTIVATION, field("weights_format", Choice), field("keep_num_dims", Flag)] },
        "SVDF" => const { &[field("rank", Int(0)), ACTIVATION] },
        "SOFTMAX" => const { &[field("beta", Float)] },
        "CONCATENATION" => const { &[field("axis", Int(0)), ACTIVATION] },
        "ADD" | "SUB" | "MUL" | "DIV" | "L2_NORMALIZATION" => const { &[ACTIVATION] },
        "RESIZE_BILINEAR" => {
            const {
                &[
                    field("new_height", Int(0)),
                    field("new_width", Int(0)),
                    field("align_corners", Flag),
                    field("half_pixel_centers", Flag),
                ]
            }
        }
        "RESIZE_NEAREST_NEIGHBOR" => const { &[field("align_corners", Flag), field("half_pixel_centers", Flag)] },
        "RESHAPE" => const { &[field("new_shape", Ints)] },
        "SQUEEZE" => const { &[field("squeeze_dims", Ints)] },
        "MEAN" | "SUM" | "REDUCE_MAX" | "REDUCE_MIN" | "REDUCE_PROD" | "REDUCE_ANY" | "REDUCE_ALL" => {
            const { &[field("keep_dims", Flag)] }
        }
        "STRIDED_SLICE" => {
            const {
                &[
                    field("begin_mask", Int(0)),
                    field("end_mask", Int(0)),
                    field("ellipsis_mask", Int(0)),
                    field("new_axis_mask", Int(0)),
                    field("shrink_axis_mask", Int(0)),
                    field("offset", Flag),
                ]
            }
        }
        "SPLIT" | "SPLIT_V" => const { &[field("num_splits", Int(0))] },
        "PACK" => const { &[field("values_count", Int(0)), field("axis", Int(0))] },
        "UNPACK" => const { &[field("num", Int(0)), field("axis", Int(0))] },
        "LEAKY_RELU" => const { &[field("alpha", Float)] },
        "ARG_MAX" | "ARG_MIN" => const { &[field("output_type", Choice)] },
        "GATHER" => const { &[field("axis", Int(0)), field("batch_dims", Int(0))] },
        "SHAPE" => const { &[field("out_type", Choice)] },
        "CAST" => const { &[field("in_data_type", Choice), field("out_data_type", Choice)] },
        "UNIDIRECTIONAL_SEQUENCE_LSTM" => {
            const { &[ACTIVATION, field("cell_clip", Float), field("proj_clip", Float), field("time_major", Flag)] }
        }
        "BIDIRECTIONAL_SEQUENCE_LSTM" => {
            const MERGE: OptionField = field("merge_outputs", Flag);
            const { &[ACTIVATION, field("cell_clip", Float), field("proj_clip", Float), MERGE, field("time_major", Held)] }
        }
        "BIDIRECTIONAL_SEQUENCE_RNN" => {
            const { &[field("time_major", Flag), ACTIVATION, field("merge_outputs", Flag)] }
        }
        "BATCH_MATMUL" => const { &[field("adj_x", Flag), field("adj_y", Flag)] },
        "GELU" => const { &[field("approximate", Flag)] },
        "MIRROR_PAD" => const { &[field("mode", Choice)] },
        "SPACE_TO_DEPTH" | "DEPTH_TO_SPACE" => const { &[field("block_size", Int(0))] },
        "ONE_HOT" => const { &[field("axis", Int(0))] },
        "CUMSUM" => const { &[field("exclusive", Flag), field("reverse", Flag)] },
        "CALL_ONCE" => const { &[field("init_subgraph_index", Int(0))] },
        "IF" => const { &[field("then_subgraph_index", Subgraph), field("else_subgraph_index", Subgraph)] },
        "WHILE" => const { &[field("cond_subgraph_index", Subgraph), field("body_subgraph_index", Subgraph)] },
        "VAR_HANDLE" => const { &[field("container", Text), field("shared_name", Text)] },
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_at_the_numbers_of_the_schema() {
        let names = operator_names();
        let at = |number| operator_name(&names, number).into_owned();
        let expected = [(0, "ADD"), (32, "CUSTOM"), (67, "TRANSPOSE_CONV"), (114, "QUANTIZE"), (126, "BATCH_MATMUL")];
        assert!(expected.iter().all(|&(number, name)| at(number) == name));
        assert_eq!((at(129), at(144), at(150)), ("CALL_ONCE".into(), "ASSIGN_VARIABLE".into(), "GELU".into()));
        assert_eq!(at(900), "builtin operator 900");
        assert_eq!(at(-1), "builtin operator -1");
    }
}
