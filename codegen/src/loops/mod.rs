//! The loop program: a small typed language between schedules and C text.
//!
//! A [`Function`] is a list of statements over variables: loops with affine bounds, scalar and vector values, loads and stores
//! through pointers. Schedules build it with a [`LoopBuilder`]; [`print`] writes it as C. It has no control flow but loops and
//! conditions on indices, so that it can't fail and always ends.

mod builder;
mod byte_dots;
mod circular;
mod depthwise_text;
mod direct_dots_text;
mod dots_text;
mod downwards;
mod dsp_text;
mod expression;
pub mod extremes;
mod half_number_text;
mod half_pairs;
mod half_text;
pub mod halves;
pub mod helium;
mod helium_text;
mod helper;
mod instruction_set;
mod intrinsics;
mod lane_types;
pub mod lanes;
mod lead;
pub mod level;
mod masks;
mod mathematics;
pub mod mve;
pub mod mve_mathematics;
mod neon;
pub mod parallel;
mod pixel_pairs_text;
pub mod print;
mod quads;
mod rescaling_text;
mod rounding;
mod routine;
mod routine_text;
mod row_windows_text;
mod scalar_helpers;
mod scalar_text;
mod selection;
pub mod spelling;
mod statement;
mod variable;
mod vector_rescaling;
mod wasm;

pub use builder::{LoopBuilder, Nest, remove_all_unused};
pub use downwards::downwards;
pub use expression::{Atom, Expr, Index, Integers, Known, Rescaling, value_type};
pub use helper::{Helpers, Intrinsic};
pub use intrinsics::Intrinsics;
pub use lane_types::mask_dtype;
pub use lead::{Direction, Lead, Leads, Question, lead};
pub use routine::{DirectTile, Routine, Tile};
pub use statement::{Function, Overlaps, Parameter, Relation, Stmt, mentioned};
pub use variable::{Holds, ValueType, Var, VarInfo, VarKind};
