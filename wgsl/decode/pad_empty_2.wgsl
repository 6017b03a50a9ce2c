// Does nothing, with 2 buffers bound as what it stands for has them.
//
// bindings        @group(0) @binding(0) source: storage, read, array<f32>
//                 @group(0) @binding(1) out: storage, read_write, array<f32>
// constants       PLACE: which one this stands for, so that each is a pipeline of its own
// workgroup size  64 × 1 × 1
// reference       none: what comes after it does not depend on it

override PLACE: u32 = 0;

@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main() {
  // what is not named belongs to no layout
  _ = &source;
  _ = &out;
  _ = PLACE;
}
