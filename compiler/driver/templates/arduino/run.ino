/* Runs the model "@MODEL@" once on zeros: put your data into the inputs before infer(), use the outputs after it. */
#include <tvmgen_@MODEL@.h>

#define ALIGNED __attribute__((aligned(16)))

/* The caller owns this memory; the model keeps none of it between two runs. */
@BUFFERS@
@INFER@
void setup() {
  Serial.begin(115200);
}

void loop() {
  const unsigned long start = micros();
  const int32_t status = infer();
  const unsigned long end = micros();
  if (status != 0) {
    Serial.println("the model failed");
  }
@ARDUINO_PRINT@  Serial.print("microseconds: ");
  Serial.println(end - start);
  delay(1000);
}
