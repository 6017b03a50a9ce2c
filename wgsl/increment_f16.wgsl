// Adds STEP to every element of a buffer, in place; a sum that reaches 1024 begins again at what is above it.
//
// bindings        @group(0) @binding(0) data: storage, read_write, array<f16>
// constants       STEP (default 1)
// workgroup size  64 × 1 × 1; invocations past the end of data do nothing
// features        shader-f16
// reference       rig.programs.reference: increment_f16
//
// Whole numbers are exact in f16 only up to 2048, so the count of dispatches that ran is kept modulo 1024.

enable f16;

override STEP: f32 = 1.0;

@group(0) @binding(0) var<storage, read_write> data: array<f16>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&data)) {
    let sum = data[id.x] + f16(STEP);
    data[id.x] = select(sum, sum - 1024.0h, sum >= 1024.0h);
  }
}
