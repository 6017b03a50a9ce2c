// Adds STEP to every byte of a buffer, in place, modulo 256; four bytes lie packed in a word.
//
// bindings        @group(0) @binding(0) data: storage, read_write, array<u32>
// constants       STEP (default 1), below 256
// workgroup size  64 × 1 × 1, a word each; invocations past the end of data do nothing
// reference       rig.programs.reference: increment (in bytes)
//
// All four bytes are added at once: the low seven bits of each with their carries kept inside, the top bit without one.

override STEP: u32 = 1u;

@group(0) @binding(0) var<storage, read_write> data: array<u32>;

const LOW = 0x7f7f7f7fu;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&data)) {
    let word = data[id.x];
    let step = STEP * 0x01010101u;
    data[id.x] = ((word & LOW) + (step & LOW)) ^ ((word ^ step) & ~LOW);
  }
}
