// Matrix times vector, of each sequence: as matvec_vec4, summed up within subgroups first.
//
// bindings        @group(0) @binding(0) x: storage, read, array<vec4f>
//                 @group(0) @binding(1) weight: storage, read, array<vec4f>
//                 @group(0) @binding(2) out: storage, read_write, array<f32>
// constants       ROWS, COLS (a multiple of 4); ROW_OFFSET (default 0): where the rows begin in weight; LANES
// workgroup size  LANES × 1 × 1, a workgroup a row (x and y) and sequence (z)
// reference       rig.programs.decode.reference

enable subgroups;

override ROWS: u32;
override COLS: u32;
override ROW_OFFSET: u32 = 0;
override LANES: u32;

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read> weight: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

var<workgroup> partial: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32, @builtin(subgroup_invocation_id) sublane: u32, @builtin(subgroup_size) width: u32) {
  let row = group.x + group.y * groups.x;
  if (row >= ROWS) {
    return;
  }
  let quarter = COLS / 4;
  var sum = 0.0;
  for (var i = lane; i < quarter; i += LANES) {
    sum += dot(weight[(ROW_OFFSET + row) * quarter + i], x[group.z * quarter + i]);
  }
  let part = subgroupAdd(sum);
  if (sublane == 0) {
    partial[lane / width] = part;
  }
  workgroupBarrier();
  if (lane == 0) {
    var all = 0.0;
    for (var i = 0u; i < (LANES + width - 1) / width; i++) {
      all += partial[i];
    }
    out[group.z * ROWS + row] = all;
  }
}
