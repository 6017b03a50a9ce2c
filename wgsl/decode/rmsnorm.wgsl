// RMSNorm of each sequence: x × rsqrt(mean(x²) + EPS) × weight.
//
// bindings        @group(0) @binding(0) x: storage, read, array<f32>
//                 @group(0) @binding(1) weight: storage, read, array<f32>
//                 @group(0) @binding(2) out: storage, read_write, array<f32>
// constants       WIDTH, EPS, LANES
// workgroup size  LANES × 1 × 1, a workgroup a sequence
// reference       rig.programs.decode.reference

override WIDTH: u32;
override EPS: f32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

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
  var sum = 0.0;
  for (var i = lane; i < WIDTH; i += LANES) {
    sum += x[base + i] * x[base + i];
  }
  let scale = inverseSqrt(total(sum, lane) / f32(WIDTH) + EPS);
  for (var i = lane; i < WIDTH; i += LANES) {
    out[base + i] = x[base + i] * scale * weight[i];
  }
}
