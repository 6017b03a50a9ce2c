// Keys and values, with their biases, of each sequence: a dot product a row; weights are 16-bit floats, two in each word.
//
// bindings        @group(0) @binding(0) x: storage, read, array<f32>
//                 @group(0) @binding(1) weight: storage, read, array<u32>
//                 @group(0) @binding(2) bias: storage, read, array<f32>
//                 @group(0) @binding(3) k: storage, read_write, array<f32>
//                 @group(0) @binding(4) v: storage, read_write, array<f32>
// constants       KV: elements of the keys, and of the values; COLS; ROW_OFFSET: where the rows begin in weight and bias; LANES
// workgroup size  LANES × 1 × 1, a workgroup a row (x and y) and sequence (z)
// reference       rig.programs.decode.reference

override KV: u32;
override COLS: u32;
override ROW_OFFSET: u32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<u32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> k: array<f32>;
@group(0) @binding(4) var<storage, read_write> v: array<f32>;

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
  if (row >= 2 * KV) {
    return;
  }
  var sum = 0.0;
  for (var i = lane; i < COLS / 2; i += LANES) {
    let pair = unpack2x16float(weight[(ROW_OFFSET + row) * COLS / 2 + i]);
    sum += pair.x * x[group.z * COLS + 2 * i] + pair.y * x[group.z * COLS + 2 * i + 1];
  }
  let dot = total(sum, lane);
  if (lane == 0) {
    let value = dot + bias[ROW_OFFSET + row];
    if (row < KV) {
      k[group.z * KV + row] = value;
    } else {
      v[group.z * KV + row - KV] = value;
    }
  }
}
