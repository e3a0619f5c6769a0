//! The part of a program's `main.c` that depends on what it runs on: the clock, and what an emulated board can count. It
//! defines `start_clock`, `now`, `WARM_UP` (in units of `now`), `before_run` and `after_run`.

use super::board::{Board, Counter, STACK_BYTES};

/// C text for a board, or for this machine.
pub(super) fn text(board: Option<&Board>) -> String {
    match board.map(|board| board.counter) {
        None => NATIVE.to_owned(),
        Some(counter) => {
            let clock = match counter {
                Counter::SysTick(hundredths) => SYSTICK.replace("@HUNDREDTHS@", &hundredths.to_string()),
                Counter::Retired => RETIRED.to_owned(),
            };
            clock + &EMULATED.replace("@STACK_BYTES@", &STACK_BYTES.to_string())
        }
    }
}

/// Nanoseconds; the tenth of a second that a program runs before it is timed lets the processor reach its frequency.
const NATIVE: &str = "
#define WARM_UP 100000000U
#define start_clock() ((void)0)
#define before_run() ((void)0)
#define after_run() ((void)0)

static uint64_t now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}
";

/// Executed instructions by the timer, which counts 24 bits down and interrupts when it starts anew.
const SYSTICK: &str = "
#define SYSTICK_CONTROL (*(volatile uint32_t*)0xE000E010)
#define SYSTICK_RELOAD (*(volatile uint32_t*)0xE000E014)
#define SYSTICK_VALUE (*(volatile uint32_t*)0xE000E018)
#define INTERRUPT_STATE (*(volatile uint32_t*)0xE000ED04)

static volatile uint32_t wraps;

void arm_systick_isr(void);
void arm_systick_isr(void) {
  ++wraps;
}

static void start_clock(void) {
  SYSTICK_RELOAD = 0xFFFFFF;
  SYSTICK_VALUE = 0;
  SYSTICK_CONTROL = 7;
  while (SYSTICK_VALUE == 0) {
  }
}

static uint64_t now(void) {
  uint32_t before;
  uint32_t value;
  do {
    before = wraps;
    value = SYSTICK_VALUE;
  } while (before != wraps || (INTERRUPT_STATE & 0x4000000U) != 0);
  return (((uint64_t)before << 24) + (0xFFFFFF - value)) * @HUNDREDTHS@ / 100;
}
";

/// Executed instructions by their own counter. The assembler is told of the register's extension here only, because the whole
/// program's architecture chooses the library.
const RETIRED: &str = "
#define start_clock() ((void)0)

static uint64_t now(void) {
  uint32_t high;
  uint32_t low;
  uint32_t again;
  do {
    __asm__ volatile(
        \".option push\\n.option arch, +zicsr\\ncsrr %0, minstreth\\ncsrr %1, minstret\\ncsrr %2, minstreth\\n.option pop\"
        : \"=r\"(high), \"=r\"(low), \"=r\"(again));
  } while (high != again);
  return ((uint64_t)high << 32) + low;
}
";

/// A run's instructions and stack. What is free of the stack is painted before, so that the deepest place that the run has
/// touched can be found.
const EMULATED: &str = "
#define WARM_UP 0U
#define PAINT 0xA5

extern unsigned char __stack[];
static unsigned char* const deepest = __stack - @STACK_BYTES@;
static uintptr_t caller;
static uint64_t run_began;

static void __attribute__((noinline)) before_run(void) {
  volatile unsigned char* byte = deepest;
  volatile unsigned char here;
  caller = (uintptr_t)&here;
  for (; (uintptr_t)byte < caller - 64; ++byte) {
    *byte = PAINT;
  }
  run_began = now();
}

static void __attribute__((noinline)) after_run(void) {
  const uint64_t instructions = now() - run_began;
  volatile unsigned char* byte = deepest;
  while ((uintptr_t)byte < caller && *byte == PAINT) {
    ++byte;
  }
  if (byte == deepest) {
    fprintf(stderr, \"the model's stack overflowed: it had @STACK_BYTES@ bytes\\n\");
    exit(2);
  }
  printf(\"%llu\\n%lu\\n\", (unsigned long long)instructions, (unsigned long)(caller - (uintptr_t)byte));
}
";
