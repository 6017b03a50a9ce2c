// Does nothing, with a buffer bound as increment_f32 has it.
//
// bindings        @group(0) @binding(0) data: storage, read_write, array<f32>
// workgroup size  64 × 1 × 1
// reference       rig.programs.reference: empty

@group(0) @binding(0) var<storage, read_write> data: array<f32>;

@compute @workgroup_size(64)
fn main() {
  // the buffer belongs to the pipeline's layout only if it is named
  _ = &data;
}
