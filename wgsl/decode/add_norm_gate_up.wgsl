// Adds two buffers, RMSNorm of the sum, and the gated MLP's first half of that, of each sequence.
//
// bindings        @group(0) @binding(0) a: storage, read, array<f32>
//                 @group(0) @binding(1) b: storage, read, array<f32>
//                 @group(0) @binding(2) norm_weight: storage, read, array<f32>
//                 @group(0) @binding(3) weight: storage, read, array<f32>
//                 @group(0) @binding(4) sum: storage, read_write, array<f32>
//                 @group(0) @binding(5) out: storage, read_write, array<f32>
// constants       MLP: rows of the gate, and of up, which follow it in weight; COLS, EPS; LANES
// workgroup size  LANES × 1 × 1, a workgroup a row (x and y) and sequence (z)
// reference       rig.programs.decode.reference
//
// Every workgroup adds and normalises for itself; the first one writes the sum. Each lane reads of normed only what it
// wrote.

override MLP: u32;
override COLS: u32;
override EPS: f32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> norm_weight: array<f32>;
@group(0) @binding(3) var<storage, read> weight: array<f32>;
@group(0) @binding(4) var<storage, read_write> sum: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

var<workgroup> normed: array<f32, COLS>;
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
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
  let row = group.x + group.y * groups.x;
  if (row >= MLP) {
    return;
  }
  let base = group.z * COLS;
  var squares = 0.0;
  for (var i = lane; i < COLS; i += LANES) {
    let added = a[base + i] + b[base + i];
    normed[i] = added;
    squares += added * added;
  }
  let scale = inverseSqrt(total(squares, lane) / f32(COLS) + EPS);
  let writes = group.x == 0 && group.y == 0;
  for (var i = lane; i < COLS; i += LANES) {
    if (writes) {
      sum[base + i] = normed[i];
    }
    normed[i] *= scale * norm_weight[i];
  }
  var gate_sum = 0.0;
  var up_sum = 0.0;
  for (var i = lane; i < COLS; i += LANES) {
    let element = normed[i];
    gate_sum += weight[row * COLS + i] * element;
    up_sum += weight[(MLP + row) * COLS + i] * element;
  }
  let gated = total(gate_sum, lane);
  let upped = total(up_sum, lane);
  if (lane == 0) {
    out[group.z * MLP + row] = gated / (1.0 + exp(-gated)) * upped;
  }
}
