//! The parts of templates that depend on the microcontroller: its memories, its start-up code, and the emulator that stands for it.

use crate::toolchain::{Board, MEMORY_SCRIPT, START_UP, VECTORS_ONLY};
use std::path::Path;

/// A board that PlatformIO knows, with the processor of a target.
struct PlatformioBoard {
    target: &'static str,
    platform: &'static str,
    board: &'static str,
    framework: &'static str,
}

const fn nucleo(target: &'static str, board: &'static str) -> PlatformioBoard {
    PlatformioBoard { target, platform: "ststm32", board, framework: "stm32cube" }
}

/// Names as PlatformIO's page on each board has them.
static PLATFORMIO_BOARDS: [PlatformioBoard; 4] = [
    nucleo("cortex-m0plus", "nucleo_l073rz"),
    nucleo("cortex-m4", "nucleo_f446re"),
    nucleo("cortex-m7", "nucleo_f767zi"),
    PlatformioBoard { target: "riscv32-soft", platform: "sifive", board: "hifive1-revb", framework: "freedom-e-sdk" },
];

/// Whether PlatformIO has a board for a target that we know.
pub(super) fn has_platformio_board(target: &str) -> bool {
    platformio_board(target).is_some()
}

fn platformio_board(target: &str) -> Option<&'static PlatformioBoard> {
    PLATFORMIO_BOARDS.iter().find(|known| known.target == target)
}

/// The words and their texts.
pub(super) fn texts(model: &str, board: Option<&Board>) -> Vec<(&'static str, String)> {
    let start_up = START_UP.join(" ");
    let Some(board) = board else { return vec![("CMAKE_FIRMWARE", String::new())] };
    let light = board.light().map(|register| format!("{register:#010x}"));
    let mut texts = vec![
        ("BOARD", board.machine.to_owned()),
        ("MEMORY_SCRIPT", board.memory_script()),
        ("START_UP", start_up.clone()),
        ("LIGHT", light.as_ref().map_or(String::new(), |register| format!("-DLIGHT={register} "))),
        ("MAKE_EMULATE", make_emulate(board)),
        ("CMAKE_FIRMWARE", cmake_firmware(model, board, &start_up, light.as_deref())),
    ];
    if let Some(known) = platformio_board(board.target) {
        texts.push(("PLATFORMIO_PLATFORM", known.platform.to_owned()));
        texts.push(("PLATFORMIO_BOARD", known.board.to_owned()));
        texts.push(("PLATFORMIO_FRAMEWORK", known.framework.to_owned()));
    }
    texts
}

/// The emulator's command, as a shell has it.
fn emulator(board: &Board, image: &str, vectors: &str) -> String {
    let command = board.command(Path::new(image), Path::new(vectors), &[]);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(std::ffi::OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

fn make_emulate(board: &Board) -> String {
    let vectors = match board.moves_vectors() {
        true => format!("\t$(CC:gcc=objcopy) {} $(IMAGE) $(BUILD)/vectors\n", VECTORS_ONLY.join(" ")),
        false => String::new(),
    };
    format!("{vectors}\t{}\n", emulator(board, "$(IMAGE)", "$(BUILD)/vectors"))
}

fn cmake_firmware(model: &str, board: &Board, start_up: &str, light: Option<&str>) -> String {
    let image = format!("$<TARGET_FILE:run_{model}>");
    let vectors = match board.moves_vectors() {
        true => format!("  COMMAND ${{CMAKE_OBJCOPY}} {} {image} vectors\n", VECTORS_ONLY.join(" ")),
        false => String::new(),
    };
    let light = light.map_or(String::new(), |register| {
        format!("target_compile_definitions(run_{model} PRIVATE LIGHT={register})\n")
    });
    format!(
        "# Start-up code and output of the C library picolibc; output goes through a debugger or an emulator. For another board than\n\
         # {machine}, write its memories into {MEMORY_SCRIPT}.\n\
         set_target_properties(run_{model} PROPERTIES LINK_DEPENDS ${{CMAKE_CURRENT_SOURCE_DIR}}/{MEMORY_SCRIPT}\n  \
         LINK_FLAGS \"{start_up} -T '${{CMAKE_CURRENT_SOURCE_DIR}}/{MEMORY_SCRIPT}'\")\n{light}\
         add_custom_target(emulate\n{vectors}  COMMAND {}\n  DEPENDS run_{model} VERBATIM USES_TERMINAL)\n",
        emulator(board, &image, "vectors"),
        machine = board.machine,
    )
}
