//! [`Machine`]: what instructions and memory of a machine cost, as data. Prices of loop programs are made of it
//! (`codegen/src/price`), and `docs/prices.md` holds them against what was measured.

use super::tuning::Tuning;
use serde::Serialize;

/// Bytes of a line of cache.
pub const LINE_BYTES: usize = 64;

/// A level of cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cache {
    /// What it holds, in bytes.
    pub bytes: usize,
    /// Bytes a cycle that come from the level behind it.
    pub fill: f64,
}

/// How often a machine can start an instruction of each kind, in cycles per instruction; on a machine that runs one after the
/// other each counts, so there they are executed instructions. A vector instruction is one instruction; a value of more bytes
/// than a vector register takes several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Instructions {
    /// `x * y + z` of floats.
    pub multiply_add: f64,
    /// Sums, products, comparisons and selections of floats.
    pub float: f64,
    /// Maxima and minima of floats, which look at NaN.
    pub maximum: f64,
    /// Divisions and square roots of floats, per vector or scalar.
    pub divide: f64,
    /// A function such as `exp`, relative to one polynomial of about 25 steps: per vector where there are vectors of it.
    pub function: f64,
    /// The same by the C library, of one number.
    pub library: Library,
    /// A byte that is copied by a loop of which C compilers make a call of `memcpy`.
    pub copied_byte: f64,
    /// A byte that is filled by a loop of which they make a call of `memset`.
    pub filled_byte: f64,
    /// A byte that [`Routine::CopyBytes`](crate::loops::Routine::CopyBytes) moves.
    pub moved_byte: f64,
    /// Four bytes times those of four outputs in [`Routine::Dots`](crate::loops::Routine::Dots).
    pub quad_dots: f64,
    /// A sum that [`Routine::Rescale`](crate::loops::Routine::Rescale) rescales.
    pub rescaled: f64,
    /// Conversions between types.
    pub convert: f64,
    /// Integer arithmetic on data.
    pub integer: f64,
    /// Loads.
    pub load: f64,
    /// Stores.
    pub store: f64,
    /// Moving one lane in or out of a vector.
    pub lane: f64,
    /// A turn of a loop: counter, comparison, branch.
    pub turn: f64,
    /// A condition that is looked at.
    pub branch: f64,
    /// Address arithmetic that isn't part of a load: a pointer, or a term of an index that changes from turn to turn.
    pub address: f64,
    /// Moving a pointer on that a block of statements reads and writes through.
    pub pointer: f64,
    /// What is read and written too far from a pointer for one instruction ([`Machine::reach`]), once for all that is near to each other.
    pub far: f64,
    /// Entering and leaving a kernel.
    pub call: f64,
}

/// Functions of the C library in single precision, each of one number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Library {
    /// `expf`.
    pub exp: f64,
    /// `logf`, `sinf`, `cosf`.
    pub log: f64,
    /// `tanhf`, `log1pf`.
    pub tanh: f64,
    /// `erff`, `expm1f`.
    pub erf: f64,
    /// Others, and functions of two numbers.
    pub other: f64,
}

/// How instructions overlap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// One after the other: prices are executed instructions.
    None,
    /// Several kinds at once, so many instructions a cycle at most; prices are cycles.
    Ports {
        /// Instructions that can start in a cycle.
        width: f64,
        /// Cycles until a sum can be added to.
        latency: f64,
        /// Instructions among which it looks for some that can start, in order of the program.
        window: f64,
    },
}

/// What threads of a machine cost, in the unit of its prices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ThreadCost {
    /// Giving work to threads that wait for it, and waiting for them.
    pub launch: f64,
    /// Waking threads that sleep, which is done once a run.
    pub wake: f64,
}

/// A machine as prices see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// What instructions cost.
    pub instructions: Instructions,
    /// Bytes behind a pointer that one instruction reaches, of vectors where there are any; `None` where all that there is.
    pub reach: Option<i64>,
    /// Instructions up to which C compilers write the turns of a loop one after the other; 0 where prices don't know.
    pub written_out: f64,
    /// How they overlap.
    pub overlap: Overlap,
    /// Bytes of a vector that a unit takes at once, where registers have more; `None` where it takes a register.
    pub unit_bytes: Option<usize>,
    /// Levels of cache, the nearest first; none where memory answers as fast as the core asks.
    pub caches: Vec<Cache>,
    /// Bytes of code for an instruction of the loop program, on average, with what C compilers add.
    pub code_bytes: f64,
    /// By how much, as a share, the price of a schedule must be lower than that of the one which is listed first for it to be taken;
    /// `None` where prices err by more than schedules differ.
    pub trust: Option<f64>,
    /// The same for the first schedule that does without some of the products (such as Winograd's), where others differ by less than prices err;
    /// `None` where none is looked at.
    pub trust_of_saving: Option<f64>,
    /// The same where the products are of bytes.
    pub trust_of_saved_bytes: Option<f64>,
    /// What lists of schedules go by.
    pub tuning: Tuning,
    /// What threads cost; `None` where code is for one core.
    pub threads: Option<ThreadCost>,
}

/// A core with several units and caches, with half of a vector instruction's time where two can start in a cycle.
const WIDE: Instructions = Instructions {
    multiply_add: 0.5,
    float: 0.5,
    maximum: 1.7,
    divide: 3.5,
    function: 13.0,
    library: Library { exp: 10.0, log: 11.0, tanh: 45.0, erf: 36.0, other: 27.0 },
    copied_byte: 0.04,
    filled_byte: 0.05,
    moved_byte: 0.04,
    quad_dots: 18.75,
    rescaled: 10.0,
    convert: 0.5,
    integer: 0.4,
    load: 0.5,
    store: 1.0,
    lane: 1.4,
    turn: 1.2,
    branch: 1.0,
    address: 0.25,
    pointer: 0.0,
    far: 0.0,
    call: 60.0,
};

/// Threads of an operating system. Measured on two cores of a server: where threads look for work, a launch takes a third of a microsecond
/// more than its longest share; where they sleep, waking them takes the one that calls six to twenty.
const THREADS: ThreadCost = ThreadCost { launch: 1500.0, wake: 60000.0 };

/// How much less must be executed for bytes to be multiplied fewer times by NEON: what is executed was found to be less by as much as prices say.
const ARM_SAVES: f64 = 0.2;

impl Machine {
    /// What times of its prices are counted in: `cycles`, or executed `instructions`.
    pub fn unit(&self) -> &'static str {
        match self.overlap {
            Overlap::None => "instructions",
            Overlap::Ports { .. } => "cycles",
        }
    }

    /// Whether instructions start before those that stand ahead of them, so that blocks of statements are done beside each other.
    pub fn looks_ahead(&self) -> bool {
        matches!(self.overlap, Overlap::Ports { window, .. } if window > 1.0)
    }

    /// A desktop or server processor of these days.
    pub fn host() -> Machine {
        Machine {
            instructions: WIDE,
            reach: None,
            written_out: 100.0,
            overlap: Overlap::Ports { width: 5.0, latency: 4.0, window: 300.0 },
            // Most processors with registers of 64 bytes have units of 32, or half as many of 64.
            unit_bytes: Some(32),
            caches: vec![
                Cache { bytes: 32 << 10, fill: 28.0 },
                Cache { bytes: 1 << 20, fill: 20.0 },
                Cache { bytes: 16 << 20, fill: 6.0 },
            ],
            code_bytes: 6.0,
            trust: None,
            trust_of_saving: Some(0.3),
            trust_of_saved_bytes: Some(0.3),
            tuning: Tuning::host(),
            threads: Some(THREADS),
        }
    }

    /// The same with Arm's instructions.
    pub fn arm_host() -> Machine {
        Machine { trust_of_saved_bytes: Some(ARM_SAVES), ..Machine::host() }
    }

    /// A small processor that starts two instructions at once, in their order.
    pub fn little() -> Machine {
        let instructions = Instructions {
            multiply_add: 1.0,
            float: 1.0,
            maximum: 3.0,
            divide: 14.0,
            function: 40.0,
            library: Library { exp: 9.0, ..WIDE.library },
            filled_byte: 0.04,
            load: 1.0,
            convert: 1.0,
            integer: 0.5,
            lane: 1.0,
            turn: 1.0,
            address: 0.5,
            call: 12.0,
            ..WIDE
        };
        Machine {
            instructions,
            reach: None,
            written_out: 0.0,
            overlap: Overlap::Ports { width: 2.0, latency: 4.0, window: 1.0 },
            unit_bytes: None,
            caches: vec![Cache { bytes: 32 << 10, fill: 8.0 }, Cache { bytes: 512 << 10, fill: 3.0 }],
            code_bytes: 4.0,
            trust: None,
            trust_of_saving: None,
            trust_of_saved_bytes: Some(ARM_SAVES),
            tuning: Tuning::little(),
            threads: Some(THREADS),
        }
    }

    /// A core that runs one instruction after the other, with single precision in hardware.
    pub fn in_order() -> Machine {
        let instructions = Instructions {
            multiply_add: 1.0,
            float: 1.0,
            maximum: 3.0,
            divide: 1.0,
            function: 50.0,
            library: Library { exp: 60.0, log: 70.0, tanh: 110.0, erf: 90.0, other: 200.0 },
            copied_byte: 5.0,
            filled_byte: 4.0,
            moved_byte: 0.62,
            quad_dots: 18.75,
            rescaled: 10.0,
            convert: 2.0,
            integer: 1.0,
            load: 1.0,
            store: 1.0,
            lane: 1.0,
            turn: 3.0,
            branch: 2.0,
            address: 1.0,
            pointer: 0.0,
            far: 0.0,
            call: 30.0,
        };
        Machine {
            instructions,
            reach: None,
            written_out: 0.0,
            overlap: Overlap::None,
            unit_bytes: None,
            caches: Vec::new(),
            code_bytes: 4.5,
            trust: None,
            trust_of_saving: None,
            trust_of_saved_bytes: None,
            tuning: Tuning::in_order(),
            threads: None,
        }
    }

    /// An Arm core of that kind. What instructions cost is fitted to what the kernels of the collection execute: with the sums of a tile in
    /// registers, some of what else it needs goes through memory.
    pub fn cortex_m() -> Machine {
        let mut machine = Machine::in_order();
        machine.instructions = Instructions {
            multiply_add: 1.21,
            float: 1.08,
            maximum: 5.6,
            library: Library { exp: 62.0, log: 68.0, tanh: 95.5, erf: 54.0, other: 200.0 },
            copied_byte: 4.55,
            moved_byte: 0.11,
            load: 0.9,
            store: 1.2,
            turn: 2.5,
            call: 25.0,
            ..machine.instructions
        };
        machine.written_out = 200.0;
        machine
    }

    /// One with vectors. A loop counts its turns with the branch, and a maximum looks at NaN in both operands.
    pub fn helium() -> Machine {
        let mut machine = Machine::cortex_m();
        machine.instructions = Instructions {
            float: 1.5,
            maximum: 8.5,
            function: 44.0,
            load: 1.0,
            store: 1.85,
            turn: 0.4,
            branch: 6.2,
            far: 0.5,
            call: 100.0,
            ..machine.instructions
        };
        machine.reach = Some(512);
        machine
    }

    /// A RISC-V core of that kind. What instructions cost is fitted to what the kernels of the collection execute.
    pub fn riscv() -> Machine {
        let mut machine = Machine::in_order();
        machine.instructions = Instructions {
            multiply_add: 1.12,
            divide: 1.2,
            library: Library { exp: 85.0, log: 70.0, tanh: 128.0, erf: 112.0, other: 200.0 },
            copied_byte: 6.0,
            load: 0.96,
            turn: 1.55,
            branch: 1.0,
            address: 0.5,
            pointer: 1.0,
            far: 4.0,
            ..machine.instructions
        };
        machine.reach = Some(4096);
        machine.written_out = 200.0;
        machine
    }

    /// The same without single precision in hardware: each operation is a call.
    pub fn soft_float() -> Machine {
        let mut machine = Machine::in_order();
        machine.instructions = Instructions {
            multiply_add: 130.0,
            float: 65.0,
            maximum: 195.0,
            divide: 350.0,
            function: 2500.0,
            library: Library { exp: 2500.0, log: 3000.0, tanh: 4000.0, erf: 4000.0, other: 6000.0 },
            convert: 40.0,
            ..machine.instructions
        };
        machine.tuning = Tuning::soft_float();
        machine
    }

    /// An Arm core of that kind. It multiplies byte by byte, and a product of 64 bits is four of 32.
    pub fn cortex_m0() -> Machine {
        let mut machine = Machine::soft_float();
        machine.instructions =
            Instructions { moved_byte: 0.19, quad_dots: 71.0, rescaled: 48.0, load: 2.0, ..machine.instructions };
        machine
    }
}
