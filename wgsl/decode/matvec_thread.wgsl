// Matrix times vector, of each sequence: an invocation a row.
//
// bindings        @group(0) @binding(0) x: storage, read, array<f32>
//                 @group(0) @binding(1) weight: storage, read, array<f32>
//                 @group(0) @binding(2) out: storage, read_write, array<f32>
// constants       ROWS, COLS; ROW_OFFSET (default 0): where the rows begin in weight
// workgroup size  64 × 1 × 1, an invocation a row (x and y), a workgroup a sequence (z)
// reference       rig.programs.decode.reference

override ROWS: u32;
override COLS: u32;
override ROW_OFFSET: u32 = 0;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
  let row = (group.x + group.y * groups.x) * 64 + lane;
  if (row < ROWS) {
    var sum = 0.0;
    for (var i = 0u; i < COLS; i++) {
      sum += weight[(ROW_OFFSET + row) * COLS + i] * x[group.z * COLS + i];
    }
    out[group.z * ROWS + row] = sum;
  }
}
