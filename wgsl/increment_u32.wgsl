// Adds STEP to every element of a buffer, in place.
//
// bindings        @group(0) @binding(0) data: storage, read_write, array<u32>
// constants       STEP (default 1)
// workgroup size  64 × 1 × 1; invocations past the end of data do nothing
// reference       rig.programs.reference: increment
//
// What stands in the buffer counts the dispatches that really ran.

override STEP: u32 = 1;

@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&data)) {
    data[id.x] += STEP;
  }
}
