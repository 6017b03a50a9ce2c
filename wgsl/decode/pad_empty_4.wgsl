// Does nothing, with 4 buffers bound as what it stands for has them.
//
// bindings        @group(0) @binding(0) source: storage, read, array<f32>
//                 @group(0) @binding(1) also_1: storage, read, array<f32>
//                 @group(0) @binding(2) also_2: storage, read, array<f32>
//                 @group(0) @binding(3) out: storage, read_write, array<f32>
// constants       PLACE: which one this stands for, so that each is a pipeline of its own
// workgroup size  64 × 1 × 1
// reference       none: what comes after it does not depend on it

override PLACE: u32 = 0;

@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read> also_1: array<f32>;
@group(0) @binding(2) var<storage, read> also_2: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main() {
  // what is not named belongs to no layout
  _ = &source;
  _ = &also_1;
  _ = &also_2;
  _ = &out;
  _ = PLACE;
}
