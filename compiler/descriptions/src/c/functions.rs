//! The functions, macros and constants that the text of a description can use while shapes are inferred.

use super::operators::Binary;

macro_rules! functions {
    ($($variant:ident $name:literal $least:literal..=$most:literal,)+) => {
        /// Functions and macros that are looked up by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the table says which is which")]
        pub enum Function {
            $($variant,)+
            /// `ln_opck_param_TYPE_RELATION(entry, limit)`
            CheckBound(Binary),
            /// The check of a bound of all elements of an array.
            CheckBounds(Binary),
        }

        impl Function {
            /// The function of a name, with the least and the greatest number of its arguments.
            pub fn named(name: &str) -> Option<(Function, usize, usize)> {
                match name {
                    $($name => Some((Function::$variant, $least, $most)),)+
                    _ => bound(name),
                }
            }
        }
    };
}

functions! {
    SprintShape "ln_sprint_shape" 3..=3,
    Free "ln_free" 1..=1,
    Equal "ln_streq" 2..=2,
    EqualN "ln_streqn" 3..=3,
    Duplicate "ln_strdup" 1..=1,
    Length "strlen" 1..=1,
    Compare "strcmp" 2..=2,
    Satisfy "ln_opck_satisfy" 1..=1,
    SatisfyMessage "ln_opck_satisfy_msg" 2..=64,
    Warn "ln_msg_warn" 1..=64,
    Error "ln_msg_error" 1..=64,
    InternalError "ln_msg_inter_error" 1..=64,
    Allocate "ln_alloc" 1..=1,
    Clone "ln_clone" 2..=2,
    Set "memset" 3..=3,
    Copy "memcpy" 3..=3,
    Move "memmove" 3..=3,
    OutputConv "ln_output_dim_conv" 5..=5,
    OutputDeconv "ln_output_dim_deconv" 6..=6,
    PaddingConv "ln_autopadding_conv" 7..=7,
    PaddingDeconv "ln_autopadding_deconv" 9..=9,
    Product "ln_compute_length" 2..=2,
    NextMultiple "ln_next_multiple_power2" 2..=2,
    SizeOfElement "tl_size_of" 1..=1,
    TensorBytes "tl_tensor_size" 1..=1,
    ElementMax "tl_dtype_max_double" 1..=1,
    ElementMin "tl_dtype_min_double" 1..=1,
    ElementFromText "tl_dtype_from_str" 1..=1,
    ElementwiseFromText "tl_elew_op_from_str" 1..=1,
    ResizeFromText "tl_resize_type_from_str" 1..=1,
    DirectionFromText "tl_sort_dir_from_str" 1..=1,
    FindTensor "ln_tensor_table_find" 2..=2,
    Ceil "ceil" 1..=1,
    CeilF "ceilf" 1..=1,
    Floor "floor" 1..=1,
    FloorF "floorf" 1..=1,
    Round "round" 1..=1,
    RoundF "roundf" 1..=1,
    Truncate "trunc" 1..=1,
    SquareRoot "sqrt" 1..=1,
    Power "pow" 2..=2,
    Exp "exp" 1..=1,
    Log "log" 1..=1,
    AbsoluteF "fabs" 1..=1,
    Absolute "abs" 1..=1,
    CheckMtype "ln_opck_tensor_mtype_eq" 2..=2,
    CheckDtype "ln_opck_tensor_dtype_eq" 2..=2,
    CheckNdim "ln_opck_tensor_ndim" 2..=2,
    CheckLen "ln_opck_tensor_len" 2..=2,
    CheckSameType "ln_opck_tensor_issametype" 2..=2,
    CheckSameShape "ln_opck_tensor_issameshape" 2..=2,
    CheckStatic "ln_opck_tensor_isstatic" 1..=1,
    CheckNotStatic "ln_opck_tensor_isnotstatic" 1..=1,
    CheckArrayLen "ln_opck_param_array_len_eq" 2..=2,
}

/// The checks of bounds, which differ in the type they look at and in the relation.
fn bound(name: &str) -> Option<(Function, usize, usize)> {
    let rest = name.strip_prefix("ln_opck_param_")?;
    let (rest, array) = rest.strip_prefix("array_").map_or((rest, false), |rest| (rest, true));
    let relation = ["int_", "float_", "double_"].iter().find_map(|ty| rest.strip_prefix(ty))?;
    let relation = relation_named(relation)?;
    Some((if array { Function::CheckBounds(relation) } else { Function::CheckBound(relation) }, 2, 2))
}

/// The fields of bounds, in the order in which they are checked.
pub const RELATIONS: [(&str, Binary); 6] = [
    ("eq", Binary::Equal),
    ("gt", Binary::Greater),
    ("ge", Binary::GreaterEqual),
    ("lt", Binary::Less),
    ("le", Binary::LessEqual),
    ("ne", Binary::NotEqual),
];

fn relation_named(name: &str) -> Option<Binary> {
    RELATIONS.iter().find(|(relation, _)| *relation == name).map(|(_, relation)| *relation)
}

/// Names of element types by their numbers.
pub const ELEMENTS: [&str; 11] = [
    "TL_DOUBLE",
    "TL_FLOAT",
    "TL_INT64",
    "TL_INT32",
    "TL_INT16",
    "TL_INT8",
    "TL_UINT64",
    "TL_UINT32",
    "TL_UINT16",
    "TL_UINT8",
    "TL_BOOL",
];

/// Names of elementwise operators by their numbers.
pub const ELEMENTWISE: [&str; 7] = ["TL_MUL", "TL_DIV", "TL_SUM", "TL_SUB", "TL_MAX", "TL_MIN", "TL_POW"];

/// Names of ways to resize by their numbers.
pub const RESIZES: [&str; 2] = ["TL_NEAREST", "TL_LINEAR"];

/// Names of directions to sort in by their numbers.
pub const DIRECTIONS: [&str; 2] = ["TL_SORT_DIR_ASCENDING", "TL_SORT_DIR_DESCENDING"];

/// Names of memory types by their numbers.
pub const MEMORIES: [&str; 4] = ["LN_MEM_NONE", "LN_MEM_CPU", "LN_MEM_CUDA", "LN_MEM_DPU"];

/// Names of parameter types by their numbers.
pub const PARAMETERS: [&str; 7] = [
    "LN_PARAM_NULL",
    "LN_PARAM_STRING",
    "LN_PARAM_NUMBER",
    "LN_PARAM_BOOL",
    "LN_PARAM_ARRAY_STRING",
    "LN_PARAM_ARRAY_NUMBER",
    "LN_PARAM_ARRAY_BOOL",
];

/// The value of a named integer constant.
pub fn constant(name: &str) -> Option<i64> {
    let lists: [&[&str]; 6] = [&ELEMENTS, &ELEMENTWISE, &RESIZES, &DIRECTIONS, &MEMORIES, &PARAMETERS];
    let listed = lists.iter().find_map(|list| list.iter().position(|known| *known == name));
    if let Some(number) = listed {
        return i64::try_from(number).ok();
    }
    match name {
        "TL_DTYPE_INVALID" => Some(-1),
        "TL_TRUE" | "LN_TRUE" | "true" => Some(1),
        "TL_FALSE" | "LN_FALSE" | "false" => Some(0),
        "LN_MAXDIM" | "TL_MAXDIM" => Some(8),
        "LN_MAXLINE" => Some(4096),
        "INT_MAX" | "INT32_MAX" => Some(i32::MAX.into()),
        "INT_MIN" | "INT32_MIN" => Some(i32::MIN.into()),
        _ => None,
    }
}
