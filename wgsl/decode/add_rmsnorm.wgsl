// Adds two buffers, and RMSNorm of the sum, of each sequence.
//
// bindings        @group(0) @binding(0) a: storage, read, array<f32>
//                 @group(0) @binding(1) b: storage, read, array<f32>
//                 @group(0) @binding(2) weight: storage, read, array<f32>
//                 @group(0) @binding(3) sum: storage, read_write, array<f32>
//                 @group(0) @binding(4) out: storage, read_write, array<f32>
// constants       WIDTH, EPS, LANES
// workgroup size  LANES × 1 × 1, a workgroup a sequence
// reference       rig.programs.decode.reference

override WIDTH: u32;
override EPS: f32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read_write> sum: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

var<workgroup> partial: array<f32, LANES>;

// the sum over the workgroup, to all of it
fn total(value: f32, lane: u32) -> f32 {
  partial[lane] = value;
  workgroupBarrier();
  var sum = 0.0;
  for (var i = 0u; i < LANES; i++) {
    sum += partial[i];
  }
  workgroupBarrier();
  return sum;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let base = group.x * WIDTH;
  var squares = 0.0;
  for (var i = lane; i < WIDTH; i += LANES) {
    let added = a[base + i] + b[base + i];
    sum[base + i] = added;
    squares += added * added;
  }
  let scale = inverseSqrt(total(squares, lane) / f32(WIDTH) + EPS);
  for (var i = lane; i < WIDTH; i += LANES) {
    out[base + i] = (a[base + i] + b[base + i]) * scale * weight[i];
  }
}
