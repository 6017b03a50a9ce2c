// Gate and up projection, and SiLU of the gate, of each sequence; weights are 16-bit floats, two in each word.
//
// bindings        @group(0) @binding(0) x: storage, read, array<f32>
//                 @group(0) @binding(1) weight: storage, read, array<u32>
//                 @group(0) @binding(2) up: storage, read_write, array<f32>
//                 @group(0) @binding(3) silu: storage, read_write, array<f32>
// constants       MLP: rows of the gate, and of up, which follow it in weight; COLS; LANES
// workgroup size  LANES × 1 × 1, a workgroup a row (x and y) and sequence (z)
// reference       rig.programs.decode.reference

override MLP: u32;
override COLS: u32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<u32>;
@group(0) @binding(2) var<storage, read_write> up: array<f32>;
@group(0) @binding(3) var<storage, read_write> silu: array<f32>;

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
  var gate_sum = 0.0;
  var up_sum = 0.0;
  for (var i = lane; i < COLS / 2; i += LANES) {
    let pair = vec2f(x[group.z * COLS + 2 * i], x[group.z * COLS + 2 * i + 1]);
    gate_sum += dot(unpack2x16float(weight[row * COLS / 2 + i]), pair);
    up_sum += dot(unpack2x16float(weight[(MLP + row) * COLS / 2 + i]), pair);
  }
  let gated = total(gate_sum, lane);
  let upped = total(up_sum, lane);
  if (lane == 0) {
    up[group.z * MLP + row] = upped;
    silu[group.z * MLP + row] = gated / (1.0 + exp(-gated));
  }
}
